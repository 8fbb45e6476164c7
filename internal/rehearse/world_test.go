package rehearse

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// world is an etcd as a restore leaves it, with an API server on it.
type world struct {
	etcd *etcdtest.Server
	api  *apitest.API
}

const group = "demo.example.com"

// newWorld puts records into an etcd, below /registry, and starts an API server on it.
func newWorld(t *testing.T, records map[string]string, flags ...string) *world {
	t.Helper()
	w := &world{etcd: etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))}
	for key, value := range records {
		_, err := w.etcd.Client.Put(t.Context(), "/registry/"+key, value)
		require.NoError(t, err)
	}
	w.api = apitest.Start(t, w.etcd.URL, flags...)
	return w
}

// options are those of a rehearsal: names come from the keys.
func (w *world) options() tryOptions {
	return tryOptions{Names: storedNames(w.etcd.Client, "/registry")}
}

// run tries everything, and requires that the store stays as it is.
func (w *world) run(t *testing.T, o tryOptions) tried {
	t.Helper()
	before, err := w.etcd.Client.Get(t.Context(), "x")
	require.NoError(t, err)
	result, err := tryAll(t.Context(), w.api.Config, o)
	require.NoError(t, err)
	after, err := w.etcd.Client.Get(t.Context(), "x")
	require.NoError(t, err)
	require.Equal(t, before.Header.Revision, after.Header.Revision, "the store changed")
	return result
}

// kind returns what is said of widgets, gadgets, ...
func (r tried) kind(t *testing.T, plural string) *kind {
	t.Helper()
	for _, k := range r.Kinds {
		if k.Resource == plural+"."+group {
			return k
		}
	}
	require.Fail(t, "no kind "+plural)
	return nil
}

// lines are the failures, as CODE REASON.
func (r tried) lines() (lines []string) {
	for _, f := range r.Failures {
		lines = append(lines, f.Code.Name+" "+f.Reason)
	}
	return lines
}

// crd is the record of a definition. Versions are "v1*" for the storage version, "v2" for others,
// "v0-" if not served.
func crd(plural, versions, stored, shape string) map[string]string {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	names := fmt.Sprintf(`{"plural":%q,"singular":%q,"kind":%q,"listKind":%q}`, plural, strings.ToLower(kind), kind, kind+"List")
	var list []string
	for _, v := range strings.Fields(versions) {
		list = append(list, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":%s}}`,
			strings.TrimRight(v, "*-"), !strings.Contains(v, "-"), strings.Contains(v, "*"), shape))
	}
	return map[string]string{"apiextensions.k8s.io/customresourcedefinitions/" + plural + "." + group: fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s","uid":"u-%s","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},`+
			`"spec":{"group":%q,"scope":"Namespaced","names":%s,"versions":[%s]},"status":{"acceptedNames":%s,"storedVersions":%s,"conditions":[`+
			`{"type":"NamesAccepted","status":"True","reason":"NoConflicts","message":"no conflicts found","lastTransitionTime":"2026-01-01T00:00:00Z"},`+
			`{"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"accepted","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		plural, group, plural, group, names, strings.Join(list, ","), names, stored)}
}

// object is the record of a custom resource in namespace a; meta is more metadata, with its comma.
func object(plural, version, name, meta, spec string) map[string]string {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return map[string]string{group + "/" + plural + "/a/" + name: fmt.Sprintf(
		`{"apiVersion":"%s/%s","kind":%q,"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,%s"name":%q,"namespace":"a","uid":"u-%s-%s"},"spec":%s}`,
		group, version, kind, meta, name, plural, name, spec) + "\n"}
}

const (
	plain  = `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	strict = `{"type":"object","x-kubernetes-validations":[{"rule":"!has(self.spec.root) || self.spec.root != 'no'"}],"properties":{"spec":{"type":"object","properties":{` +
		`"text":{"type":"string","maxLength":3},"root":{"type":"string"},` +
		`"rule":{"type":"string","x-kubernetes-validations":[{"rule":"self != 'no'","message":"must not be no"}]},` +
		`"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer","maximum":9}}}}}}}}`
)

// merge puts records together.
func merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, records := range all {
		for key, value := range records {
			out[key] = value
		}
	}
	return out
}
