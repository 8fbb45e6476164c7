package encoding_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
)

const managedBefore = `{"f:metadata":{"f:labels":{"f:uid-1":{}},"f:ownerReferences":{".":{},` +
	`"k:{\"uid\":\"uid-1\"}":{},"k:{\"uid\":\"uid-5\"}":{"f:name":{}}}},"f:spec":{"f:x":{"k:{\"uid\":\"uid-1\"}":{}}}}`
const managedAfter = `{"f:metadata":{"f:labels":{"f:uid-1":{}},"f:ownerReferences":{".":{},` +
	`"k:{\"uid\":\"uid-5\"}":{"f:name":{}},"k:{\"uid\":\"uid-9\"}":{}}},"f:spec":{"f:x":{"k:{\"uid\":\"uid-1\"}":{}}}}`

// owned sets three references and two managers.
func owned(obj metav1.Object, uid1, fieldsV1 string) {
	yes, no := true, false
	group := "old.example.com/v1"
	if uid1 == "uid-9" {
		group = "new.example.com/v3"
	}
	obj.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: "n", UID: "uid-5"},
		{APIVersion: group, Kind: "Thing", Name: "a<b", UID: types.UID(uid1), Controller: &yes},
		{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "uid-6", Controller: &no, BlockOwnerDeletion: &no},
	})
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "m", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: &metav1.FieldsV1{Raw: []byte(fieldsV1)}},
		{Manager: "other", Operation: "Update", APIVersion: "v1"},
	})
}

func moveOwner(o encoding.OwnerReference) (encoding.OwnerReference, bool) {
	if o.APIVersion != "old.example.com/v1" {
		return o, false
	}
	o.APIVersion, o.UID = "new.example.com/v3", "uid-9"
	return o, true
}

func mustMoveOwner(t testing.TB) func([]byte) []byte {
	return func(data []byte) []byte {
		out, changed, err := encoding.EditOwnerReferences(data, moveOwner)
		require.NoError(t, err)
		require.Equal(t, 1, changed)
		return out
	}
}

// The edited bytes equal the output of k8s.io/api after the same edit of the typed object.
func TestOwnerEditEqualsTypedEdit(t *testing.T) {
	for name, empty := range natives() {
		data := stored(t, "k8s/"+name+".pb")
		obj := decode(t, data, empty())
		owned(obj, "uid-1", managedBefore)
		before := rewrap(t, data, obj)
		owned(obj, "uid-9", managedAfter)
		after := mustMoveOwner(t)(before)
		requireSame(t, rewrap(t, data, obj), after, name)
		require.Equal(t, obj, decode(t, after, empty()), name)
		requireUnknownFieldsSurvive(t, before, metaLevels(), mustMoveOwner(t))
	}
}

// The edited JSON text equals a server's encoding after the same edit of the decoded object. The
// order of fields of a Go type stays.
func TestOwnerEditOfJSONAndCBOR(t *testing.T) {
	obj, _, err := encoding.DecodeObject(stored(t, "cr/put-beta.after"))
	require.NoError(t, err)
	for _, format := range []encoding.Format{encoding.FormatJSON, encoding.FormatCBOR} {
		setOwners(t, obj, "uid-1", managedBefore)
		before, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		setOwners(t, obj, "uid-9", managedAfter)
		after, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		require.Equal(t, string(after), string(mustMoveOwner(t)(before)), format)
	}

	crd := string(stored(t, "crd.etcd"))
	owner := `"ownerReferences":[{"apiVersion":"%s","kind":"Thing","name":"a","uid":"%s"}],"managedFields"`
	before := strings.Replace(crd, `"managedFields"`, fmt.Sprintf(owner, "old.example.com/v1", "uid-1"), 1)
	after := strings.Replace(crd, `"managedFields"`, fmt.Sprintf(owner, "new.example.com/v3", "uid-9"), 1)
	require.Equal(t, after, string(mustMoveOwner(t)([]byte(before))))
}

func setOwners(t testing.TB, obj map[string]any, uid1, fieldsV1 string) {
	t.Helper()
	var meta metav1.ObjectMeta
	owned(&meta, uid1, fieldsV1)
	wrapper := wrapJSON(t, meta)
	metadata := obj["metadata"].(map[string]any)
	metadata["ownerReferences"] = wrapper["ownerReferences"]
	metadata["managedFields"] = wrapper["managedFields"]
}

func wrapJSON(t testing.TB, meta metav1.ObjectMeta) map[string]any {
	t.Helper()
	out, err := encoding.EncodeObject(map[string]any{"metadata": meta}, encoding.FormatJSON)
	require.NoError(t, err)
	obj, _, err := encoding.DecodeObject(out)
	require.NoError(t, err)
	return obj["metadata"].(map[string]any)
}

// Space around values outside the edited objects stays, and so does the last byte.
func TestOwnerEditOfSpacedJSON(t *testing.T) {
	const before = " {\"spec\": { \"x\" : [ 1 , \"}]\\\"\" ] },\n \"metadata\":{\"ownerReferences\":[ {\"uid\" " +
		":\"u\", \"extra\": {\"a\" :1}, \"apiVersion\":\"old.example.com\\/v1\"} ]}}\n\n"
	const after = " {\"spec\":{ \"x\" : [ 1 , \"}]\\\"\" ] " +
		"},\"metadata\":{\"ownerReferences\":[{\"uid\":\"uid-9\",\"extra\":{\"a\" " +
		":1},\"apiVersion\":\"new.example.com/v3\"}]}}\n\n"
	require.Equal(t, after, string(mustMoveOwner(t)([]byte(before))))
}

// Each field can be changed, set and removed, in every format.
func TestOwnerEditOfEachField(t *testing.T) {
	yes, no := true, false
	full := encoding.OwnerReference{APIVersion: "v1", Kind: "K", Name: "n", UID: "u", Controller: &yes,
		BlockOwnerDeletion: &no}
	bare := encoding.OwnerReference{APIVersion: "v1", Kind: "K", Name: "n", UID: "u"}
	for _, tc := range []struct{ from, to encoding.OwnerReference }{
		{full, bare},
		{bare, full},
		{full, encoding.OwnerReference{APIVersion: "v2", Kind: "L", Name: "m", UID: "w", Controller: &no,
			BlockOwnerDeletion: &yes}},
		{full, encoding.OwnerReference{}},
		{encoding.OwnerReference{}, full},
	} {
		for format, data := range ownerInEveryFormat(t, tc.from) {
			m, err := encoding.ReadMeta(data)
			require.NoError(t, err)
			require.Equal(t, []encoding.OwnerReference{tc.from}, m.OwnerReferences, format)
			out, changed, err := encoding.EditOwnerReferences(data,
				func(o encoding.OwnerReference) (encoding.OwnerReference, bool) {
					return tc.to, true
				})
			require.NoError(t, err)
			require.Equal(t, 1, changed)
			require.Equal(t, ownerInEveryFormat(t, tc.to)[format], out, "%s: %+v", format, tc)
		}
	}
}

func ownerInEveryFormat(t testing.TB, o encoding.OwnerReference) map[encoding.Format][]byte {
	t.Helper()
	obj := natives()["core.v1.ConfigMap"]()
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name,
		UID: types.UID(o.UID), Controller: o.Controller, BlockOwnerDeletion: o.BlockOwnerDeletion}})
	content := map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": wrapJSON(t, metav1.ObjectMeta{OwnerReferences: obj.GetOwnerReferences()})}
	out := map[encoding.Format][]byte{encoding.FormatProtobuf: wrap(t, "v1", "ConfigMap", obj)}
	for _, format := range []encoding.Format{encoding.FormatJSON, encoding.FormatCBOR} {
		data, err := encoding.EncodeObject(content, format)
		require.NoError(t, err)
		out[format] = data
	}
	return out
}

// An edit without a change returns its input, in the same memory.
func TestIdentityEditsReturnTheirInput(t *testing.T) {
	for _, name := range []string{"k8s/apps.v1.DaemonSet.pb", "k8s/core.v1.Secret.pb", "cr/put-beta.after", "crd.etcd",
		"c1.cbor", "cr/raw1.before"} {
		data := stored(t, name)
		out, changed, err := encoding.EditOwnerReferences(data, keepOwner)
		require.NoError(t, err, name)
		require.Zero(t, changed)
		require.Same(t, &data[0], &out[0], name)
		require.Len(t, out, len(data))
	}
}

// edit gets the references in order, as stored, regardless of the results of earlier calls.
func TestOwnerEditSeesEachReferenceOnce(t *testing.T) {
	for _, data := range [][]byte{
		[]byte(`{"metadata":{"ownerReferences":[{"uid":"a"},{"uid":"b"},{"uid":"c"}]}}`),
		[]byte("k8s\x00\x12\x11\x0a\x0f\x6a\x03\x22\x01a\x6a\x03\x22\x01b\x6a\x03\x22\x01c"),
	} {
		var seen []string
		out, changed, err := encoding.EditOwnerReferences(data,
			func(o encoding.OwnerReference) (encoding.OwnerReference, bool) {
				seen = append(seen, o.UID)
				o.UID += o.UID
				return o, o.UID != "bb"
			})
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "c"}, seen)
		require.Equal(t, 2, changed)
		m, err := encoding.ReadMeta(out)
		require.NoError(t, err)
		require.Equal(t, []encoding.OwnerReference{{UID: "aa"}, {UID: "b"}, {UID: "cc"}}, m.OwnerReferences)
	}
}

// managedFields change only if readable; other managedFields stay.
func TestManagedFieldsFollow(t *testing.T) {
	for before, after := range map[string]string{
		managedBefore: managedAfter,
		`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"uid-1\"}":{},` +
			`"k:{\"uid\":\"uid-9\"}":{}}}}`: `{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"uid-9\"}":{}}}}`,
		`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"uid-2\"}":{}}}}`:                   "",
		`{"f:metadata":{"f:ownerReferences":{"k:nonsense":{},"v:1":{},"k:[]":{},"k:{}":{}}}}`: "",
		`{"f:metadata":{"f:ownerReferences":[]}}`:                                             "",
		`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"uid-1\"`:                           "",
		`[{"f:ownerReferences":{"k:{\"uid\":\"uid-1\"}":{}}}]`:                                "",
	} {
		if after == "" {
			after = before
		}
		obj := natives()["core.v1.Secret"]()
		owned(obj, "uid-1", before)
		out := mustMoveOwner(t)(wrap(t, "v1", "Secret", obj))
		require.Equal(t, after, string(decode(t, out,
			natives()["core.v1.Secret"]()).GetManagedFields()[0].FieldsV1.Raw))
	}
}

// Two owners may become one: one path stays. Among unsorted paths the last one stays.
func TestManagedFieldsOfOwnersThatBecomeOne(t *testing.T) {
	toOne := func(o encoding.OwnerReference) (encoding.OwnerReference, bool) { o.UID = "n"; return o, true }
	for before, after := range map[string]string{
		`{"k:{\"uid\":\"u2\"}":{},".":{},` +
			`"k:{\"uid\":\"u1\"}":{}}`: `{".":{},"k:{\"uid\":\"n\"}":{}}`,
		`{".":{},"k:{\"uid\":\"o\"}":{},"k:{\"uid\":\"u1\"}":{"f:x":{}},` +
			`"k:{\"uid\":\"u2\"}":{}}`: `{".":{},"k:{\"uid\":\"n\"}":{"f:x":{}},"k:{\"uid\":\"o\"}":{}}`,
	} {
		const object = `{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":%s}}}],` +
			`"ownerReferences":[{"uid":"%s"},{"uid":"%s"}]}}`
		data, want := []byte(fmt.Sprintf(object, before, "u1", "u2")), fmt.Sprintf(object, after, "n", "n")
		out, changed, err := encoding.EditOwnerReferences(data, toOne)
		require.NoError(t, err)
		require.Equal(t, 2, changed)
		require.Equal(t, want, string(out))

		obj, _, err := encoding.DecodeObject(data)
		require.NoError(t, err)
		inCBOR, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
		require.NoError(t, err)
		out, _, err = encoding.EditOwnerReferences(inCBOR, toOne)
		require.NoError(t, err)
		obj, _, err = encoding.DecodeObject(out)
		require.NoError(t, err)
		wantObj, _, err := encoding.DecodeObject([]byte(want))
		require.NoError(t, err)
		require.Equal(t, wantObj, obj)
	}
}

// Malformed managedFields stay, and do not stop the edit: a server ignores them too.
func TestUnreadableManagedFieldsStay(t *testing.T) {
	const good = `{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"%s\"}":{}}}}}`
	for _, managed := range []string{`{"a":1}`, `"text"`, `[false]`, `[null]`, `[{"fieldsV1":1}]`,
		`[{"fieldsV1":{"f:metadata":[]}}]`, `[false,` + good + `]`} {
		const object = `{"apiVersion":"v1","kind":"K","metadata":{"managedFields":%s,` +
			`"ownerReferences":[{"apiVersion":"old.example.com/v1","kind":"A","name":"n","uid":"uid-1"}]}}`
		before := fmt.Sprintf(object, strings.ReplaceAll(managed, "%s", "uid-1"))
		after := strings.NewReplacer("uid-1", "uid-9", "old.example.com/v1", "new.example.com/v3").Replace(before)
		require.Equal(t, after, string(mustMoveOwner(t)([]byte(before))))
		inCBOR := func(text string) string {
			obj, _, err := encoding.DecodeObject([]byte(text))
			require.NoError(t, err)
			data, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
			require.NoError(t, err)
			return string(data)
		}
		require.Equal(t, inCBOR(after), string(mustMoveOwner(t)([]byte(inCBOR(before)))))
	}

	field := func(num protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), slices.Concat(parts...))
	}
	object := func(apiVersion, uid string, managed ...[]byte) string {
		owner := field(13, field(4, []byte(uid)), field(5, []byte(apiVersion)))
		return "k8s\x00" + string(field(2, field(1, append([][]byte{owner}, managed...)...)))
	}
	paths := func(uid string) []byte {
		return field(1, []byte(`{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"`+uid+`\"}":{}}}}`))
	}
	raw := paths("uid-1")
	for name, bad := range map[string][]byte{
		"fieldsV1 twice": field(17, field(7, raw), field(7, raw)),
		"not a message":  protowire.AppendVarint(protowire.AppendTag(nil, 17, protowire.VarintType), 1),
		"cut off":        field(17, []byte{0x3a, 9}),
	} {
		t.Run(name, func(t *testing.T) {
			before, after := object("old.example.com/v1", "uid-1", bad), object("new.example.com/v3", "uid-9", bad)
			require.Equal(t, after, string(mustMoveOwner(t)([]byte(before))))
		})
	}
	before := object("old.example.com/v1", "uid-1", field(17, field(7, raw, raw)))
	after := object("new.example.com/v3", "uid-9", field(17, field(7, paths("uid-9")))) // the last of two counts
	require.Equal(t, after, string(mustMoveOwner(t)([]byte(before))))
}
