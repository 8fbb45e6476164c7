package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The recorded relabelling gave every entry the storage version and kept its fields; ours also
// drops the field unknown to v1beta1.
func TestRelabelRecorded(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, name := range append(crNames(t), "elide", "untouched") {
		t.Run(name, func(t *testing.T) {
			obj := object(t, string(readFile(t, "cr/"+name+".settled")))
			entries := strings.Count(text(t, obj), `"fieldsV1":`)
			changed, _, err := crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Equal(t, entries, changed)
			recorded := string(readFile(t, "cr/"+name+".relabel"))
			require.Equal(t, strings.ReplaceAll(recorded, `"f:oldOnly":{},`, ""), text(t, obj))

			again := text(t, obj)
			changed, _, err = crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Zero(t, changed)
			require.Equal(t, again, text(t, obj))
		})
	}
}

const (
	emptySchema = `{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},` +
		`"b":{"type":"string"},"c":{"type":"string"}}}}}`
	webhook = `,"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://localhost/convert"},` +
		`"conversionReviewVersions":["v1"]}`
	storedAndOld = `{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":` + emptySchema +
		`}},{"name":"v1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}`
	notPreserving = `,"preserveUnknownFields":false`
)

// entry returns an entry of managedFields. seconds is the seconds part of its time.
func entry(manager, operation, subresource, apiVersion, seconds, fieldsV1 string) string {
	if subresource != "" {
		subresource = `,"subresource":"` + subresource + `"`
	}
	return `{"apiVersion":"` + apiVersion + `","fieldsType":"FieldsV1","fieldsV1":` + fieldsV1 + `,"manager":"` +
		manager +
		`","operation":"` + operation + `"` + subresource + `,"time":"2026-01-02T03:04:` + seconds + `Z"}`
}

func thingWith(t *testing.T, entries ...string) map[string]any {
	t.Helper()
	return object(t, `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"generation":1,"managedFields":[`+
		strings.Join(entries, ",")+
		`],"name":"x"},"spec":{"a":"1","b":"2"}}`)
}

func TestRelabel(t *testing.T) {
	const gone, listed, storage = "example.com/v0", "example.com/v1", "example.com/v2"
	const a, b, ab = `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:b":{}}}`, `{"f:spec":{"f:a":{},"f:b":{}}}`
	const unknown = `{"f:metadata":{"f:labels":{"f:l":{}}},"f:spec":{"f:a":{},"f:zzz":{"f:below":{}}},"f:top":{}}`
	const seed = `{"f:metadata":{"f:name":{}}}`
	none := parseCRD(t, crdOf(storedAndOld, notPreserving))
	hook := parseCRD(t, crdOf(storedAndOld, notPreserving+webhook))
	for _, c := range []struct {
		name          string
		crd           *CRD
		before, after []string
		changed       int
	}{
		{"nothing to do", none, []string{entry("m", "Apply", "", storage, "05", a),
			entry("n", "Update", "", storage, "01", `{"f:spec":{"f:zzz":{}}}`)}, nil, 0},
		{"a gone version", none, []string{entry("m", "Apply", "", gone, "05", a)},
			[]string{entry("m", "Apply", "", storage, "05", a)}, 1},
		{"a foreign group", none, []string{entry("m", "Update", "status", "v1", "05", a)},
			[]string{entry("m", "Update", "status", storage, "05", a)}, 1},
		{"a listed version that lacks a field", none, []string{entry("m", "Apply", "", listed, "05", a)},
			[]string{entry("m", "Apply", "", storage, "05", a)}, 1},
		{"unknown fields", none, []string{entry("m", "Apply", "", gone, "05", unknown)},
			[]string{entry("m", "Apply", "", storage, "05",
				`{"f:metadata":{"f:labels":{"f:l":{}}},"f:spec":{"f:a":{}}}`)}, 1},
		{"other entries stay", none, []string{entry("m", "Apply", "", gone, "05", a),
			entry("n", "Update", "", storage, "06", `{"f:zzz":{},"f:spec":{}}`)},
			[]string{entry("m", "Apply", "", storage, "05", a),
				entry("n", "Update", "", storage, "06", `{"f:spec":{},"f:zzz":{}}`)}, 1},
		{"one manager at both versions", none, []string{entry("m", "Update", "", storage, "05", a),
			entry("m", "Update", "", gone, "09", b), entry("o", "Update", "", storage, "07", b)},
			[]string{entry("o", "Update", "", storage, "07", b), entry("m", "Update", "", storage, "09", ab)}, 1},
		{"one manager at two old versions", none, []string{entry("m", "Update", "", gone, "09", a),
			entry("m", "Update", "", listed, "05", b)}, []string{entry("m", "Update", "", storage, "09", ab)}, 2},
		{"operations and subresources stay apart", none,
			[]string{entry("m", "Update", "status", gone, "05", b), entry("m", "Update", "", gone, "05", a),
				entry("m", "Apply", "", gone, "05", b), entry("m", "Apply", "status", gone, "05", b)},
			[]string{entry("m", "Apply", "", storage, "05", b), entry("m", "Apply", "status", storage, "05", b),
				entry("m", "Update", "", storage, "05", a), entry("m", "Update", "status", storage, "05", b)}, 4},
		{"sorted by time, then manager", none, []string{entry("z", "Update", "", gone, "01", a),
			entry("b", "Update", "", gone, "09", a), entry("a", "Update", "", gone, "09", a)},
			[]string{entry("z", "Update", "", storage, "01", a), entry("a", "Update", "", storage, "09", a),
				entry("b", "Update", "", storage, "09", a)}, 3},
		{"only unknown fields", none, []string{entry("m", "Apply", "", gone, "05", `{"f:zzz":{}}`),
			entry("n", "Update", "", storage, "06", a)}, []string{entry("n", "Update", "", storage, "06", a)}, 1},
		{"none left", none, []string{entry("m", "Apply", "", gone, "05", `{"f:zzz":{}}`),
			entry("n", "Update", "", gone, "06", `{}`)}, []string{entry("m", "Apply", "", storage, "05", seed)}, 2},
		{"written as a server writes it", none, []string{entry("m", "Apply", "", gone, "05",
			`{"f:spec":{"f:a":{".":{}},"f:b":{}}}`)}, []string{entry("m", "Apply", "", storage, "05", ab)}, 1},
		{"webhook: a listed version", hook, []string{entry("m", "Apply", "", listed, "05", a)}, nil, 0},
		{"webhook: all fields known", hook, []string{entry("m", "Apply", "", gone, "05", ab)},
			[]string{entry("m", "Apply", "", storage, "05", ab)}, 1},
		{"webhook: a field unknown", hook, []string{entry("m", "Apply", "", gone, "05", unknown),
			entry("n", "Update", "", storage, "06", a)}, []string{entry("n", "Update", "", storage, "06", a)}, 1},
		{"webhook: none left", hook, []string{entry("m", "Update", "status", gone, "05", unknown),
			entry("n", "Update", "", gone, "06", unknown)},
			[]string{entry("m", "Update", "status", storage, "05", seed)}, 2},
		{"unreadable fields", none, []string{entry("m", "Apply", "", gone, "05", `{"i:x":{}}`),
			entry("n", "Update", "", gone, "06", a)},
			[]string{entry("m", "Apply", "", gone, "05", `{"i:x":{}}`), entry("n", "Update", "", storage, "06", a)}, 1},
		{"unreadable operation", none, []string{entry("m", "Merge", "", gone, "05", a), `{}`,
			`{"apiVersion":"example.com/v0","fieldsV1":{},"operation":"Apply"}`}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := thingWith(t, c.before...)
			if c.after == nil {
				c.after = c.before
			}
			changed, _, err := c.crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Equal(t, c.changed, changed)
			require.Equal(t, text(t, thingWith(t, c.after...)), text(t, obj))
			changed, _, err = c.crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Zero(t, changed, "nothing more to do")
		})
	}
}

func TestRelabelWithoutWork(t *testing.T) {
	crd := parseCRD(t, crdOf(storedAndOld, notPreserving))
	for _, metadata := range []string{``, `,"metadata":{"name":"x"}`, `,"metadata":{"managedFields":[]}`,
		`,"metadata":{"managedFields":null}`, `,"metadata":5`} {
		obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing"`+metadata+`}`)
		before := text(t, obj)
		changed, _, err := crd.RelabelManagedFields(obj, false)
		require.NoError(t, err)
		require.Zero(t, changed)
		require.Equal(t, before, text(t, obj))
	}
	obj := thingWith(t, entry("m", "Apply", "", "example.com/v0", "05", `{}`))
	obj["apiVersion"] = "example.com/v1"
	_, _, err := crd.RelabelManagedFields(obj, false)
	require.ErrorIs(t, err, errNotStorageVersion)
}

// A schema knows the paths of an entry that pruning keeps.
func TestKnownFields(t *testing.T) {
	v := thing(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{
"a":{"type":"string"},"empty":{"type":"object"},"any":{"x-kubernetes-int-or-string":true},
"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"strict":{"type":"object","properties":{"x":{"type":"string"}}}}},
"map":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"string"}}}},
"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}},
"freelist":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"x":{"type":"string"}}}},
"tmpl":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}}}}`)
	for fields, known := range map[string]string{
		`{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:labels":{"f:a":{}},"f:zzz":{}},` +
			`"f:zzz":{}}`: `{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:labels":{"f:a":{}},"f:zzz":{}}}`,
		`{"f:spec":{".":{},"f:a":{"f:deep":{}},"f:empty":{".":{},"f:x":{}},` +
			`"f:any":{}}}`: `{"f:spec":{".":{},"f:any":{},"f:empty":{}}}`,
		`{"f:spec":{"f:free":{"f:y":{"f:z":{}},"f:strict":{"f:x":{},` +
			`"f:y":{}}}}}`: `{"f:spec":{"f:free":{"f:strict":{"f:x":{}},"f:y":{"f:z":{}}}}}`,
		`{"f:spec":{"f:map":{"f:k":{".":{},"f:x":{},` +
			`"f:y":{}}}}}`: `{"f:spec":{"f:map":{"f:k":{".":{},"f:x":{}}}}}`,
		`{"f:spec":{"f:list":{"k:{\"x\":\"1\"}":{".":{},"f:x":{},"f:y":{}},"v:\"s\"":{},` +
			`"i:0":{}}}}`: `{"f:spec":{"f:list":{"i:0":{},"k:{\"x\":\"1\"}":{".":{},"f:x":{}},"v:\"s\"":{}}}}`,
		`{"f:spec":{"f:freelist":{"k:{\"x\":\"1\"}":{"f:y":{}}}}}`: `{"f:spec":{"f:freelist":{"k:{\"x\":\"1\"}":{"f:y":{}}}}}`,
		`{"f:spec":{"f:a":{"i:0":{}},` +
			`"f:map":{"v:1":{}}}}`: `{}`,
		`{"f:spec":{"f:tmpl":{"f:apiVersion":{},"f:metadata":{"f:name":{}},"f:spec":{".":{},"f:q":{}},` +
			`"f:status":{}}}}`: `{"f:spec":{"f:tmpl":{"f:apiVersion":{},"f:metadata":{"f:name":{}},"f:spec":{}}}}`,
		`{"f:spec":{"f:free":{"v:1":{},"k:{\"a\":1}":{"f:b":{}}}},` +
			`"f:status":{"f:conditions":{"k:{\"type\":\"A\"}":{"f:x":{}}}}}`: `{"f:spec":{"f:free":{"k:{\"a\":1}":{"f:b":{}},"v:1":{}}}}`,
	} {
		set, ok := decodeFields(map[string]any(object(t, fields)))
		require.True(t, ok)
		kept, err := v.knownFields(set)
		require.NoError(t, err)
		got, err := encodeFields(kept)
		require.NoError(t, err)
		require.Equal(t, known+"\n", text(t, got))
	}
	all, ok := decodeFields(map[string]any(object(t, `{"f:zzz":{},"f:metadata":{}}`)))
	require.True(t, ok)
	for extra, size := range map[string]int{"": 2, notPreserving: 1} { // without a schema
		kept, err := version(t, parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true}`, extra)),
			"v1").knownFields(all)
		require.NoError(t, err)
		require.Equal(t, size, kept.Size())
	}
}

// FuzzRelabel checks that relabelling never fails, and that a second run changes nothing.
func FuzzRelabel(f *testing.F) {
	f.Add([]byte(`[` + entry("m", "Apply", "", "example.com/v0", "05",
		`{"f:spec":{"f:a":{},"k:{\"a\":1}":{"v:1":{}}}}`) + `]`))
	f.Add([]byte(`[` + entry("m", "Update", "status", "example.com/v1", "05", `{}`) + `,` +
		entry("m", "Update", "status", "v1", "06", `{".":{}}`) + `]`))
	f.Add([]byte(`[{},null,{"apiVersion":"","operation":"Apply","fieldsType":"FieldsV1"}]`))
	crd := parseCRD(f, crdOf(storedAndOld, notPreserving))
	f.Fuzz(func(t *testing.T, list []byte) {
		obj, err := tryObject([]byte(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"managedFields":` +
			string(list) + `},"spec":{"a":"x"}}`))
		if err != nil {
			t.Skip()
		}
		for _, finished := range []bool{false, true} {
			if finished {
				if _, err := crd.Finish(obj, Settled); err != nil {
					return
				}
			}
			_, _, err = crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			once := text(t, obj)
			changed, _, err := crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Zero(t, changed)
			require.Equal(t, once, text(t, obj))
		}
	})
}

// With all, harmless entries of other versions are relabelled too, so that those versions can be
// removed; with a webhook only if no field is lost.
func TestRelabelAll(t *testing.T) {
	const accepting = `{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":` + emptySchema +
		`}},{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":` + emptySchema + `}}`
	const a, b, unknown = `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:b":{}}}`, `{"f:spec":{"f:a":{},"f:zzz":{}}}`
	old, lossy := entry("old", "Update", "", "example.com/v1", "01", a),
		entry("lossy", "Update", "", "example.com/v1", "02", unknown)
	current := entry("current", "Update", "", "example.com/v2", "03", b)
	for _, tc := range []struct {
		name, crd string
		want      []string
		changed   int
	}{
		{"none", crdOf(accepting, notPreserving),
			[]string{entry("old", "Update", "", "example.com/v2", "01", a),
				entry("lossy", "Update", "", "example.com/v2", "02", a), current}, 2},
		{"webhook", crdOf(accepting, notPreserving+webhook),
			[]string{entry("old", "Update", "", "example.com/v2", "01", a), lossy, current}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			crd := parseCRD(t, tc.crd)
			obj := thingWith(t, old, lossy, current)
			changed, _, err := crd.RelabelManagedFields(obj, false)
			require.NoError(t, err)
			require.Zero(t, changed, "they do no harm")
			changed, _, err = crd.RelabelManagedFields(obj, true)
			require.NoError(t, err)
			require.Equal(t, tc.changed, changed)
			require.Equal(t, text(t, thingWith(t, tc.want...)), text(t, obj))
		})
	}
}
