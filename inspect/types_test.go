package inspect

import (
	"cmp"
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

func typesOf(t testing.TB, records ...record) (*Reader, *Types) {
	t.Helper()
	r := NewReader(written(t, append(records, record{marker,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default"}}`})...), nil)
	types, err := r.Types(context.Background())
	require.NoError(t, err)
	return r, types
}

func TestResolve(t *testing.T) {
	_, types := typesOf(t, crd("widgets", "example.com", "Widget", none, ""),
		crd("widgets", "other.com", "Widget", none, ""),
		crd("gadgets", "example.com", "Gadget", none, ""), crd("services", "example.com", "Service", none, ""),
		object("example.org/strays/ns/a", "example.org/v1", "Stray"),
		object("novelties/ns/a", "new.k8s.io/v1", "Novelty"))
	for name, want := range map[string]string{
		"pods": "pods", "po": "pods", "pod": "pods", "Pod": "pods", "deploy": "deployments.apps",
		"deployments.apps": "deployments.apps",
		"deployment.apps":  "deployments.apps", "Deployments.v1.Apps": "deployments.apps",
		"deploy.apps": "deployments.apps",
		"svc":         "services", "services": "services", "services.example.com": "services.example.com",
		"ev":                   "events",
		"events.events.k8s.io": "events", "events.v1.events.k8s.io": "events",
		"ingresses.extensions": "ingresses.networking.k8s.io",
		"roles.rbac":           "roles.rbac.authorization.k8s.io",
		"crd":                  "customresourcedefinitions.apiextensions.k8s.io",
		"gadgets":              "gadgets.example.com", "gadget": "gadgets.example.com",
		"widgets.example.com":      "widgets.example.com",
		"widget.v1beta1.other.com": "widgets.other.com", "widgets.v1.example.com": "widgets.example.com",
		"strays": "strays.example.org", "stray": "strays.example.org", "novelties": "novelties", "novelty": "novelties",
		"po,pods,svc": "pods services", "namespaces,gadgets": "namespaces gadgets.example.com",
		"all": "pods replicationcontrollers services daemonsets.apps deployments.apps replicasets.apps " +
			"statefulsets.apps " +
			"horizontalpodautoscalers.autoscaling cronjobs.batch jobs.batch",
	} {
		found, err := types.Resolve(name)
		require.NoError(t, err, name)
		var names []string
		for _, one := range found {
			names = append(names, one.Name())
		}
		require.Equal(t, want, strings.Join(names, " "), name)
	}
	for name, want := range map[string]string{
		"widgets":            `"widgets": more than one type has that name: widgets.example.com, widgets.other.com`,
		"gadget.example.org": `"gadget.example.org": no such type; there is gadgets.example.com`,
		"widgets.v7.example.com": `"widgets.v7.example.com": no such type; there are widgets.example.com, ` +
			`widgets.other.com`,
		"psod":  `"psod": no such type; there is pods`,
		"quux":  `"quux": no such type`,
		"":      `"": no such type`,
		"pods,": `"": no such type`,
	} {
		_, err := types.Resolve(name)
		require.EqualError(t, err, want)
	}
}

// TestBuiltinTypes checks that this build knows the kind of every built-in type in its group, that
// every built-in type has a folder of its own, and that no kind of this build is missing.
func TestBuiltinTypes(t *testing.T) {
	dirs, kinds := map[string]string{}, map[gvr.GroupResource]string{}
	for _, b := range Builtins() {
		dir := string(keys.Kubernetes{Prefix: "/p"}.Dir(b.Resource))
		require.Empty(t, dirs[dir], b.Name())
		dirs[dir] = b.Name()
		require.True(t, keys.IsBuiltin(b.Resource), b.Name())
		known := b.Kind == "APIService" || b.Kind == "CustomResourceDefinition" || b.Kind == "PodSecurityPolicy"
		for _, version := range []string{"v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"} {
			known = known || native.Known(gvr.GroupVersionKind{Group: b.Resource.Group, Version: version, Kind: b.Kind})
		}
		require.True(t, known, b.Name())
		kinds[b.Resource] = b.Kind
	}
	meta := reflect.TypeFor[metav1.ListOptions]().PkgPath()
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		kind, isList := strings.CutSuffix(gvk.Kind, "List")
		if !isList || of.PkgPath() == meta || kind == "ComponentStatus" { // never stored
			continue
		}
		plural, _ := apimeta.UnsafeGuessKindToResource(gvk.GroupVersion().WithKind(kind))
		resource := cmp.Or(otherGroups()[plural.GroupResource()], plural.GroupResource())
		require.Equal(t, kind, kinds[resource], "builtins.txt lacks a line for %s", resource)
	}
}

func TestObjects(t *testing.T) {
	ctx := context.Background()
	r, types := typesOf(t, object("pods/b/a", "v1", "Pod"), object("pods/a/b", "v1", "Pod"),
		object("pods/a/a", "v1", "Pod"), record{"/registry/pods/a/c", "broken"}, record{"/registry/pods/a/d",
			"k8s\x00\x0a\x09\x0a\x02v9\x12\x03Pod\x12\x05\x0a\x03\x0a\x01x"},
		record{"/registry/pods/a/f", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01f"},
		record{"/registry/pods/a/e", "k8s:enc:aescbc:v1:key1:xxx"}, object("podtemplates/a/a", "v1", "PodTemplate"))
	pods := types.Of(gvr.GroupResource{Resource: "pods"})
	require.Equal(t, 7, pods.Objects)
	list := func(in Selection) (out []string) {
		for o, err := range r.Objects(ctx, pods, in) {
			require.NoError(t, err)
			text := o.Parsed.Namespace + "/" + o.Parsed.Name
			switch {
			case o.Err != nil:
				require.Nil(t, o.Content)
				text += " " + o.Err.Error()
			case o.Partial:
				text += " partial"
				fallthrough
			default:
				require.Contains(t, o.Content["metadata"], "resourceVersion")
			}
			out = append(out, text)
		}
		return out
	}
	require.Equal(t, []string{"a/a", "a/b", "a/c unsupported value format: 6 bytes, neither a JSON object nor " +
		"protobuf, CBOR or encrypted", "a/d partial",
		`a/e value is encrypted by aescbc:v1:key1, and no encryption configuration was given`,
		"a/f a v1 ConfigMap, under the key of a Pod", "b/a"}, list(Selection{}))
	require.Equal(t, []string{"b/a"}, list(Selection{Namespace: "b"}))
	require.Equal(t, []string{"a/a", "b/a"}, list(Selection{Names: []string{"a"}}))
	require.Empty(t, list(Selection{Namespace: "c"}))
}

func TestNewestTime(t *testing.T) {
	r, _ := typesOf(t, record{"/registry/pods/a/a",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z",` +
			`"deletionTimestamp":"2026-02-02T03:04:05Z"},` +
			`"status":{"conditions":[{"lastTransitionTime":"2026-01-02T03:04:07Z"}],` +
			`"validUntil":"2036-01-02T03:04:05Z"}}`})
	newest, err := NewestTime(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, "2026-01-02T03:04:07Z", newest.Format("2006-01-02T15:04:05Z07:00"))
	r, _ = typesOf(t)
	newest, err = NewestTime(context.Background(), r)
	require.NoError(t, err)
	require.True(t, newest.IsZero())
}

// TestTypesEver checks that types of deleted records resolve only if no other type has the name;
// definitions are parsed from their last value.
func TestTypesEver(t *testing.T) {
	ctx := context.Background()
	path := etcdtest.Build(t, `
put /registry/namespaces/default "{}"
put /registry/example.com/widgets/a/one "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\"}"
put /registry/strays.io/strays/a/one "{\"apiVersion\":\"strays.io/v1\",\"kind\":\"Stray\"}"
put /registry/other.io/widgets/a/one "{\"apiVersion\":\"other.io/v1\",\"kind\":\"Widget\"}"
del /registry/strays.io/strays/a/one
del /registry/other.io/widgets/a/one
`)
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	types, err := NewReader(s, nil).TypesEver(ctx)
	require.NoError(t, err)
	for name, want := range map[string]string{
		"strays": "strays.strays.io", "Stray": "strays.strays.io", "widgets": "widgets.example.com",
		"widgets.other.io": "widgets.other.io",
	} {
		found, err := types.Resolve(name)
		require.NoError(t, err, name)
		require.Len(t, found, 1)
		require.Equal(t, want, found[0].Name())
		require.True(t, found[0].Namespaced)
		require.Same(t, found[0], types.Of(found[0].Resource))
	}
	_, err = types.Resolve("strais")
	require.EqualError(t, err, `"strais": no such type; there is strays.strays.io`)
	for _, one := range types.All() {
		require.NotEqual(t, "strays", one.Resource.Resource)
	}
}

// TestDeletedObjects checks that deleted objects are returned at their last state, in the order of
// the deletions; recreated objects are not deleted.
func TestDeletedObjects(t *testing.T) {
	ctx := context.Background()
	path := etcdtest.Build(t, `
put /registry/namespaces/default "{}"
put /registry/pods/a/one "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"one\"}}"
put /registry/pods/a/two "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"two\"}}"
put /registry/pods/b/three "broken"
put /registry/podtemplates/a/x "{}"
del /registry/pods/b/three
del /registry/pods/a/one
del /registry/pods/a/two
del /registry/podtemplates/a/x
put /registry/pods/a/two "{}"
`)
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	r := NewReader(s, nil)
	types, err := r.Types(ctx)
	require.NoError(t, err)
	list := func(in Selection) (names []string, revisions []int64) {
		for o, err := range r.DeletedObjects(ctx, types.Of(gvr.GroupResource{Resource: "pods"}), in) {
			require.NoError(t, err)
			if o.Parsed.Name == "three" {
				require.Error(t, o.Err)
				require.Nil(t, o.Content)
			} else {
				require.NoError(t, o.Err)
				require.Equal(t, map[string]any{"name": o.Parsed.Name, "resourceVersion": "3"}, o.Content["metadata"])
			}
			names, revisions = append(names, o.Parsed.Name), append(revisions, o.Revision)
		}
		return names, revisions
	}
	names, revisions := list(Selection{})
	require.Equal(t, []string{"three", "one"}, names)
	require.Equal(t, []int64{7, 8}, revisions)
	names, _ = list(Selection{Namespace: "b"})
	require.Equal(t, []string{"three"}, names)
}
