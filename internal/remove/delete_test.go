package remove

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestCollected checks that an object without remaining owners is deleted with its dependents;
// others stay.
func TestCollected(t *testing.T) {
	in := family(t)
	r, out := run1(t, in, "secret/root --namespace=a")
	require.Equal(t, []string{
		"configmaps/a/both released Secret root",
		"configmaps/a/child deleted Secret root",
		"configmaps/a/foreground deleted Secret root",
		"configmaps/a/grandchild deleted ConfigMap child",
		"configmaps/a/held marked for deletion Secret root",
		"configmaps/a/orphaning deleted Secret root",
		"configmaps/a/twice deleted ConfigMap child,Secret root",
		"configmaps/a/unserved kept Secret root",
		"persistentvolumes/pv kept Secret root",
	}, collected(r))
	require.Equal(t, []string{"owners-unread /registry/configmaps/a/encrypted"}, problems(r))
	before := keysOf(t, in)
	require.Equal(t, slices.DeleteFunc(before, func(key string) bool { return key == "secrets/a/root" }),
		keysOf(t, out))
}

// TestOrphan checks that --cascade=orphan removes only deleted owners.
func TestOrphan(t *testing.T) {
	r, _ := run1(t, family(t), "secret/root --namespace=a --cascade=orphan")
	require.Equal(t, []string{"encrypted /registry/configmaps/a/encrypted", "undecodable /registry/secrets/a/bad"},
		problems(r))
	r, out := run1(t, family(t), "secret/root --namespace=a --cascade=orphan", "encrypted", "undecodable")
	require.Equal(t, transform.Changes{Updated: 9, Deleted: 1}, r.Changes)
	require.Empty(t, collected(r))
	require.Equal(t, 9, transformtest.Section[Deletion](r).Deletion.Orphaned)
	s, err := snapshot.Open(context.Background(), out, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for key, want := range map[string][]string{"both": {"other"}, "child": nil, "grandchild": {"child"},
		"unserved": {"g"}, "twice": {"child"}} {
		e, err := inspect.NewReader(s, nil).Get(context.Background(), []byte("/registry/configmaps/a/"+key))
		require.NoError(t, err)
		meta, err := encoding.ReadMeta(e.Value)
		require.NoError(t, err)
		var names []string
		for _, ref := range meta.OwnerReferences {
			names = append(names, ref.Name)
		}
		require.Equal(t, want, names, key)
	}
}

// TestOrphanOfTwo checks that a previously missing owner does not cause the deletion of an object
// whose other owner is deleted with --cascade=orphan.
func TestOrphanOfTwo(t *testing.T) {
	owned := func(name, owners string) string {
		return put("ConfigMap", "configmaps", "a", name, `,"ownerReferences":[`+owners+`]`)
	}
	missing, there := `{"apiVersion":"v1","kind":"Secret","name":"m","uid":"u-m"}`,
		`{"apiVersion":"v1","kind":"Secret","name":"s","uid":"u-s"}`
	in := etcdtest.Build(t, strings.Join([]string{
		put("Namespace", "namespaces", "", "a", ""), put("Secret", "secrets", "a", "s", ""),
		owned("both", missing+","+there), owned("lost", missing),
	}, "\n"))
	r, out := run1(t, in, "secret/s --namespace=a --cascade=orphan")
	require.Equal(t, 1, transformtest.Section[Deletion](r).Deletion.Orphaned)
	s, err := snapshot.Open(context.Background(), out, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for name, want := range map[string]int{"both": 0, "lost": 1} {
		e, err := inspect.NewReader(s, nil).Get(context.Background(), []byte("/registry/configmaps/a/"+name))
		require.NoError(t, err)
		meta, err := encoding.ReadMeta(e.Value)
		require.NoError(t, err)
		require.Len(t, meta.OwnerReferences, want, name)
	}
}

// TestContents checks that a namespace is deleted with its contents, and a definition with its
// objects if allowed. The dependents of these custom resources are not collected.
func TestContents(t *testing.T) {
	in := family(t)
	r, out := run1(t, in, "ns a")
	require.Equal(t, []string{
		"apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com", "namespaces/b",
		"namespaces/kube-system", "persistentvolumes/pv",
		"secrets/b/root",
	}, keysOf(t, out))
	require.Equal(t, []string{
		"deleted-unread /registry/configmaps/a/encrypted", "deleted-unread /registry/secrets/a/bad",
		"finalizers-not-run /registry/configmaps/a/foreground", "finalizers-not-run /registry/configmaps/a/held",
		"finalizers-not-run /registry/configmaps/a/leaving", "finalizers-not-run /registry/configmaps/a/orphaning",
	}, problems(r))
	var counts []string
	for _, d := range transformtest.Section[Deletion](r).Deletion.Types {
		counts = append(counts, fmt.Sprint(d.Type, d.Chosen, d.Inside, len(d.Keys)))
	}
	require.Equal(t, []string{"configmaps0 13 13", "namespaces1 0 1", "secrets0 3 3", "widgets.demo.example.com0 1 1"},
		counts)

	r, _ = run1(t, in, "crd widgets.demo.example.com")
	require.Equal(t, transform.Refused, r.Outcome)
	require.Contains(t, problems(r),
		"crd-has-objects /registry/apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com")
	r, out = run1(t, in, "crd widgets.demo.example.com", "crd-has-objects")
	require.Equal(t, []string{"configmaps/a/of-widget kept Widget w"}, collected(r))
	require.NotContains(t, keysOf(t, out), "demo.example.com/widgets/a/w")
	r, _ = run1(t, in, "widgets --all --namespace=a")
	require.Equal(t, []string{"configmaps/a/of-widget deleted Widget w"}, collected(r))
}

// TestListed checks that the report has all keys, and the terminal output the first keys of each
// type.
func TestListed(t *testing.T) {
	for _, few := range []bool{false, true} {
		d := newRemoved(few)
		for i := range 5000 {
			key := keys.Key{Resource: schema.GroupResource{Resource: "pods"}, Namespace: "a",
				Name: fmt.Sprintf("p%04d", (i*1237)%5000)}
			d.add([]byte("/registry/pods/a/"+key.Name), key, true)
		}
		d.finish()
		require.True(t, slices.IsSorted(d.Types[0].Keys))
		require.Equal(t, few, len(d.Types[0].Keys) < 5000)
		table := (&Deletion{d}).Tables(transform.Planned)[1]
		require.Equal(t, "to be deleted: pods", table.Title)
		require.Len(t, table.Rows, fewKeys)
		require.Equal(t, []any{"/registry/pods/a/p0011"}, table.Rows[11])
		require.Equal(t, 5000-fewKeys, table.More)
	}
}

// TestFreed checks that objects deleted by garbage collectors after the run do not count as
// holders.
func TestFreed(t *testing.T) {
	owner := func(kind, name string) string {
		return fmt.Sprintf(`,"ownerReferences":[{"apiVersion":"apps/v1","kind":%q,"name":%q,"uid":"u-%s"}]`,
			kind, name, name)
	}
	const going = `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["kubernetes.io/pvc-protection"]`
	uses := func(node, claim string) string {
		return fmt.Sprintf(`},"spec":{"nodeName":%q,"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":%q}}]`,
			node, claim)
	}
	bound := func(name, meta string) string {
		return put("PersistentVolumeClaim", "persistentvolumeclaims", "a", "c-"+name,
			meta+`},"spec":{"volumeName":"pv-`+name+`"`) + "\n" +
			put("PersistentVolume", "persistentvolumes", "", "pv-"+name,
				`},"spec":{"persistentVolumeReclaimPolicy":"Delete","claimRef":{"namespace":"a","name":"c-`+
					name+`","uid":"u-c-`+name+`"}`)
	}
	leaving := `,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["kubernetes.io/pv-protection"]`
	in := etcdtest.Build(t, strings.ReplaceAll(strings.Join([]string{
		put("Namespace", "namespaces", "", "a", ""), put("Node", "minions", "", "n1", ""),
		put("Node", "minions", "", "n2", ""),
		put("Deployment", "deployments", "a", "d", ""), put("ReplicaSet", "replicasets", "a", "rs",
			owner("Deployment", "d")),
		put("Pod", "pods", "a", "p", owner("ReplicaSet", "rs")+uses("n1", "c-used")), bound("used", going),
		put("StatefulSet", "statefulsets", "a", "s", ""), bound("kept", owner("StatefulSet", "s")), bound("free", ""),
		put("PersistentVolumeClaim", "persistentvolumeclaims", "a", "c-both", `},"spec":{"volumeName":"pv-both"`),
		put("PersistentVolume", "persistentvolumes", "", "pv-both",
			leaving+`},"spec":{"persistentVolumeReclaimPolicy":"Recycle","claimRef":`+
				`{"namespace":"a","name":"c-both","uid":"u-c-both"}`),
	}, "\n"), `"apiVersion":"v1","kind":"StatefulSet"`, `"apiVersion":"apps/v1","kind":"StatefulSet"`))
	const used = "/registry/persistentvolumeclaims/a/c-used"
	for line, want := range map[string]string{
		"pod p --namespace=a": "volume-freed " + used +
			": it is being deleted, and the last Pod that uses it is deleted: PersistentVolume pv-used is deleted, " +
			"and its reclaim policy is Delete",
		"deploy d --namespace=a": "volume-freed " + used +
			": it is being deleted, and the last Pod that uses it is deleted with its owner: PersistentVolume " +
			"pv-used is deleted, and its reclaim policy is Delete",
		"rs rs --namespace=a": "volume-freed " + used +
			": it is being deleted, and the last Pod that uses it is deleted with its owner: PersistentVolume " +
			"pv-used is deleted, and its reclaim policy is Delete",
		"node n1": "volume-freed " + used +
			": it is being deleted, and the last Pod that uses it is deleted with its Node: PersistentVolume " +
			"pv-used is deleted, and its reclaim policy is Delete",
		"node n1 --cascade=orphan": "volume-freed " + used +
			": it is being deleted, and the last Pod that uses it is deleted with its Node: PersistentVolume " +
			"pv-used is deleted, and its reclaim policy is Delete",
		"deploy d --cascade=orphan --namespace=a": "",
		"node n2": "",
		"sts s --namespace=a": "storage-released /registry/persistentvolumes/pv-kept: its claim " +
			"a/c-kept is deleted, and its reclaim policy is Delete",
		"pvc c-free --namespace=a": "storage-released /registry/persistentvolumes/pv-free: its claim " +
			"a/c-free is deleted, and its reclaim policy is Delete",
		"pvc c-both --namespace=a": "storage-released /registry/persistentvolumes/pv-both: its claim " +
			"a/c-both is deleted, and its reclaim policy is Recycle",
	} {
		r, _ := run1(t, in, line)
		var told []string
		for _, p := range r.Problems {
			told = append(told, p.Code.Name+" "+p.Key+": "+p.Reason)
		}
		require.Equal(t, want, strings.Join(told, "\n"), line)
		require.Equal(t, strings.HasPrefix(want, "volume-freed"), r.Outcome == transform.Refused, line)
	}
}

// TestUnparsed checks that an unparsable key with the name of a deleted namespace is reported and
// kept.
func TestUnparsed(t *testing.T) {
	odd := "configmaps/a/deep/odd"
	in := etcdtest.Build(t, strings.Join([]string{
		put("Namespace", "namespaces", "", "a", ""), put("Namespace", "namespaces", "", "b", ""), configMap("c", ""),
		"put /registry/" + odd + " x",
	}, "\n"))
	r, _ := run1(t, in, "ns b")
	require.Empty(t, problems(r))
	r, _ = run1(t, in, "ns a")
	require.Equal(t, transform.Refused, r.Outcome)
	require.Equal(t, []string{"left-in-namespace /registry/" + odd}, problems(r))
	r, out := run1(t, in, "ns a", "left-in-namespace")
	left, _ := r.Errors()
	require.Equal(t, 1, left)
	require.Equal(t, []string{odd, "namespaces/b"}, keysOf(t, out))
}

// TestRemovedVersion checks that an owner at an API version without a current server is never
// found.
func TestRemovedVersion(t *testing.T) {
	owned := func(apiVersion string) string {
		return put("ConfigMap", "configmaps", "a", strings.ReplaceAll(apiVersion, "/", "-"),
			fmt.Sprintf(`,"ownerReferences":[{"apiVersion":%q,"kind":"Deployment","name":"d","uid":"u-d"}]`,
				apiVersion))
	}
	in := etcdtest.Build(t, strings.Join([]string{
		put("Namespace", "namespaces", "", "a", ""), put("Deployment", "deployments", "a", "d", ""),
		owned("apps/v1"), owned("apps/v1beta1"), owned("extensions/v1beta1"),
	}, "\n"))
	r, _ := run1(t, in, "deploy d --namespace=a")
	require.Equal(t, []string{
		"configmaps/a/apps-v1 deleted Deployment d", "configmaps/a/apps-v1beta1 kept Deployment d",
		"configmaps/a/extensions-v1beta1 kept Deployment d",
	}, collected(r))
}

// TestKeep checks that --keep deletes all other objects except namespaces required by every
// cluster.
func TestKeep(t *testing.T) {
	in := family(t)
	r, out := run1(t, in, "ns b --keep")
	require.Equal(t, []string{"namespaces/b", "namespaces/kube-system"},
		slices.DeleteFunc(keysOf(t, out), func(key string) bool {
			return !strings.HasPrefix(key, "namespaces/")
		}))
	require.NotContains(t, problems(r), "made-again")
	r, _ = run1(t, in, "secrets --selector=a=b --keep --namespace=b")
	require.Equal(t, []string{"nothing-chosen", "nothing-kept", "owners-unread /registry/configmaps/a/encrypted"},
		problems(r))
	r, out = run1(t, in, "secrets root --keep --namespace=a")
	require.Equal(t, transform.Changes{Deleted: 2}, r.Changes)
	require.Contains(t, keysOf(t, out), "secrets/a/root")
}

// TestRefused checks that deleting objects required by a cluster is refused, and possible with
// --allow.
func TestRefused(t *testing.T) {
	in := etcdtest.Build(t, strings.Join([]string{
		put("Namespace", "namespaces", "", "kube-system", ""),
		put("Namespace", "namespaces", "", "a", ""),
		binding("cluster-admin", "cluster-admin", "system:masters"), binding("other", "cluster-admin", "people"),
		binding("view", "view", "people"),
		put("ConfigMap", "configmaps", "kube-system", "kube-apiserver-legacy-service-account-token-tracking", ""),
		put("PersistentVolumeClaim", "persistentvolumeclaims", "a", "claim", ""),
		`put /registry/persistentvolumes/pv ` +
			strconv.Quote(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pv"},"spec":{`+
				`"persistentVolumeReclaimPolicy":"Delete","claimRef":{"namespace":"a","name":"claim",`+
				`"uid":"u-claim"}}}`),
	}, "\n"))
	for line, want := range map[string][]string{
		"ns kube-system": {"made-again /registry/namespaces/kube-system",
			"needed-namespace /registry/namespaces/kube-system"},
		"clusterrolebinding other":              nil,
		"clusterrolebinding cluster-admin view": nil,
		"clusterrolebindings --all": {"last-admin /registry/clusterrolebindings/cluster-admin",
			"last-admin /registry/clusterrolebindings/other"},
		"cm --all --namespace=kube-system": {
			"made-again /registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking"},
		"pvc --all --namespace=a": {"storage-released /registry/persistentvolumes/pv"},
		"ns a":                    {"storage-released /registry/persistentvolumes/pv"},
		"pods --all":              {"nothing-chosen"},
		"clusterrolebindings other cluster-admin": {"last-admin /registry/clusterrolebindings/cluster-admin",
			"last-admin /registry/clusterrolebindings/other"},
		"secret/x --namespace=a": {"not-found /registry/secrets/a/x"},
	} {
		r, out := run1(t, in, line)
		require.Equal(t, want, problems(r), line)
		if r.Outcome != transform.Refused {
			continue
		}
		require.NoFileExists(t, out)
		r, _ = run1(t, in, line, "needed-namespace", "last-admin", "not-found")
		require.NotEqual(t, transform.Refused, r.Outcome, line)
	}
}

func binding(name, role, group string) string {
	return "put /registry/clusterrolebindings/" + name + " " +
		strconv.Quote(fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding",`+
			`"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},`+
			`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":%q}]}`, name, role, group))
}

// TestServices checks that a Service is deleted with its Endpoints and its own IPAddress objects.
func TestServices(t *testing.T) {
	service := func(name string, ips string) string {
		return `put /registry/services/specs/a/` + name +
			` "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"` + name +
			`\",\"namespace\":\"a\",\"uid\":\"u-` + name + `\"},\"spec\":{\"clusterIPs\":` + ips + `}}"`
	}
	address := func(ip, of string) string {
		return `put /registry/ipaddresses/` + ip +
			` "{\"apiVersion\":\"networking.k8s.io/v1\",\"kind\":\"IPAddress\",\"metadata\":{\"name\":\"` + ip +
			`\"},\"spec\":{\"parentRef\":{\"resource\":\"services\",\"namespace\":\"a\",\"name\":\"` + of + `\"}}}"`
	}
	in := etcdtest.Build(t, strings.Join([]string{
		put("Namespace", "namespaces", "", "a", ""), service("x",
			`[\"010.000.0.1\",\"fd00::01\",\"10.0.0.2\",\"10.0.0.9\"]`), service("y", `[\"None\"]`),
		put("Endpoints", "services/endpoints", "a", "x", ""), put("Endpoints", "services/endpoints", "a", "y", ""),
		put("Endpoints", "services/endpoints", "a", "z", ""),
		address("10.0.0.1", "x"), address("fd00::1", "x"), address("10.0.0.2", "y"), address("10.0.0.3", "x"),
	}, "\n"))
	r, out := run1(t, in, "svc x --namespace=a")
	require.Empty(t, problems(r))
	require.Equal(t, []string{
		"ipaddresses/10.0.0.2", "ipaddresses/10.0.0.3", "namespaces/a", "services/endpoints/a/y",
		"services/endpoints/a/z", "services/specs/a/y",
	}, keysOf(t, out))
	_, out = run1(t, in, "ns a")
	require.Equal(t, []string{"ipaddresses/10.0.0.2", "ipaddresses/10.0.0.3"}, keysOf(t, out))
}
