package storageversion

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

// typed returns a schema with the given properties of spec.
func typed(properties string) string {
	return `{"type":"object","properties":{"spec":{"type":"object","properties":{` + properties + `}}}}`
}

// TestScopes migrates a hundred namespaced and a hundred cluster-scoped objects; objects of CRDs
// whose plurals begin alike stay separate.
func TestScopes(t *testing.T) {
	defs := []definition{
		{name: "widgets.example.com", kind: "Widget", versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`},
		{name: "widgetsets.example.com", kind: "WidgetSet", versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
			cluster: true},
		{name: "widgets.example.com.br", kind: "Widget", versions: "v1alpha1* v1"},
	}
	c := newCluster(t, defs...)
	var want []string
	for i := range 100 {
		for _, o := range []resource{
			{version: "v1alpha1", namespace: fmt.Sprintf("ns%d", i%7), name: fmt.Sprintf("w%d", i)},
			{crd: "widgetsets.example.com", version: "v1alpha1", namespace: "-", name: fmt.Sprintf("w%d", i)},
		} {
			c.put(o.key(), strings.Replace(o.json(t), `"Widgetset"`, `"WidgetSet"`, 1))
			want = append(want, o.key())
		}
	}
	other := resource{crd: "widgets.example.com.br", version: "v1alpha1", name: "w0"}
	r := c.add(other).migrate(Options{})
	require.ElementsMatch(t, append(want, defs[0].key(), defs[1].key()), r.changed())
	require.Equal(t, 100, r.resources("widgets.example.com").Rewritten)
	require.Equal(t, 100, r.resources("widgetsets.example.com").Rewritten)
	require.Equal(t, 1, r.resources("widgets.example.com.br").Unchanged)
	for _, key := range want {
		require.Equal(t, strings.Replace(r.in[key].value, "example.com/v1alpha1", "example.com/v1", 1),
			r.out[key].value)
	}
	require.Empty(t, r.Problems)
}

// TestValues checks the new value of a stale object, and the findings.
func TestValues(t *testing.T) {
	alpha := typed(
		`"text":{"type":"string"},"old":{"type":"string"},"big":{"type":"integer","format":"int64"},` +
			`"ratio":{"type":"number"},"nul":{"type":"string","nullable":true},"list":{"type":"array",` +
			`"items":{"type":"object","properties":{"a":{"type":"string"}}}},"free":{"type":"object",` +
			`"x-kubernetes-preserve-unknown-fields":true}`)
	v1 := typed(
		`"text":{"type":"string","maxLength":3},"since":{"type":"string","default":"v1"},"big":{"type":"integer",` +
			`"format":"int64"},"ratio":{"type":"number"},"nul":{"type":"string","nullable":true},` +
			`"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},` +
			`"w":{"type":"integer","default":8}}}},"free":{"type":"object",` +
			`"x-kubernetes-preserve-unknown-fields":true}`)
	d := definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
		schemas: map[string]string{"v1alpha1": alpha, "v1": v1}}
	tests := []struct {
		name, spec, want string
		code, reason     string // empty for none
	}{
		{"default", `{"text":"x"}`, `{"since":"v1","text":"x"}`, "", ""},
		{"default in a list", `{"list":[{"a":"1"},{}]}`, `{"list":[{"a":"1","w":8},{"w":8}],"since":"v1"}`, "", ""},
		{"big integer", `{"big":9007199254740993}`, `{"big":9007199254740993,"since":"v1"}`, "", ""},
		{"integral float", `{"ratio":3.0}`, `{"ratio":3,"since":"v1"}`, "", ""},
		{"float", `{"ratio":0.1}`, `{"ratio":0.1,"since":"v1"}`, "", ""},
		{"HTML", `{"free":{"a":"<&>"}}`, `{"free":{"a":"\u003c\u0026\u003e"},"since":"v1"}`, "", ""},
		{"line separators", `{"free":{"a":"` + "\u2028\u2029é" + `"}}`, `{"free":{"a":"\u2028\u2029é"},"since":"v1"}`,
			"", ""},
		{"null that is allowed", `{"nul":null}`, `{"nul":null,"since":"v1"}`, "", ""},
		{"null that means nothing", `{"text":null}`, `{"since":"v1"}`, codeDroppedNull.Name,
			"spec.text is null, which means nothing there"},
		{"items", `{"free":{"items":[]}}`, `{"free":{"items":[]},"since":"v1"}`, "", ""},
		{"too long now", `{"text":"four"}`, `{"since":"v1","text":"four"}`, codeViolatesSchema.Name,
			"the schema of v1 does not allow spec.text (FieldValueTooLong)"},
		{"unknown to the new version", `{"old":"lost","text":"x"}`, `{"since":"v1","text":"x"}`, codePrunedField.Name,
			"the schemas do not know spec.old"},
		{"unknown to both", `{"list":[{"a":"1","secret":2}],"nobody":1}`, `{"list":[{"a":"1","w":8}],"since":"v1"}`,
			codePrunedField.Name, "the schemas do not know spec.list[0].secret, spec.nobody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := resource{version: "v1alpha1", name: "a", spec: tt.spec, meta: `"annotations":{"n":"1"},`,
				late: `"labels":{"l":"1"},`}
			path := newCluster(t, d).add(o).build()
			allow := []string{}
			if tt.code == codePrunedField.Name {
				r := migrate(t, transform.Options{In: path}, Options{})
				r.refusedFor("error pruned-field "+o.key(), "warning stored-versions-kept "+widgetsKey)
				require.Equal(t, 1, r.resources(widgetsCRD).Refused)
				allow = append(allow, codePrunedField.Name)
			}
			r := migrate(t, transform.Options{In: path, Allow: allow}, Options{})
			require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
			want := o.at("v1")
			want.spec = tt.want
			require.Equal(t, want.json(t), r.out[o.key()].value)
			require.Equal(t, 1, r.resources(widgetsCRD).Rewritten)
			if tt.code == "" {
				require.Empty(t, r.Problems)
				return
			}
			require.Equal(t, tt.reason, r.reason(tt.code))
			require.Equal(t, []string{"v1"}, r.storedVersions(widgetsKey))
		})
	}
}

// TestMetadata checks that identity, times and generation stay, even of objects being deleted;
// malformed metadata that a server drops is reported; an object under another name than its key is
// reported.
func TestMetadata(t *testing.T) {
	tests := []struct {
		name, metadata, want string
		code, reason         string
	}{
		{"being deleted",
			`"deletionGracePeriodSeconds":0,"deletionTimestamp":"2026-02-01T00:00:00Z","finalizers":["x/y"],` +
				`"generation":4,"name":"a","namespace":"ns","uid":"u"`, "", "", ""},
		{"generation zero", `"generation":0,"name":"a","namespace":"ns","uid":"u"`,
			`"generation":1,"name":"a","namespace":"ns","uid":"u"`, "", ""},
		{"selfLink", `"generation":1,"name":"a","namespace":"ns","selfLink":"/x","uid":"u"`,
			`"generation":1,"name":"a","namespace":"ns","uid":"u"`, "", ""},
		{"labels of a wrong type", `"generation":1,"labels":{"a":1},"name":"a","namespace":"ns","uid":"u"`,
			`"generation":1,"name":"a","namespace":"ns","uid":"u"`, codePrunedField.Name, "metadata.labels"},
		{"unknown field", `"generation":1,"name":"a","namespace":"ns","nobody":1,"uid":"u"`,
			`"generation":1,"name":"a","namespace":"ns","uid":"u"`, codePrunedField.Name, "metadata.nobody"},
		{"another name", `"generation":1,"name":"b","namespace":"ns","uid":"u"`, "", codeKeyMismatch.Name,
			`it names itself "ns/b", unlike its key`},
		{"another namespace", `"generation":1,"name":"a","namespace":"other","uid":"u"`, "", codeKeyMismatch.Name,
			`it names itself "other/a", unlike its key`},
		{"no namespace", `"generation":1,"name":"a","uid":"u"`, "", codeKeyMismatch.Name,
			`it names itself "a", unlike its key`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value := func(version, metadata string) string {
				return `{"apiVersion":"example.com/` + version + `","kind":"Widget","metadata":{` + metadata +
					`},"spec":{"text":"x"}}` + "\n"
			}
			if tt.want == "" {
				tt.want = tt.metadata
			}
			key := widgetsDir + "ns/a"
			path := newCluster(t, twoVersions()).put(key, value("v1alpha1", tt.metadata)).build()
			if tt.code == codePrunedField.Name {
				require.ErrorIs(t, migrate(t, transform.Options{In: path}, Options{}).err, transform.ErrRefused)
			}
			r := migrate(t, transform.Options{In: path, Allow: []string{codePrunedField.Name}}, Options{})
			require.Equal(t, []string{widgetsKey, key}, r.changed())
			require.Equal(t, value("v1", tt.want), r.out[key].value)
			if tt.code == "" {
				require.Empty(t, r.Problems)
				return
			}
			require.Contains(t, r.reason(tt.code), tt.reason)
		})
	}
}

// TestWrongScope checks that a key that does not fit the scope of its kind is reported, and its
// object migrated.
func TestWrongScope(t *testing.T) {
	o := resource{version: "v1alpha1", namespace: "-", name: "a"}
	r := newCluster(t, twoVersions()).add(o).migrate(Options{})
	require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
	require.Equal(t, "the key does not fit the scope of widgets.example.com, which is Namespaced",
		r.reason(codeKeyMismatch.Name))

	d := twoVersions()
	d.cluster = true
	o = resource{version: "v1alpha1", name: "a"}
	r = newCluster(t, d).add(o).migrate(Options{})
	require.Equal(t, "the key does not fit the scope of widgets.example.com, which is Cluster",
		r.reason(codeKeyMismatch.Name))
}

// TestStoredForms checks CustomResourceDefinitions in every form that etcd may hold.
func TestStoredForms(t *testing.T) {
	named :=
		`"names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"scope":"Namespaced"`
	form := func(version, spec string) string {
		return `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/` + version +
			`","metadata":{"name":"widgets.example.com","uid":"u"},"spec":{"group":"example.com",` + named + "," +
			spec +
			`},"status":{"conditions":[],"acceptedNames":{"plural":"widgets","kind":"Widget"},` +
			`"storedVersions":["v1alpha1","v1"]}}` + "\n"
	}
	both := `"versions":[{"name":"v1alpha1","served":true,"storage":false},{"name":"v1","served":true,"storage":true}]`
	tests := []struct {
		name, value, spec string // spec of the object is {"nobody":1,"text":"x"}
	}{
		{"v1beta1, hoisted schema", form("v1beta1", `"preserveUnknownFields":false,"validation":{"openAPIV3Schema":`+
			plainSchema+`},`+both), `{"text":"x"}`},
		{"v1beta1, no schema", form("v1beta1", `"preserveUnknownFields":false,`+both), ""},
		{"v1beta1, preserveUnknownFields", form("v1beta1",
			`"preserveUnknownFields":true,"validation":{"openAPIV3Schema":`+plainSchema+`},`+both),
			`{"nobody":1,"text":"x"}`},
		{"v1beta1, preserveUnknownFields absent", form("v1beta1", both), `{"nobody":1,"text":"x"}`},
		{"v1", definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`}.json(t), `{"text":"x"}`},
		{"v1, storage version not served", definition{versions: "v1alpha1 v1*-", stored: `["v1alpha1","v1"]`}.json(t),
			`{"text":"x"}`},
		{"v1, nothing served", definition{versions: "v1alpha1- v1*-", stored: `["v1alpha1","v1"]`}.json(t),
			`{"text":"x"}`},
		{"v1, no status but the list", definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
			status: `"conditions":[]`}.json(t), `{"text":"x"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := resource{version: "v1alpha1", name: "a", spec: `{"nobody":1,"text":"x"}`}
			r := newCluster(t).put(widgetsKey, tt.value).add(o).migrate(Options{}, codePrunedField.Name)
			require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
			want := o.at("v1")
			if want.spec = tt.spec; want.spec == "" {
				require.NotContains(t, r.out[o.key()].value, "spec")
			} else {
				require.Equal(t, want.json(t), r.out[o.key()].value)
			}
			require.Equal(t, strings.Replace(tt.value, `["v1alpha1","v1"]`, `["v1"]`, 1), r.out[widgetsKey].value)
		})
	}
	one := strings.Replace(form("v1beta1", `"version":"v1alpha1"`), `["v1alpha1","v1"]`, `["v1alpha1"]`, 1)
	r := newCluster(t).put(widgetsKey, one).add(resource{version: "v1alpha1", name: "a"}).migrate(Options{})
	require.Empty(t, r.changed(), "spec.version without versions")
}

// TestAcceptedNames checks that objects in the folder of the accepted plural, and of the accepted
// kind, are migrated. Objects in the folder of the refused plural keep the list unchanged, although
// not served: a server would serve them with that plural accepted.
func TestAcceptedNames(t *testing.T) {
	d := twoVersions()
	d.status = `"acceptedNames":{"plural":"gizmos","kind":"Gizmo"}`
	key := "/registry/example.com/gizmos/ns/a"
	value := strings.Replace(resource{version: "v1alpha1", name: "a"}.json(t), "Widget", "Gizmo", 1)
	r := newCluster(t, d).put(key, value).migrate(Options{})
	require.Equal(t, []string{widgetsKey, key}, r.changed())
	require.Empty(t, r.Problems)
	r = newCluster(t, d).put(key, value).add(resource{version: "v1alpha1", name: "orphan"}).migrate(Options{})
	require.Equal(t, []string{key}, r.changed())
	require.Equal(t, []string{"warning orphan " + widgetsDir + "ns/orphan",
		"warning stored-versions-kept " + widgetsKey}, r.problems())
}

// TestWarnings checks that oddities of a CustomResourceDefinition are reported, and do not prevent
// the migration of its objects.
func TestWarnings(t *testing.T) {
	o := resource{version: "v1alpha1", name: "a"}
	d := twoVersions()
	d.meta = `"deletionTimestamp":"2026-02-01T00:00:00Z","finalizers":["customresourcecleanup.apiextensions.k8s.io"],`
	r := newCluster(t, d).add(o).migrate(Options{})
	require.Equal(t, []string{o.key()}, r.changed())
	require.Equal(t, []string{"warning crd-terminating " + widgetsKey, "warning stored-versions-kept " + widgetsKey},
		r.problems())
	require.Equal(t, "it is being deleted", r.resources(widgetsCRD).StoredVersions.Kept)

	d = twoVersions()
	d.meta = `"uid":"",`
	r = newCluster(t, d).add(o).migrate(Options{})
	require.Equal(t, []string{widgetsKey, o.key()}, r.changed())
	require.Equal(t, []string{"warning crd-without-uid " + widgetsKey}, r.problems())
}

// TestDefaultsAreNoLoss checks that a field added only by the stored version's defaults is not lost
// with that version, since no client wrote the field; a stored field is lost.
func TestDefaultsAreNoLoss(t *testing.T) {
	d := twoVersions()
	d.schemas = map[string]string{
		"v1alpha1": typed(`"text":{"type":"string"},"since":{"type":"string","default":"v1alpha1"}`),
		"v1":       typed(`"text":{"type":"string"}`),
	}
	plain, written := resource{version: "v1alpha1", name: "a", spec: `{"text":"x"}`},
		resource{version: "v1alpha1", name: "b", spec: `{"since":"v1alpha1","text":"x"}`}
	r := newCluster(t, d).add(plain).migrate(Options{})
	require.NoError(t, r.err)
	require.Empty(t, r.Problems)
	require.Equal(t, plain.at("v1").json(t), r.out[plain.key()].value)
	r = newCluster(t, d).add(written).migrate(Options{})
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, "error pruned-field "+written.key(), r.problems()[0])
}
