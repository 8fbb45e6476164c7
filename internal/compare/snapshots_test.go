package compare_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

func side(t *testing.T, script ...string) *inspect.Reader {
	s, err := snapshot.Open(context.Background(), etcdtest.Build(t, strings.Join(script, "\n")), snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return inspect.NewReader(s, nil)
}

// put returns a script line that stores an object in JSON.
func put(key, kind, uid, more string) string {
	apiVersion, kind, grouped := strings.Cut(kind, " ")
	if !grouped {
		apiVersion, kind = "v1", apiVersion
	}
	at := strings.Split(key, "/")
	return fmt.Sprintf("put %s `{\"apiVersion\":%q,\"kind\":%q,\"metadata\":{\"name\":%q,\"uid\":%q}%s}`", key,
		apiVersion, kind, at[len(at)-1], uid, more)
}

func all(t *testing.T, old, new *inspect.Reader, o compare.Options) (out []string, s compare.Summary) {
	for object, err := range compare.Snapshots(context.Background(), old, new, o) {
		require.NoError(t, err)
		s.Add(object)
		line := fmt.Sprintf("%s %s", object.Op, object.Key)
		if object.Noise {
			line += " noise"
		}
		for _, c := range object.Changes {
			line += fmt.Sprintf("; %s %s: %v -> %v", c.Op, c.Path, c.Old, c.New)
		}
		if object.Folded > 0 {
			line += fmt.Sprintf("; folded %d", object.Folded)
		}
		for _, note := range object.Notes {
			line += "; " + note
		}
		out = append(out, line)
	}
	return out, s
}

func TestSnapshots(t *testing.T) {
	crd := put("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "c", "")
	old := side(t, crd,
		put("/registry/configmaps/a/same", "ConfigMap", "1", `,"data":{"x":"1"}`),
		put("/registry/configmaps/a/changed", "ConfigMap", "2", `,"data":{"x":"1","y":"2"}`),
		put("/registry/configmaps/a/gone", "ConfigMap", "3", ``),
		put("/registry/configmaps/a/again", "ConfigMap", "4", ``),
		put("/registry/configmaps/a/spaced", "ConfigMap", "5", `,"data":{ "x":"1"}`),
		put("/registry/secrets/a/s", "Secret", "6", `,"data":{"p":"aHVudGVy"}`),
		put("/registry/leases/a/l", "coordination.k8s.io/v1 Lease", "7",
			`,"spec":{"renewTime":"2026-11-20T10:00:00Z","holderIdentity":"a"}`),
		put("/registry/leases/a/m", "coordination.k8s.io/v1 Lease", "8",
			`,"spec":{"renewTime":"2026-11-20T10:00:00Z","holderIdentity":"a"}`),
		put("/registry/events/a/e", "Event", "9", ``),
		"put compact_rev_key 1", "put /registry/text hello", "put /registry/masterleases/10.0.0.1 x",
		"put /registry/configmaps/a/opaque `k8s:enc:aescbc:v1:key1:xxxx`",
		"put /registry/configmaps/a/decrypted `k8s:enc:aescbc:v1:key1:xxxx`",
		"put /registry/configmaps/a/broken `{\"kind\":`",
	)
	new := side(t, crd,
		put("/registry/configmaps/a/same", "ConfigMap", "1", `,"data":{"x":"1"}`),
		put("/registry/configmaps/a/changed", "ConfigMap", "2", `,"data":{"x":"3"}`),
		put("/registry/configmaps/a/new", "ConfigMap", "10", ``),
		put("/registry/configmaps/a/again", "ConfigMap", "11", ``),
		put("/registry/configmaps/a/spaced", "ConfigMap", "5", `,"data":{"x":"1" }`),
		put("/registry/secrets/a/s", "Secret", "6", `,"data":{"p":"cGFzc3dk"}`),
		put("/registry/leases/a/l", "coordination.k8s.io/v1 Lease", "7",
			`,"spec":{"renewTime":"2026-11-20T10:00:10Z","holderIdentity":"a"}`),
		put("/registry/leases/a/m", "coordination.k8s.io/v1 Lease", "8",
			`,"spec":{"renewTime":"2026-11-20T10:00:10Z","holderIdentity":"b"}`),
		put("/registry/events/a/f", "Event", "12", ``),
		"put compact_rev_key 2", "put /registry/text world", "put /registry/masterleases/10.0.0.1 y",
		"put /registry/configmaps/a/opaque `k8s:enc:aescbc:v1:key1:yyyy`",
		put("/registry/configmaps/a/decrypted", "ConfigMap", "13", ``),
		"put /registry/configmaps/a/broken `{\"kinds\":`",
	)
	got, s := all(t, old, new, compare.Options{})
	require.Equal(t, `changed /registry/configmaps/a/again; changed metadata.uid: 4 -> 11
changed /registry/configmaps/a/broken; changed : <8 bytes> -> <9 bytes>; does not decode; compared by its bytes
changed /registry/configmaps/a/changed; changed data.x: 1 -> 3; removed data.y: 2 -> <nil>
changed /registry/configmaps/a/decrypted; changed : <encrypted by aescbc:v1:key1, 27 bytes> -> <ConfigMap, 81 bytes>; encrypted by aescbc:v1:key1; compared by its bytes
removed /registry/configmaps/a/gone
added /registry/configmaps/a/new
changed /registry/configmaps/a/opaque; changed : <encrypted by aescbc:v1:key1, 27 bytes> -> <encrypted by aescbc:v1:key1, 27 bytes>; encrypted by aescbc:v1:key1; compared by its bytes
changed /registry/configmaps/a/spaced noise; the same, but stored otherwise
removed /registry/events/a/e noise
added /registry/events/a/f noise
changed /registry/leases/a/l noise; folded 1
changed /registry/leases/a/m; changed spec.holderIdentity: a -> b; folded 1
changed /registry/masterleases/10.0.0.1 noise
changed /registry/secrets/a/s; changed data.p: <redacted 6 bytes> -> <redacted 6 bytes>
changed /registry/text; changed : hello -> world; no object; compared by its bytes
changed compact_rev_key noise`, strings.Replace(strings.Join(got, "\n"), "recreated", "changed", 1))
	require.Contains(t, got[0], "recreated ")
	require.Equal(t, compare.Count{Added: 1, Removed: 1, Changed: 7, Recreated: 1, Folded: 6}, s.Total())
	require.Equal(t, compare.Count{Added: 1, Removed: 1, Changed: 7, Recreated: 1, Folded: 6}.Found(), 10)
	require.Equal(t, []string{"", "configmaps", "events", "leases.coordination.k8s.io", "masterleases", "secrets"},
		resources(s))

	everything, _ := all(t, old, new, compare.Options{All: true, ShowSecrets: true})
	require.Len(t, everything, len(got))
	require.NotContains(t, strings.Join(everything, "\n"), "noise")
	require.Contains(t, everything, "changed /registry/leases/a/l; changed spec.renewTime: 2026-11-20T10:00:00Z -> "+
		"2026-11-20T10:00:10Z")
	require.Contains(t, everything, "changed /registry/secrets/a/s; changed data.p: aHVudGVy -> cGFzc3dk")

	some, _ := all(t, old, new, compare.Options{Want: func(k keys.Key) bool { return k.Name == "gone" }})
	require.Equal(t, []string{"removed /registry/configmaps/a/gone"}, some)

	none, _ := all(t, old, old, compare.Options{All: true})
	require.Empty(t, none)
}

// TestLeases checks that another lease or time to live of a record, and granted or revoked leases,
// are noise.
func TestLeases(t *testing.T) {
	same := put("/registry/configmaps/a/same", "ConfigMap", "1", "") + " lease=1"
	old := side(t, "grant 1 100", "grant 2 200", "grant 3 300", same, "put /x/kept v lease=2", "put /x/other v lease=1",
		"put /x/lost v lease=3", put("/registry/configmaps/a/both", "ConfigMap", "2", ""))
	new := side(t, "grant 1 100", "grant 2 250", "grant 4 400", same, "put /x/kept v lease=2", "put /x/other v lease=4",
		"put /x/lost v", put("/registry/configmaps/a/both", "ConfigMap", "2", `,"data":{"x":"1"}`)+" lease=4")
	got, s := all(t, old, new, compare.Options{})
	require.Equal(t, []string{
		"changed /registry/configmaps/a/both; added data: <nil> -> map[x:1]; folded 1",
		"changed /x/kept noise; folded 1; no object; compared by its bytes",
		"changed /x/lost noise; folded 1; no object; compared by its bytes",
		"changed /x/other noise; folded 1; no object; compared by its bytes",
	}, got)
	require.Equal(t, compare.Count{Changed: 1, Folded: 3}, s.Total())
	everything, _ := all(t, old, new, compare.Options{All: true})
	require.Equal(t, []string{
		"changed /registry/configmaps/a/both; added data: <nil> -> map[x:1]; added (lease): <nil> -> 4 (400 s)",
		"changed /x/kept; changed (lease): 2 (200 s) -> 2 (250 s); no object; compared by its bytes",
		"changed /x/lost; removed (lease): 3 (300 s) -> <nil>; no object; compared by its bytes",
		"changed /x/other; changed (lease): 1 (100 s) -> 4 (400 s); no object; compared by its bytes",
	}, everything)

	leases, err := compare.Leases(context.Background(), old.Snapshot(), new.Snapshot())
	require.NoError(t, err)
	require.Equal(t, []compare.Lease{
		{Op: compare.Changed, ID: "2", OldTTL: 200, NewTTL: 250}, {Op: compare.Removed, ID: "3", OldTTL: 300},
		{Op: compare.Added, ID: "4", NewTTL: 400},
	}, leases)
}

func resources(s compare.Summary) (out []string) {
	for _, c := range s.Rows() {
		out = append(out, c.Resource)
	}
	return out
}

// TestLabels checks that an object with the labels in either snapshot is shown.
func TestLabels(t *testing.T) {
	pod := func(name, label, node string) string {
		return fmt.Sprintf("put /registry/pods/a/%s "+
			"`{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":%q,\"labels\":{\"app\":%q}},"+
			"\"spec\":{\"nodeName\":%q}}`", name, name, label, node)
	}
	namespace := put("/registry/namespaces/kube-system", "Namespace", "n", "")
	old := side(t, namespace, pod("a", "web", "1"), pod("b", "db", "1"), pod("c", "web", "1"), pod("d", "web", "1"))
	new := side(t, namespace, pod("a", "web", "2"), pod("b", "db", "2"), pod("c", "db", "1"))
	selector, err := labels.Parse("app=web")
	require.NoError(t, err)
	got, _ := all(t, old, new, compare.Options{Labels: selector})
	require.Equal(t, []string{
		"changed /registry/pods/a/a; changed spec.nodeName: 1 -> 2",
		"changed /registry/pods/a/c; changed metadata.labels.app: web -> db", "removed /registry/pods/a/d",
	}, got)
}

// TestDeep checks that a deeply nested value is not printed completely.
func TestDeep(t *testing.T) {
	nested := func(levels int) string {
		return `,"data":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
	}
	old := side(t, put("/registry/configmaps/a/a", "ConfigMap", "1", ""),
		put("/registry/example.com/widgets/a/w", "example.com/v1 Widget", "1", ""))
	for levels, want := range map[int]string{5000: "<nested more than 100 levels>", 2: "map[a:map[a:1]]"} {
		new := side(t, put("/registry/configmaps/a/a", "ConfigMap", "1", ""),
			put("/registry/example.com/widgets/a/w", "example.com/v1 Widget", "1", nested(levels)))
		got, _ := all(t, old, new, compare.Options{})
		require.Equal(t, []string{"changed /registry/example.com/widgets/a/w; added data: <nil> -> " + want}, got)
	}
}

func TestSameCluster(t *testing.T) {
	object := func(key, kind, uid string) string { return put(key, kind, uid, "") }
	const (
		same   = "put /registry/ranges/serviceips same"
		system = "/registry/namespaces/kube-system"
		shard  = "/registry/core.kcp.io/logicalclusters/customresources/system:shard/cluster"
		moved  = "/registry/core.kcp.io/logicalclusters/customresources/c1/cluster"
	)
	for name, c := range map[string]struct {
		a, b []string
		want compare.Same
		why  string
	}{
		"one uid, nothing else in common": {[]string{object(system, "Namespace", "u1")},
			[]string{same, same, object(system, "Namespace", "u1")}, compare.Yes, ""},
		"another prefix": {[]string{object(system, "Namespace", "u1")},
			[]string{same, object("/kube/namespaces/kube-system", "Namespace", "u1")}, compare.Yes, ""},
		"two uids, and the same record at one revision": {[]string{same, object(system, "Namespace", "u1")},
			[]string{same, object(system, "Namespace", "u2")}, compare.No,
			"namespace kube-system has the uid u1 in one and u2 in the other"},
		"a record in common, no uid": {[]string{same}, []string{same, "put /registry/pods/a/b x"}, compare.Yes, ""},
		"nothing in common, no uid": {[]string{"put /registry/events/a/b x"}, []string{"put /registry/events/a/c x"},
			compare.Unknown, "they have no record in common, and hold nothing that names the cluster"},
		"a uid in one alone": {[]string{object(system, "Namespace", "u1")},
			[]string{"put /registry/events/a/c x"}, compare.Unknown,
			"they have no record in common, and hold nothing that names the cluster"},
		"encrypted, nothing in common": {[]string{"put " + system + " k8s:enc:aescbc:v1:k:1"},
			[]string{"put " + system + " k8s:enc:aescbc:v1:k:2"}, compare.Unknown,
			"they have no record in common, and hold nothing that names the cluster"},
		"nothing in one": {[]string{same}, []string{same, "del /registry/ranges/serviceips"},
			compare.Unknown, ""},
		"two shards between which a logical cluster moved": {[]string{object(shard, "LogicalCluster", "s1"),
			object(moved, "LogicalCluster", "m")},
			[]string{object(moved, "LogicalCluster", "m"), object(shard, "LogicalCluster", "s2")}, compare.No,
			"LogicalCluster of system:shard has the uid s1 in one and s2 in the other"},
		"one shard": {[]string{object(shard, "LogicalCluster", "s1")},
			[]string{same, object(shard, "LogicalCluster", "s1")}, compare.Yes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sides := []*inspect.Reader{side(t, c.a...), side(t, c.b...)}
			got, why, err := compare.SameCluster(context.Background(), sides[0], sides[1])
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.why, why)
			got, _, err = compare.SameCluster(context.Background(), sides[1], sides[0])
			require.NoError(t, err)
			require.Equal(t, c.want, got, "the other way round")
		})
	}
}

// TestQuoted checks that a copy of a secret in another field of the object is hidden.
func TestQuoted(t *testing.T) {
	env := `,"spec":{"env":[{"name":"PASSWORD","value":"Tr0ub4dor"}]}`
	old := side(t, put("/registry/example.com/widgets/ns/a", "example.com/v1 Widget", "1", env))
	edited := side(t, put("/registry/example.com/widgets/ns/a", "example.com/v1 Widget", "1",
		strings.Replace(env, `"spec":{`, `"spec":{"nodeName":"n1","note":"it is Tr0ub4dor","more":{"x":["Tr0ub4dor"]},`,
			1)))
	out, _ := all(t, old, edited, compare.Options{All: true})
	require.NotContains(t, strings.Join(out, "\n"), "Tr0ub4dor")
	require.Contains(t, strings.Join(out, "\n"), "n1", "the rest is shown")
	moved := side(t, put("/registry/example.com/widgets/ns/a", "example.com/v1 Widget", "1",
		`,"spec":{"note":"it was Tr0ub4dor"}`))
	out, _ = all(t, old, moved, compare.Options{All: true})
	require.NotContains(t, strings.Join(out, "\n"), "Tr0ub4dor")
	out, _ = all(t, old, edited, compare.Options{All: true, ShowSecrets: true})
	require.Contains(t, strings.Join(out, "\n"), "it is Tr0ub4dor")
}
