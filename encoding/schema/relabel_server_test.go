package schema

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// twoVersions is a CRD of kind Thing; v2 changes fields of v1.
const twoVersions = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[
{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
 "a":{"type":"string"},"b":{"type":"string"},"old":{"type":"string"},"retyped":{"type":"string"},"open":{"type":"object"},
 "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"declared":{"type":"object","properties":{"x":{"type":"integer"}}}}},
 "tmpl":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
 "pod":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"q":{"type":"integer"}}}}},
 "labels":{"type":"object","additionalProperties":{"type":"string"}},"any":{"x-kubernetes-int-or-string":true},"when":{"type":"string","format":"date-time"},
 "items":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"}}}},
 "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer"}}}},
 "whole":{"type":"object","properties":{"x":{"type":"integer"}}}
}}}}}},
{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
 "a":{"type":"string"},"b":{"type":"string"},"new":{"type":"string"},"retyped":{"type":"integer"},"open":{"type":"object","properties":{"x":{"type":"integer"}}},
 "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
 "tmpl":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
 "pod":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object","properties":{"q":{"type":"integer"},"r":{"type":"integer"}}}}},
 "labels":{"type":"object","additionalProperties":{"type":"string","nullable":true}},"any":{"x-kubernetes-int-or-string":true},"when":{"type":"string"},
 "items":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"integer"}}}},
 "ports":{"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","properties":{"name":{"type":"string"},"port":{"type":"integer"}}}},
 "whole":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"x":{"type":"integer"}}}
}}}}}}]}}`

// lab is an API server with one CRD.
type lab struct {
	t    *testing.T
	etcd *etcdtest.Server
	api  *apitest.API
	crd  *CRD
}

func newLab(t *testing.T, crd *CRD) *lab {
	t.Helper()
	l := &lab{t: t, etcd: etcdtest.Start(t, filepath.Join(t.TempDir(), "lab.etcd")), crd: crd}
	data, err := crd.Stored("00000000-0000-4000-8000-000000000001", time.Now()) // a client could not create every CRD
	require.NoError(t, err)
	_, err = l.etcd.Client.Put(t.Context(), crdDir+crd.Object().Name, string(data))
	require.NoError(t, err)
	l.api = apitest.Start(t, l.etcd.URL)
	apitest.WaitEstablished(t, l.api, crd.Object().Name)
	return l
}

func (l *lab) key(name string) string { return "/registry/example.com/things/" + name }

// store writes an object directly to etcd and returns its revision.
func (l *lab) store(obj map[string]any) int64 {
	l.t.Helper()
	put, err := l.etcd.Client.Put(l.t.Context(), l.key((&unstructured.Unstructured{Object: obj}).GetName()),
		text(l.t, obj))
	require.NoError(l.t, err)
	return put.Header.Revision
}

func (l *lab) revision(name string) int64 {
	l.t.Helper()
	kept, err := l.etcd.Client.Get(l.t.Context(), l.key(name))
	require.NoError(l.t, err)
	require.Len(l.t, kept.Kvs, 1)
	return kept.Kvs[0].ModRevision
}

func (l *lab) things() dynamic.ResourceInterface {
	return l.api.Dynamic.Resource(l.crd.GroupResource().WithVersion(l.crd.StorageVersion()))
}

// apply makes a server-side apply at the storage version.
func (l *lab) apply(name, manager, spec string) (*unstructured.Unstructured, error) {
	l.t.Helper()
	config := object(l.t, `{"apiVersion":"`+l.crd.storageAPIVersion()+`","kind":"Thing","metadata":{"name":"`+name+
		`"},"spec":`+spec+`}`)
	return l.things().Apply(context.Background(), name, &unstructured.Unstructured{Object: config},
		metav1.ApplyOptions{FieldManager: manager})
}

// requireElided updates the object, and its status, without a change and requires that nothing is
// written.
func (l *lab) requireElided(name string) {
	l.t.Helper()
	before := l.revision(name)
	obj, err := l.things().Get(l.t.Context(), name, metav1.GetOptions{})
	require.NoError(l.t, err)
	_, err = l.things().Update(l.t.Context(), obj, metav1.UpdateOptions{FieldManager: "idle"})
	require.NoError(l.t, err)
	require.Equal(l.t, before, l.revision(name), "no-op update of %s", name)
}

// owned returns a Thing at v2 with fields applied by gitops at version.
func owned(t *testing.T, name, version, spec, fields string) map[string]any {
	t.Helper()
	return object(
		t, `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"managedFields":[
{"apiVersion":"`+version+`","fieldsType":"FieldsV1","fieldsV1":{"f:spec":`+
			fields+`},"manager":"gitops","operation":"Apply","time":"2026-01-02T03:04:05Z"}],
"name":"`+name+`","uid":"11111111-2222-3333-4444-5555555`+strings.Repeat("0", 5)+`"},"spec":`+spec+`}`)
}

// TestAcceptsAsAServer checks on a real server whether a server-side apply by another manager works
// next to an entry of v1, which decides about relabelling. After relabelling the apply works on
// every object, and a no-op update leaves our bytes.
func TestAcceptsAsAServer(t *testing.T) {
	l := newLab(t, parseCRD(t, twoVersions))
	for _, c := range []struct {
		name, spec, fields string
		broken             bool
	}{
		{"same", `{"a":"x"}`, `{"f:a":{}}`, false},
		{"newfield", `{"a":"x","new":"y"}`, `{"f:a":{},"f:old":{}}`, true},
		{"onlyold", `{"a":"x","new":"y"}`, `{"f:old":{}}`, true},
		{"retyped", `{"a":"x","retyped":5}`, `{"f:a":{},"f:retyped":{}}`, true},
		{"open", `{"a":"x","open":{"x":5}}`, `{"f:a":{},"f:open":{"f:x":{}}}`, false},
		{"below-free", `{"a":"x","free":{"declared":{"x":1,"y":2},"z":[1]}}`, `{"f:a":{},"f:free":{"f:declared":{}}}`,
			false},
		{"free-and-new", `{"a":"x","new":"y","free":{"q":{"r":1}}}`, `{"f:a":{},"f:free":{"f:q":{"f:r":{}}}}`, true},
		{"embedded",
			`{"a":"x","tmpl":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"l":"m"}},` +
				`"spec":{"q":1}}}`, `{"f:a":{},"f:tmpl":{"f:metadata":{"f:name":{}}}}`, false},
		{"embedded-new",
			`{"a":"x","new":"y","tmpl":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"q":1}}}`,
			`{"f:a":{},"f:tmpl":{"f:apiVersion":{},"f:metadata":{"f:name":{}},"f:spec":{".":{},"f:q":{}}}}`, true},
		{"pod", `{"a":"x","pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"q":1}}}`,
			`{"f:pod":{"f:spec":{"f:q":{}}}}`, false},
		{"pod-new", `{"a":"x","pod":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"q":1,"r":2}}}`,
			`{"f:pod":{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:name":{}},"f:spec":{"f:q":{}}}}`, true},
		{"labels", `{"a":"x","labels":{"k":"v","n":null}}`, `{"f:a":{},"f:labels":{"f:k":{}}}`, false},
		{"labels-new", `{"a":"x","new":"y","labels":{"k":"v"}}`, `{"f:a":{},"f:labels":{".":{},"f:k":{},"f:gone":{}}}`,
			true},
		{"any-int", `{"a":"x","any":5}`, `{"f:any":{}}`, false},
		{"any-text", `{"a":"x","any":"50%"}`, `{"f:any":{}}`, false},
		{"format", `{"a":"x","when":"never"}`, `{"f:when":{}}`, false},
		{"float", `{"items":[{"x":1.5}]}`, `{"f:items":{}}`, false},
		{"item-field", `{"items":[{"x":1},{"y":2}]}`, `{"f:items":{}}`, true},
		{"ports", `{"a":"x","ports":[{"name":"n","port":1}]}`,
			`{"f:ports":{"k:{\"name\":\"n\"}":{".":{},"f:name":{},"f:port":{}}}}`, false},
		{"ports-new", `{"new":"x","ports":[{"name":"n","port":1}]}`,
			`{"f:ports":{"k:{\"name\":\"n\"}":{".":{},"f:name":{},"f:port":{}}}}`, true},
		{"ports-twice", `{"a":"x","ports":[{"name":"n","port":1},{"name":"n","port":2}]}`, `{"f:a":{}}`, true},
		{"ports-keyless", `{"a":"x","ports":[{"port":1}]}`, `{"f:a":{}}`, true},
		{"whole-new", `{"new":"x","whole":{"x":1}}`, `{"f:whole":{"f:x":{}}}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.requireSameVerdict(t, owned(t, c.name, "example.com/v1", c.spec, c.fields), c.broken)
		})
	}
}

// A CRD from before structural schemas keeps and accepts unknown fields, but the types of known
// fields still count.
func TestAcceptsUnknownFieldsAsAServer(t *testing.T) {
	asV1beta1 := strings.Replace(twoVersions, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1", 1)
	l := newLab(t, parseCRD(t, asV1beta1))
	require.True(t, l.crd.Object().Spec.PreserveUnknownFields)
	for _, c := range []struct {
		name, spec string
		broken     bool
	}{
		{"newfield", `{"a":"x","new":"y","newer":{"z":[1]}}`, false},
		{"retyped", `{"a":"x","retyped":5}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l.requireSameVerdict(t, owned(t, c.name, "example.com/v1", c.spec, `{"f:old":{},"f:a":{}}`), c.broken)
		})
	}
}

func (l *lab) requireSameVerdict(t *testing.T, obj map[string]any, broken bool) {
	t.Helper()
	name := (&unstructured.Unstructured{Object: obj}).GetName()
	l.store(obj)
	_, err := l.apply(name, "other", `{"b":"other"}`)
	require.Equal(t, broken, err != nil, "server: %v", err)

	before := text(t, obj)
	changed, _, err := l.crd.RelabelManagedFields(obj, false)
	require.NoError(t, err)
	require.Equal(t, broken, changed == 1)
	if !broken {
		require.Equal(t, before, text(t, obj))
		return
	}
	l.store(obj)
	if name != "onlyold" { // the seed of onlyold is lost with the next write
		l.requireElided(name)
	}
	applied, err := l.apply(name, "other", `{"b":"other"}`)
	require.NoError(t, err)
	for _, entry := range applied.GetManagedFields() {
		require.NotEqual(t, "before-first-apply", entry.Manager)
	}
}

// TestApplyAfterAVersionIsGone checks the purpose of a migration: objects are rewritten directly in
// etcd, storedVersions is trimmed, the old version is removed from the CRD; the owners of the old
// version's fields still own them.
func TestApplyAfterAVersionIsGone(t *testing.T) {
	l := newLab(t, parseCRD(t, twoVersions))
	const spec, fields = `{"a":"x","b":"y"}`, `{"f:a":{},"f:b":{},"f:old":{}}`
	relabelled := map[string]string{"gone": "example.com/v1", "foreign": "other.example.com/v1", "nothing": "v0",
		"idle": "example.com/v1"}
	for name, version := range relabelled {
		obj := owned(t, name, version, spec, fields)
		if name == "gone" { // the CRD still has this version
			one, err := ParseCRD([]byte(strings.Replace(twoVersions, `"name":"v1"`, `"name":"v0"`, 1)))
			require.NoError(t, err)
			changed, _, err := one.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Equal(t, 1, changed)
		} else {
			changed, _, err := l.crd.RelabelManagedFields(obj, name == "idle") // the version of idle is removed later
			require.NoError(t, err)
			require.Equal(t, 1, changed)
		}
		l.store(obj)
	}
	l.store(owned(t, "stale", "example.com/v1", spec, fields))
	l.store(owned(t, "stale-foreign", "other.example.com/v1", spec, fields))
	l.dropVersion("v1")

	// The server lists the version as gone before it replaces the old handler, so the old handler
	// may still answer the first requests.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := l.apply("stale", "other", `{"new":"z"}`)
		assert.ErrorContains(c, err, "request to convert CR", "by any manager")
	}, 20*time.Second, 20*time.Millisecond)
	_, err := l.apply("stale-foreign", "other", `{"new":"z"}`)
	require.ErrorContains(t, err, "not suitable for converting", "by any manager")
	for name := range relabelled {
		l.requireElided(name)
		_, err := l.apply(name, "other", `{"new":"z"}`)
		require.NoError(t, err)
		_, err = l.apply(name, "other", `{"a":"other"}`)
		require.ErrorContains(t, err, `conflict with "gitops"`)
		applied, err := l.apply(name, "gitops", `{"a":"x"}`)
		require.NoError(t, err)
		require.Equal(t, map[string]any{"a": "x", "new": "z"}, applied.Object["spec"], "b went with its owner")
	}
}

// TestApplyWithADeadWebhook has entries of a gone version while the webhook does not answer: all
// fields are known, or the last entry leaves its seed.
func TestApplyWithADeadWebhook(t *testing.T) {
	const conversion = `"conversion":{"strategy":"Webhook",` +
		`"webhook":{"clientConfig":{"url":"https://127.0.0.1:1/convert"},"conversionReviewVersions":["v1"]}},` +
		`"versions":`
	l := newLab(t, parseCRD(t, strings.Replace(twoVersions, `"versions":`, conversion, 1)))
	require.True(t, l.crd.Webhook())
	for name, fields := range map[string]string{"owned": `{"f:a":{},"f:b":{}}`, "seeded": `{"f:a":{},"f:old":{}}`} {
		obj := owned(t, name, "example.com/v0", `{"a":"x","b":"y"}`, fields)
		l.store(obj)
		_, err := l.apply(name, "other", `{"new":"z"}`)
		require.Error(t, err)
		changed, _, err := l.crd.RelabelManagedFields(obj, false)
		require.NoError(t, err)
		require.Equal(t, 1, changed)
		l.store(obj)
	}
	l.requireElided("owned")
	applied, err := l.apply("owned", "gitops", `{"a":"x"}`)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": "x"}, applied.Object["spec"], "b went with its owner")

	applied, err = l.apply("seeded", "gitops", `{"a":"changed"}`)
	require.NoError(t, err, "no conflict with before-first-apply")
	require.Equal(t, map[string]any{"a": "changed", "b": "y"}, applied.Object["spec"],
		"whose b was is not known any more")
	require.Len(t, applied.GetManagedFields(), 1)
}

// dropVersion removes a version from storedVersions, like an offline edit, and then from the CRD,
// like a client.
func (l *lab) dropVersion(name string) {
	l.t.Helper()
	key := crdDir + l.crd.Object().Name
	kept, err := l.etcd.Client.Get(l.t.Context(), key)
	require.NoError(l.t, err)
	trimmed, err := SetStoredVersions(kept.Kvs[0].Value, []string{l.crd.StorageVersion()})
	require.NoError(l.t, err)
	_, err = l.etcd.Client.Put(l.t.Context(), key, string(trimmed))
	require.NoError(l.t, err)
	l.updateCRD(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	})
	gone := l.api.Dynamic.Resource(l.crd.GroupResource().WithVersion(name))
	require.Eventually(l.t, func() bool {
		_, err := gone.List(l.t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	}, 20*time.Second, 20*time.Millisecond)
}

func (l *lab) updateCRD(change func(crd *apiextensionsv1.CustomResourceDefinition)) {
	l.t.Helper()
	client := l.api.Extensions.ApiextensionsV1().CustomResourceDefinitions()
	crd, err := client.Get(l.t.Context(), l.crd.Object().Name, metav1.GetOptions{})
	require.NoError(l.t, err)
	change(crd)
	_, err = client.Update(l.t.Context(), crd, metav1.UpdateOptions{FieldManager: "tester"})
	require.NoError(l.t, err)
}

// TestFlipAsAServer compares SetStorageVersion with the bytes that a server stores when a client
// flips the storage version, except for managedFields and storedVersions.
func TestFlipAsAServer(t *testing.T) {
	l := newLab(t, parseCRD(t, twoVersions))
	read := func() []byte {
		kept, err := l.etcd.Client.Get(t.Context(), crdDir+l.crd.Object().Name)
		require.NoError(t, err)
		return kept.Kvs[0].Value
	}
	for _, version := range []string{"v1", "v2"} {
		before := read()
		l.updateCRD(func(crd *apiextensionsv1.CustomResourceDefinition) {
			for i := range crd.Spec.Versions {
				crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
			}
		})
		server := parseCRD(t, string(read()))
		require.Contains(t, server.StoredVersions(), version)
		ours, err := SetStorageVersion(before, version)
		require.NoError(t, err)
		ours, err = SetStoredVersions(ours, server.StoredVersions())
		require.NoError(t, err)
		require.Equal(t, withoutManagedFields(t, read()), withoutManagedFields(t, ours))
	}
}

func withoutManagedFields(t *testing.T, crd []byte) string {
	t.Helper()
	out, err := encoding.Set(crd, nil, "metadata", "managedFields")
	require.NoError(t, err)
	return string(out)
}
