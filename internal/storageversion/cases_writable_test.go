package storageversion

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWritesThatServersRefuse checks that an object that a server reads but refuses to write is
// reported before a restore. The messages of a real server about such objects are in
// encoding/schema.
func TestWritesThatServersRefuse(t *testing.T) {
	const ports = `"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],` +
		`"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},` +
		`"port":{"type":"integer","maximum":9}}}}`
	d := definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`, schemas: map[string]string{
		"v1alpha1": `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`,
		"v1": `{"type":"object","x-kubernetes-validations":[{"rule":"!has(self.spec.text) || self.spec.text != ` +
			`'no'"}],"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},` +
			`"metadata":{"type":"object"},` +
			`"spec":{"type":"object","properties":{"text":{"type":"string","maxLength":3},` + ports + `}}}}`,
	}}
	const keyless = "spec.ports[0].name (FieldValueRequired)"
	for name, c := range map[string]struct {
		meta, spec string
		want       map[string]string // reasons, by code
	}{
		"fine": {"", `{"text":"x","ports":[{"name":"a"}]}`, nil},
		"ratcheted": {"", `{"text":"four"}`,
			map[string]string{codeViolatesSchema.Name: "spec.text (FieldValueTooLong)"}},
		"doubled keys": {"", `{"ports":[{"name":"a"},{"name":"a"}]}`,
			map[string]string{codeViolatesSchema.Name: "spec.ports[1] (FieldValueDuplicate)"}},
		"no key": {"", `{"ports":[{"port":1}]}`, map[string]string{
			codeViolatesSchema.Name: keyless, codeUpdateRefused.Name: keyless,
			codeApplyRefused.Name: "its fields are not those of the schema: spec.ports"}},
		"doubled and broken": {"", `{"ports":[{"name":"a","port":10},{"name":"a","port":11}]}`, map[string]string{
			codeViolatesSchema.Name: "spec.ports[0].port (FieldValueInvalid), spec.ports[1] (FieldValueDuplicate), " +
				"spec.ports[1].port (FieldValueInvalid)",
			codeUpdateRefused.Name: "spec.ports[1].port (FieldValueInvalid)"}},
		"root rule": {"", `{"text":"no"}`, map[string]string{
			codeViolatesSchema.Name: "the object itself (FieldValueInvalid)",
			codeUpdateRefused.Name:  "the object itself (FieldValueInvalid)"}},
		"label": {`"labels":{"a":"not allowed"},`, `{}`,
			map[string]string{codeUpdateRefused.Name: "metadata.labels (FieldValueInvalid)"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := resource{version: "v1alpha1", name: "a", late: c.meta, spec: c.spec}
			for _, opts := range []Options{{}, {Mode: 1}} {
				r := newCluster(t, d).add(o).migrate(opts)
				require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
				got := map[string]string{}
				for _, p := range r.Problems {
					got[p.Code.Name] = p.Reason
				}
				require.Len(t, got, len(c.want), got)
				for code, reason := range c.want {
					require.Contains(t, got[code], reason)
					require.NotContains(t, got[code], "<nil>")
				}
			}
		})
	}
}

// TestManagedFieldsThatGetLost checks that managers who lose the ownership of fields are named, and
// entries that a server would empty with the next write are empty already.
func TestManagedFieldsThatGetLost(t *testing.T) {
	entry := func(manager, version, kind, fields string) string {
		return `{"apiVersion":"example.com/` + version + `","fieldsType":"` + kind + `","fieldsV1":` + fields +
			`,"manager":"` + manager + `","operation":"Update","time":"2026-01-01T00:00:00Z"}`
	}
	const text, body = `{"f:spec":{"f:text":{}}}`, `{"f:spec":{"f:body":{}}}`
	list := func(entries string) string { return `"managedFields":[` + entries + `],` }

	o := resource{version: "v1", name: "a", spec: `{"text":"x"}`,
		late: list(entry("gitops", "v0", "FieldsV1", text) + "," + entry("nobody", "v0", "FieldsV1", `{}`) + "," +
			entry("other", "v2", "FieldsV1", body))}
	r := newCluster(t, webhooked()).add(o).migrate(
		Options{Converters: map[string]Converter{"example.com": &converter{do: renames}}})
	require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
	require.Equal(t, []string{"warning managed-fields-lost " + o.key()}, r.problems())
	require.Equal(t, `the webhook may have renamed fields that no longer have an owner: those of manager "gitops"`,
		r.reason(codeFieldsLost.Name))
	require.Contains(t, r.out[o.key()].value, `"manager":"other"`)

	unreadable := resource{version: "v1alpha1", name: "a",
		late: list(entry("m", "v1", "FieldsV1", text) + "," + entry("n", "v1", "FieldsV2", text))}
	r = newCluster(t, twoVersions()).add(unreadable).migrate(Options{})
	want := unreadable.at("v1")
	want.late = ""
	require.Equal(t, want.json(t), r.out[o.key()].value)
	require.Equal(t, `no server reads its managedFields, and none is left: those of manager "m", "n"`,
		r.reason(codeFieldsLost.Name))

	idle := resource{version: "v1alpha1", name: "a",
		late: list(entry("m", "v1", "FieldsV1", text) + "," + entry("n", "v1", "FieldsV1", `{}`))}
	r = newCluster(t, twoVersions()).add(idle).migrate(Options{})
	want.late = list(entry("m", "v1", "FieldsV1", text))
	require.Equal(t, want.json(t), r.out[o.key()].value)
	require.Empty(t, r.Problems)

	for _, opts := range []Options{{KeepManagedFields: true}, {Mode: 1}} {
		r = newCluster(t, twoVersions()).add(unreadable).migrate(opts)
		require.Equal(t, unreadable.at("v1").json(t), r.out[o.key()].value)
		require.Equal(t, []string{"warning apply-refused " + o.key()}, r.problems())
	}
}
