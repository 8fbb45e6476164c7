package storageversion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/storageversion"
)

// rawObjects returns values that older servers, other tools and accidents left in etcd: the text
// after kind and apiVersion. META is the inside of good metadata.
func rawObjects() map[string]string {
	raw := map[string]string{
		"duplicate-keys": `"metadata":{META,"labels":{"a":"1"},"labels":{"b":"2"}},"spec":{"size":1,"size":2}`,
		"empty-metadata": `"metadata":{META,"labels":null,"annotations":{},"finalizers":[],"ownerReferences":[],` +
			`"managedFields":[]},"spec":{}`,
		"null-creation": `"metadata":{META,"creationTimestamp":null}`,
		"no-spec":       `"metadata":{META}`,
		"null-spec":     `"metadata":{META},"spec":null,"status":null`,
		"extra-root":    `"metadata":{META},"items":[1],"Spec":{"size":1},"spec":{"Size":1,"size":2},"list":{}`,
		"null-items": `"metadata":{META},"spec":{"list":[null,{"name":"x"},{"name":null,"v":null}],` +
			`"free":null,"tmpl":null,"ios":null}`,
		"null-list":  `"metadata":{META},"spec":{"list":null,"alphaDefault":null,"nul":null,"size":null}`,
		"empty-list": `"metadata":{META},"spec":{"list":[],"free":{},"tmpl":{}}`,
		"template-metadata": `"metadata":{META},"spec":{"tmpl":{"apiVersion":"v1","kind":"Pod",` +
			`"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"},"creationTimestamp":"2020-01-01T00:00:00Z",` +
			`"generation":0,"selfLink":"/x","name":""},"extra":null}}`,
		"template-no-kind": `"metadata":{META},"spec":{"tmpl":{"spec":{}}}`,
		"numbers": `"metadata":{META},"spec":{"size":3.0,"ratio":1e2,"big":-9223372036854775808,` +
			`"free":{"a":[1E3,0.1e-7,1.50,12345678901234567890,9223372036854775807,-0,1e21,1e-7,123456789.0]}}`,
		"escapes":           `"metadata":{META},"spec":{"text":"\u003c\/\u0041\ud83d\ude00\u0000\t\b\f\u007f\u2029"}`,
		"generation-zero":   `"metadata":{META,"generation":0},"spec":{"size":1}`,
		"generation-string": `"metadata":{META,"generation":"7"},"spec":{"size":1}`,
		"generation-float":  `"metadata":{META,"generation":2.0},"spec":{"size":1}`,
		"bad-labels": `"metadata":{META,"labels":{"a":"1","b":2},"annotations":"x","finalizers":"y"},` +
			`"spec":{"size":1}`,
		"fractional-time": `"metadata":{META,"creationTimestamp":"2020-01-01T00:00:00.123456Z"},"spec":{"size":1}`,
		"zoned-time":      `"metadata":{META,"creationTimestamp":"2020-01-01T02:00:00+02:00"},"spec":{"size":1}`,
		"bad-time":        `"metadata":{META,"creationTimestamp":"yesterday"},"spec":{"size":1}`,
		"owner": `"metadata":{META,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p",` +
			`"uid":"u","controller":true,"junk":1}]},"spec":{"size":1}`,
		"initializers": `"metadata":{META,"initializers":{"pending":[]},"clusterName":"c","selfLink":"/y"},` +
			`"spec":{"size":1}`,
		"managed-bad": `"metadata":{META,"managedFields":[{"manager":"x","operation":"Update"}]},` +
			`"spec":{"size":1}`,
		"managed-no-fields": `"metadata":{META,"managedFields":[{"manager":"x","operation":"Apply",` +
			`"apiVersion":"demo.example.com/v1alpha1","fieldsType":"FieldsV1"}]},"spec":{"size":1}`,
		"managed-time": `"metadata":{META,"managedFields":[{"manager":"x","operation":"Update",` +
			`"apiVersion":"demo.example.com/v1alpha1","time":"2020-01-01T00:00:00.5Z","fieldsType":"FieldsV1",` +
			`"fieldsV1":{ "f:spec" : {"f:size":{} } }}]},"spec":{"size":1}`,
		"managed-mismatched": `"metadata":{META,"managedFields":{"manager":"x"}},"spec":{"size":1}`,
		"spec-string":        `"metadata":{META},"spec":"text"`,
		"spec-list":          `"metadata":{META},"spec":[{"size":1}]`,
		"wrong-types": `"metadata":{META},"spec":{"size":"3","list":{"name":"x"},"text":{"a":1},"free":[1],` +
			`"tmpl":"x"},"status":"up"`,
		"too-large-number": `"metadata":{META},"spec":{"ratio":1e400}`,
		"lone-surrogate":   `"metadata":{META},"spec":{"text":"a\ud800b"}`,
		"invalid-utf8":     `"metadata":{META},"spec":{"text":"a` + "\xff\xfe" + `b"}`,
		"trailing":         `"metadata":{META},"spec":{"size":1}} trailing {`,
		"no-metadata":      `"spec":{"size":1}`,
		"null-metadata":    `"metadata":null,"spec":{"size":1}`,
		"bare-metadata":    `"metadata":{},"spec":{"size":1}`,
		"metadata-string":  `"metadata":"x"`,
		"odd-finalizers":   `"metadata":{META,"finalizers":["a/b","a/b",""]},"spec":{"size":1}`,
		"old-deletion": `"metadata":{META,"deletionTimestamp":"2020-01-02T00:00:00Z",` +
			`"deletionGracePeriodSeconds":30,"finalizers":["a/b"]},"spec":{"size":1}`,
		"generate-name": `"metadata":{META,"generateName":"g-","resourceVersion":"5"},"spec":{"size":1}`,
	}
	deep := strings.Repeat(`{"a":[`, 60) + "null" + strings.Repeat(`]}`, 60)
	raw["deep"] = `"metadata":{META},"spec":{"free":` + deep + `}`
	return raw
}

// unreadable returns the names of objects that a server cannot even GET. For an object without
// metadata the server panics.
func unreadable() []string {
	return []string{"metadata-string", "no-metadata", "too-large-number", "trailing"}
}

// TestServerRaw checks that for values that no server wrote, a real server and the migration
// produce the same value, or neither produces one.
func TestServerRaw(t *testing.T) {
	t.Parallel()
	s := shapes()[0]
	w := &world{shapes: []*shape{s}, names: map[string]string{}, of: map[string]*shape{}, once: map[string]string{},
		settled: map[string]string{}}
	w.storeRaw(t)
	in := values(t, w.before)
	for mode, want := range map[schema.Mode]map[string]string{schema.Pure: w.once, schema.Settled: w.settled} {
		require.Len(t, want, len(w.of)-len(unreadable())-3, "of which an update is refused")
		out, r := migrate(t, w.before, storageversion.Options{Mode: mode, KeepManagedFields: true},
			finding.Allowable(storageversion.Spec.Codes)...)
		ours := values(t, out)
		for _, key := range w.keys() {
			theirs, compared := want[key]
			switch {
			case slices.Contains(unreadable(), w.names[key]):
				require.Equal(t, in[key], ours[key], key)
			case compared && w.names[key] == "managed-bad": // a server drops unreadable managedFields
				require.Equal(t, theirs, without(t, ours[key], "managedFields"))
			case compared:
				require.Equal(t, theirs, ours[key], key)
			}
		}
		k := resource(t, r, s.crdName())
		require.Equal(t, []int{len(w.of) - len(unreadable()), len(unreadable())}, []int{k.Rewritten, k.Refused})
		require.Contains(t, k.StoredVersions.After, oldName)
	}
}

// storeRaw puts the values, and sends two no-op requests to the server.
func (w *world) storeRaw(t *testing.T) {
	t.Helper()
	s := w.shapes[0]
	c := startCluster(t, "", uncached)
	defer c.close()
	c.define(t, w.shapes)
	for name, raw := range rawObjects() {
		meta := fmt.Sprintf(`"name":%q,"namespace":"default","uid":"11111111-2222-3333-4444-555555555555"`, name)
		c.put(t, s.key(name), `{"kind":"Widget","apiVersion":"demo.example.com/v1alpha1",`+strings.ReplaceAll(raw,
			"META", meta)+"}")
		w.add(s, name)
	}
	c.broken = true
	c.flip(t, w.shapes)
	w.before = c.save(t)
	c.restart(t)
	client := c.of(s, newName)
	for _, key := range w.keys() {
		for _, into := range []map[string]string{w.once, w.settled} {
			obj, err := client.Get(t.Context(), w.names[key], metav1.GetOptions{})
			require.Equal(t, slices.Contains(unreadable(), w.names[key]), err != nil, "%s: %v", key, err)
			if err != nil {
				break
			}
			if _, err = client.UpdateStatus(t.Context(), obj, metav1.UpdateOptions{FieldManager: "probe"}); err != nil {
				t.Logf("%s: %v", key, err) // no name, or an invalid finalizer
				break
			}
			into[key], _ = c.record(t, key)
		}
	}
}
