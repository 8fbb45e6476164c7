package rehearse

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// world is an etcd as after a restore, with an API server.
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

// options returns the options of a rehearsal: names come from the keys.
func (w *world) options() tryOptions {
	return tryOptions{Names: storedNames(w.etcd.Client, "/registry")}
}

// run tries everything, and requires that the store does not change.
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

// kind returns the result for widgets, gadgets, ...
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

// lines returns the failures as CODE REASON.
func (r tried) lines() (lines []string) {
	for _, f := range r.Failures {
		lines = append(lines, f.Code.Name+" "+f.Reason)
	}
	return lines
}

// crd returns the record of a definition. Versions are "v1*" for the storage version, "v2" for
// others, "v0-" if not served.
func crd(plural, versions, stored, shape string) map[string]string {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	names := fmt.Sprintf(`{"plural":%q,"singular":%q,"kind":%q,"listKind":%q}`, plural, strings.ToLower(kind),
		kind, kind+"List")
	var list []string
	for _, v := range strings.Fields(versions) {
		list = append(list, fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":%s}}`,
			strings.TrimRight(v, "*-"), !strings.Contains(v, "-"), strings.Contains(v, "*"), shape))
	}
	return map[string]string{"apiextensions.k8s.io/customresourcedefinitions/" + plural + "." + group: fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s",`+
			`"uid":"u-%s","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z"},`+
			`"spec":{"group":%q,"scope":"Namespaced","names":%s,"versions":[%s]},"status":{"acceptedNames":%s,`+
			`"storedVersions":%s,"conditions":[`+
			`{"type":"NamesAccepted","status":"True","reason":"NoConflicts","message":"no conflicts found",`+
			`"lastTransitionTime":"2026-01-01T00:00:00Z"},`+
			`{"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"accepted",`+
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		plural, group, plural, group, names, strings.Join(list, ","), names, stored)}
}

// object returns the record of a custom resource in namespace a; meta is more metadata, with its
// comma.
func object(plural, version, name, meta, spec string) map[string]string {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return map[string]string{group + "/" + plural + "/a/" + name: fmt.Sprintf(
		`{"apiVersion":"%s/%s","kind":%q,"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,`+
			`%s"name":%q,"namespace":"a","uid":"u-%s-%s"},"spec":%s}`,
		group, version, kind, meta, name, plural, name, spec) + "\n"}
}

const (
	plain  = `{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	strict = `{"type":"object","x-kubernetes-validations":[{"rule":"!has(self.spec.root) || self.spec.root != ` +
		`'no'"}],"properties":{"spec":{"type":"object","properties":{` +
		`"text":{"type":"string","maxLength":3},"root":{"type":"string"},` +
		`"rule":{"type":"string","x-kubernetes-validations":[{"rule":"self != 'no'","message":"must not be no"}]},` +
		`"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],` +
		`"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},` +
		`"port":{"type":"integer","maximum":9}}}}}}}}`
)

// merge merges records.
func merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, records := range all {
		for key, value := range records {
			out[key] = value
		}
	}
	return out
}

func TestMain(m *testing.M) {
	if code, isPart := sandbox.Main(nil, os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// tool returns a program that "make e2e" builds. Without the program the test is skipped.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "e2e", "bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("make e2e builds " + path)
	}
	return path
}

// startServer runs a kube-apiserver on records below /registry. The options are complete.
func startServer(t *testing.T, records map[string]string) collectOptions {
	t.Helper()
	binary := tool(t, "kube-apiserver")
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "e"))
	for key, value := range records {
		_, err := etcd.Client.Put(t.Context(), "/registry/"+key, value)
		require.NoError(t, err)
	}
	box, err := sandbox.New("", 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	server, err := apiservers.Kube{Store: apiservers.Store{Etcd: etcd.URL, Prefix: "/registry"},
		Binary: binary}.Start(t.Context(), box)
	require.NoError(t, err)
	_, err = server.Ready(t.Context())
	require.NoError(t, err)
	return collectOptions{Etcd: etcd.Client, Prefix: "/registry", Config: server.Config,
		Start: func(ctx context.Context) (process, error) {
			return server.Collect(ctx, box, tool(t, "kube-controller-manager"))
		}}
}

// standIn answers each conversion with a message.
func standIn(t *testing.T, message string) *httptest.Server {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		if json.NewDecoder(r.Body).Decode(&review) != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w,
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":%q,`+
				`"result":{"status":"refused","message":%q}}}`,
			review.Request.UID, message)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestNotChecked checks that an unchecked conversion is no failure, and that objects without a
// conversion are tried.
func TestNotChecked(t *testing.T) {
	for message, unchecked := range map[string]bool{"not asked: it is elsewhere": true, "it is broken": false} {
		server := standIn(t, message)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		webhook := fmt.Sprintf(
			`"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],`+
				`"clientConfig":{"url":%q,"caBundle":%q}}},"names"`,
			server.URL, base64.StdEncoding.EncodeToString(ca))
		records := crd("hookeds", "v1* v2", `["v1","v2"]`, strict)
		for key, value := range records {
			records[key] = strings.Replace(value, `"names"`, webhook, 1)
		}
		w := newWorld(t, merge(records, object("hookeds", "v1", "new", "", `{"root":"no"}`),
			object("hookeds", "v2", "old", "", `{}`)))
		o := w.options()
		o.StandIn = "not asked: "
		r := w.run(t, o)
		kind := r.kind(t, "hookeds")
		require.Equal(t, []int{1, 1, 1}, []int{kind.Tried, r.Counts[codeUpdate], r.Counts[codeApply]})
		if unchecked {
			require.Contains(t, kind.NotChecked, "failed: not asked: it is elsewhere")
			require.Zero(t, r.Counts[codeList])
		} else {
			require.Empty(t, kind.NotChecked)
			require.Equal(t, 2, r.Counts[codeList])
			require.Contains(t, r.lines()[2], "conversion webhook for demo.example.com/v")
		}
	}
}

func TestCompare(t *testing.T) {
	report := func(found ...*finding.Finding) *Report {
		r := &Report{}
		for _, f := range found {
			r.Found.Add(f)
		}
		return r
	}
	before := report(codeDiffers.Because("another value").At("/a"), codeDiffers.Because("another value").At("/b"))
	after := report(codeDiffers.Because("another version").At("/b"), codeEtcd.Because("ended").At("/b"))
	changed := Compare(before, after)
	require.Equal(t, []finding.Finding{*codeEtcd.Because("ended").At("/b")}, changed.Broken, "another code")
	require.Equal(t, []finding.Finding{*codeDiffers.Because("another value").At("/a")}, changed.Mended)
	for _, pair := range [][2]*finding.Finding{
		{codeServer.Because("a check fails"), codeServer.Because("it ended")},
		{codeRecords.Because("update-refused: x").At("/a"), codeRecords.Because("undecodable: x").At("/a")},
	} {
		require.Len(t, Compare(report(pair[0]), report(pair[1])).Broken, 1, pair[1].Reason)
	}
	refused := Compare(report(codeApply.Because("apply at v1alpha1: x").At("/a")),
		report(codeApply.Because("apply at v1: y").At("/a")))
	require.Empty(t, refused.Broken)
	same := Compare(before, before)
	require.Empty(t, same.Broken)
	require.Empty(t, same.Mended)
	require.True(t, report().Passed())
	require.False(t, after.Passed())
}
