package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// record is a key below /registry/ and its value.
type record struct{ key, value string }

// object is a value with metadata; rest follows the namespace, as `,"uid":"x"},"spec":{}` does.
func object(key, apiVersion, kind, rest string) record {
	parts := strings.Split(key, "/")
	name, ns := parts[len(parts)-1], ""
	if parts = parts[:len(parts)-1]; !strings.Contains(clusterScoped, " "+strings.Join(parts, "/")+" ") {
		ns = fmt.Sprintf(`,"namespace":%q`, parts[len(parts)-1])
	}
	if rest == "" {
		rest = "}"
	}
	return record{key, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s%s}`, apiVersion, kind, name, ns, rest)}
}

// clusterScoped are the folders of cluster-scoped objects in tests.
const clusterScoped = " namespaces minions apiextensions.k8s.io/customresourcedefinitions apiregistration.k8s.io/apiservices validatingwebhookconfigurations mutatingwebhookconfigurations clusterroles masterleases persistentvolumes volumeattachments csinodes resourceslices servicecidrs storageclasses runtimeclasses clusterrolebindings example.com/globals migration.projectcalico.org/datastoremigrations projectcalico.org/clusterinformations crd.projectcalico.org/clusterinformations "

func apiServiceObject(name, spec, status string) record {
	return object("apiregistration.k8s.io/apiservices/"+name, "apiregistration.k8s.io/v1", "APIService", `},"spec":`+spec+`,"status":`+status)
}

// crd defines widgets.example.com, which serves v1beta1 and v1. extra is more of metadata.
func crd(extra, conversion, stored string) record {
	return object("apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", "apiextensions.k8s.io/v1", "CustomResourceDefinition", extra+
		`},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1beta1","served":true,"storage":false},{"name":"v1","served":true,"storage":true}],`+
		`"conversion":`+conversion+`},"status":{"acceptedNames":{"plural":"widgets","kind":"Widget"},"storedVersions":`+stored+`}`)
}

const noConversion = `{"strategy":"None"}`

// healthy is a cluster that has only the findings of every file.
func healthy() []record {
	return []record{
		object("namespaces/default", "v1", "Namespace", ""), object("namespaces/kube-system", "v1", "Namespace", `,"labels":{"kubernetes.io/metadata.name":"kube-system"}}`),
		object("namespaces/kube-node-lease", "v1", "Namespace", ""), object("namespaces/team", "v1", "Namespace", ""),
		apiServiceObject("v1.", `{"version":"v1"}`, `{}`), apiServiceObject("v1.apps", `{"group":"apps","version":"v1"}`, `{}`),
		apiServiceObject("v1.example.com", `{"group":"example.com","version":"v1"}`, `{}`),
		crd("", noConversion, `["v1"]`),
		object("example.com/widgets/team/w", "example.com/v1", "Widget", `,"uid":"`+uidOf(1)+`"}`),
		object("services/specs/team/hook", "v1", "Service", `},"spec":{"selector":{"app":"hook"}}`),
		object("services/endpoints/team/hook", "v1", "Endpoints", `},"subsets":[{"addresses":[{"ip":"10.0.0.1"}]}]`),
		object("pods/team/hook-0", "v1", "Pod", `,"labels":{"app":"hook"}}`),
		object("serviceaccounts/team/sa", "v1", "ServiceAccount", `,"uid":"`+uidOf(2)+`"}`),
	}
}

func uidOf(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// base is a snapshot of a real etcd, to write on.
func base(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	return opened(t, etcdtest.Build(t, "put compact_rev_key 1"))
}

func opened(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// written is a snapshot with records on top of another; an empty value deletes.
func written(t testing.TB, on *snapshot.Snapshot, records ...record) *snapshot.Snapshot {
	t.Helper()
	last, order := map[string]string{}, []string(nil)
	for _, r := range records {
		if _, twice := last[r.key]; !twice {
			order = append(order, r.key)
		}
		last[r.key] = r.value
	}
	path, reader := filepath.Join(t.TempDir(), "written.db"), inspect.NewReader(on, nil)
	_, err := snapshot.Write(context.Background(), path, on, func(yield func(snapshot.Change, error) bool) {
		for _, key := range order {
			c := snapshot.Change{Key: []byte("/registry/" + key), Value: []byte(balanced(last[key])), Delete: last[key] == ""}
			e, err := reader.Get(context.Background(), c.Key)
			if e != nil {
				c.Prior = e.ModRevision
			}
			if (e != nil || !c.Delete) && !yield(c, err) {
				return
			}
		}
	}, snapshot.WriteConfig{})
	require.NoError(t, err)
	return opened(t, path)
}

// balanced adds the braces that object leaves out.
func balanced(value string) string {
	if !strings.HasPrefix(value, `{"`) {
		return value
	}
	return value + strings.Repeat("}", strings.Count(value, "{")-strings.Count(value, "}"))
}

func examined(t testing.TB, s *snapshot.Snapshot, o Options) *finding.Report {
	t.Helper()
	report, err := Examine(context.Background(), inspect.NewReader(s, nil), o)
	require.NoError(t, err)
	for _, f := range report.Findings {
		require.Equal(t, f.Code.Level, f.Level)
		require.NotEmpty(t, f.Reason, f.Code)
		require.NotEmpty(t, f.Code.Remedy, f.Code)
		require.NotContains(t, f.Reason, "%!")
	}
	return report
}
