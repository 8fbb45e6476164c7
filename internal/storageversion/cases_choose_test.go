package storageversion

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// dirty returns three CustomResourceDefinitions of two groups, each with one object that is not at
// the storage version.
func dirty(t testing.TB) (c *cluster, defs []definition, objects []resource) {
	defs = []definition{
		{name: "gadgets.example.com", versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
			meta: `"labels":{"migrate":"true"},`},
		{name: "widgets.example.com", versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`,
			meta: `"labels":{"migrate":"truee"},`},
		{name: "things.example.org", versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`},
	}
	c = newCluster(t, defs...)
	for _, d := range defs {
		o := resource{crd: d.name, version: "v1alpha1", name: "a"}
		objects = append(objects, o)
		c.add(o, resource{crd: d.name, version: "v1", name: "b"})
	}
	return c, defs, objects
}

// TestChoose checks that excluded kinds stay unchanged, and are reported if they need a migration.
func TestChoose(t *testing.T) {
	selector := func(text string) labels.Selector {
		parsed, err := labels.Parse(text)
		require.NoError(t, err)
		return parsed
	}
	tests := []struct {
		name   string
		opts   Options
		chosen []bool
	}{
		{"all", Options{}, []bool{true, true, true}},
		{"one", Options{CRDs: []string{"widgets.example.com"}}, []bool{false, true, false}},
		{"two", Options{CRDs: []string{"widgets.example.com", "things.example.org"}}, []bool{false, true, true}},
		{"a group", Options{Groups: []string{"example.com"}}, []bool{true, true, false}},
		{"one in another group", Options{Groups: []string{"example.com"}, CRDs: []string{"things.example.org"}},
			[]bool{false, false, false}},
		{"exclude", Options{Exclude: []string{"gadgets.example.com"}}, []bool{false, true, true}},
		{"exclude what is named", Options{CRDs: []string{"gadgets.example.com", "widgets.example.com"},
			Exclude: []string{"gadgets.example.com"}}, []bool{false, true, false}},
		{"label", Options{Selector: selector("migrate=true")}, []bool{true, false, false}},
		{"longer label", Options{Selector: selector("migrate=truee")}, []bool{false, true, false}},
		{"any such label", Options{Selector: selector("migrate")}, []bool{true, true, false}},
		{"no such label", Options{Selector: selector("!migrate")}, []bool{false, false, true}},
		{"all but", Options{Selector: selector("migrate notin (true)")}, []bool{false, true, true}},
		{"label and group", Options{Groups: []string{"example.org"}, Selector: selector("migrate")},
			[]bool{false, false, false}},
	}
	c, defs, objects := dirty(t)
	path := c.build()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := migrate(t, transform.Options{In: path}, tt.opts)
			changed, problems := []string{}, []string{}
			for i, d := range defs {
				row := r.resources(d.name)
				require.Equal(t, tt.chosen[i], row.Chosen)
				require.Equal(t, map[string]int{"v1alpha1": 1, "v1": 1}, row.Found)
				if tt.chosen[i] {
					changed = append(changed, d.key(), objects[i].key())
					require.Equal(t, objects[i].at("v1").json(t), r.out[objects[i].key()].value)
					require.Equal(t, []string{"v1"}, r.storedVersions(d.key()))
					continue
				}
				problems = append(problems, "warning not-chosen "+d.key())
				require.Equal(t, []string{"v1alpha1", "v1"}, row.StoredVersions.After)
				require.Zero(t, row.Rewritten+row.Unchanged+row.Refused)
			}
			if len(changed) == 0 {
				problems = append(problems, "warning nothing-to-migrate ")
				require.Equal(t, transform.Unchanged, r.Outcome)
			}
			require.ElementsMatch(t, changed, r.changed())
			require.ElementsMatch(t, problems, r.problems())
		})
	}
}

// TestNotChosen checks that an excluded kind is reported for its objects, not for its list; a kind
// that needs no migration is not mentioned.
func TestNotChosen(t *testing.T) {
	tests := []struct {
		name, stored string
		objects      []string
		reason       string // empty for none
	}{
		{"clean", `["v1"]`, []string{"v1"}, ""},
		{"stale", `["v1"]`, []string{"v1", "v1alpha1", "v1alpha1"},
			"2 of its objects are not at the storage version v1 (v1: 1, v1alpha1: 2)"},
		{"list", `["v1alpha1","v1"]`, []string{"v1"}, "storedVersions is [v1alpha1 v1]; its objects say [v1]"},
		{"no list", `-`, nil, "storedVersions is []; its objects say [v1]"},
		{"unlisted", `["v1"]`, []string{"v0"}, "1 of its objects are not at the storage version v1 (v0: 1)"},
		{"unreadable", `["v1"]`, []string{"{"}, "1 of its objects are not at the storage version v1 (unreadable: 1)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, definition{versions: "v1alpha1 v1*", stored: tt.stored},
				definition{name: "others.example.org", versions: "v1*"})
			for i, version := range tt.objects {
				o := resource{version: version, name: string(rune('a' + i))}
				if version == "{" {
					c.put(o.key(), "{")
				} else {
					c.add(o)
				}
			}
			r := c.migrate(Options{Groups: []string{"example.org"}}, finding.Undecodable.Name)
			require.Empty(t, r.changed())
			found := 0
			for _, n := range r.resources(widgetsCRD).Found {
				found += n
			}
			require.Equal(t, len(tt.objects), found, "what cannot be read is counted too")
			if tt.reason == "" {
				require.Empty(t, r.Problems)
				return
			}
			require.Equal(t, tt.reason, r.reason(codeNotChosen.Name))
		})
	}
}

// TestNamesAreThere checks that an option with a name missing from the snapshot ends the run first.
func TestNamesAreThere(t *testing.T) {
	c, _, _ := dirty(t)
	path := c.build()
	for name, o := range map[string]Options{
		`CustomResourceDefinition "widget.example.com"`: {CRDs: []string{"widget.example.com"}},
		`CustomResourceDefinition "Widgets"`: {CRDs: []string{"widgets.example.com"},
			Exclude: []string{"Widgets"}},
		`group "example.net"`: {Groups: []string{"example.com", "example.net"}},
		`group "example"`: {Mappings: []Mapping{{Group: "example",
			Old: "v1alpha1", New: "v1"}}},
		`group "com"`: {Converters: map[string]Converter{"com": nil}},
		`group "example.com" that a webhook converts`: {Converters: map[string]Converter{"example.com": nil}},
	} {
		r := migrate(t, transform.Options{In: path}, o)
		require.ErrorIs(t, r.err, ErrNotThere)
		require.ErrorContains(t, r.err, name)
		require.Equal(t, transform.Failed, r.Outcome)
	}
	empty := newCluster(t).put("/registry/namespaces/default", "k8s\x00").migrate(Options{CRDs: []string{widgetsCRD}})
	require.ErrorIs(t, empty.err, ErrNotThere)
	none := newCluster(t).put("/registry/namespaces/default", namespaceJSON).migrate(Options{})
	require.Equal(t, []string{"warning nothing-to-migrate "}, none.problems())
	require.Empty(t, none.changed())
	strange := newCluster(t).put("/a/b", "{}").migrate(Options{})
	require.ErrorContains(t, strange.err, "--prefix")
}

// TestBadDefinitions checks that an unusable CustomResourceDefinition refuses the run, and its
// objects stay; an excluded one does not refuse, but is reported.
func TestBadDefinitions(t *testing.T) {
	tests := []struct {
		name, value, code, reason string
	}{
		{"not JSON", "{", finding.Undecodable.Name, ""},
		{"another kind", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"widgets.example.com"}}`,
			finding.Undecodable.Name, ""},
		{"encrypted", "k8s:enc:secretbox:v1:k:xxxxxxxx", finding.Encrypted.Name,
			"no encryption configuration was given"},
		{"no storage version", definition{versions: "v1alpha1 v1", stored: `["v1"]`}.json(t), codeInvalid.Name,
			"none of its versions is the storage version"},
		{"schema", definition{versions: "v1alpha1 v1*",
			schemas: map[string]string{
				"v1alpha1": `{"type":"object","properties":{"spec":{"$ref":"#/nowhere"}}}`}}.json(t),
			codeInvalid.Name, "v1alpha1"},
		{"plural", strings.Replace(definition{versions: "v1alpha1 v1*"}.json(t), `"plural":"widgets"`,
			`"plural":"gadgets"`, 1), codeInvalid.Name,
			`its plural and group are "gadgets" and "example.com", unlike its name`},
		{"migrating", definition{versions: "v1alpha1 v1*",
			status: `"conditions":[{"type":"StorageMigrating","status":"True"}]`}.json(t), codeStorageMigrating.Name,
			"StorageMigrating is True"},
		{"not migrating", definition{versions: "v1alpha1 v1*",
			status: `"conditions":[{"type":"StorageMigrating","status":"False"}]`}.json(t), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stale := resource{version: "v1alpha1", name: "a"}
			path := newCluster(t, definition{name: "things.example.org", versions: "v1*",
				stored: `["v0","v1"]`}).put(widgetsKey, tt.value).add(stale).build()
			r := migrate(t, transform.Options{In: path}, Options{})
			if tt.code == "" {
				require.Contains(t, r.changed(), stale.key())
				require.Empty(t, r.Problems)
				return
			}
			r.refusedFor("error " + tt.code + " " + widgetsKey)
			require.Contains(t, r.reason(tt.code), tt.reason)

			r = migrate(t, transform.Options{In: path, Allow: []string{tt.code}}, Options{})
			require.Equal(t, []string{definitions + "things.example.org"}, r.changed())
			row := r.resources(widgetsCRD)
			require.Equal(t, map[string]int{"v1alpha1": 1}, row.Found, "skipped objects are counted")
			require.Equal(t, 1, row.Refused)

			for _, o := range []Options{{Exclude: []string{widgetsCRD}}, {Groups: []string{"example.org"}},
				{CRDs: []string{"things.example.org"}}} {
				// owner references can be in any value
				r = migrate(t, transform.Options{In: path, Allow: []string{finding.Encrypted.Name}}, o)
				require.Equal(t, []string{definitions + "things.example.org"}, r.changed())
				require.Contains(t, r.problems(), "warning not-chosen "+widgetsKey)
				require.NotContains(t, r.problems(), "error invalid "+widgetsKey)
				require.False(t, r.resources(widgetsCRD).Chosen)
				require.Equal(t, map[string]int{"v1alpha1": 1}, r.resources(widgetsCRD).Found)
			}
		})
	}
}

// TestBuiltinName checks that a CustomResourceDefinition named like a built-in resource does not
// own the folder of that resource: a server keeps its objects elsewhere.
func TestBuiltinName(t *testing.T) {
	d := definition{name: "ingresses.networking.k8s.io", kind: "Ingress", versions: "v1beta1 v1*",
		stored: `["v1beta1","v1"]`}
	const ingress = "/registry/ingress/ns/a"
	value :=
		`{"kind":"Ingress","apiVersion":"networking.k8s.io/v1beta1","metadata":{"name":"a","namespace":"ns",` +
			`"uid":"u"},"spec":{"backend":{"serviceName":"x"}}}`
	c := newCluster(t, d).put(ingress, value)
	r := c.migrate(Options{})
	r.refusedFor("error invalid " + d.key())
	r = migrate(t, transform.Options{In: c.build(), Allow: finding.Allowable(codes())}, Options{})
	require.Empty(t, r.changed())
}

// TestCBORDefinition checks that a definition in CBOR, which no server writes, refuses with its
// key, and the other definitions are migrated.
func TestCBORDefinition(t *testing.T) {
	obj, _, err := encoding.DecodeObject([]byte(twoVersions().json(t)))
	require.NoError(t, err)
	value, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	other := definition{name: "things.example.org", versions: "v1*", stored: `["v0","v1"]`}
	c := newCluster(t, other).put(widgetsKey, string(value)).add(resource{version: "v1alpha1", name: "a"})
	c.migrate(Options{}).refusedFor("error invalid " + widgetsKey)
	r := migrate(t, transform.Options{In: c.build(), Allow: []string{codeInvalid.Name}}, Options{})
	require.Equal(t, []string{other.key()}, r.changed())
}

// TestUndecryptableDefinition checks that with an undecryptable definition, each undecryptable
// value that may depend on the definition has a finding: its objects, and their possible
// dependents.
func TestUndecryptableDefinition(t *testing.T) {
	const encrypted = "k8s:enc:secretbox:v1:k:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
	c := newCluster(t).put(widgetsKey, encrypted).put(widgetsDir+"ns/a", encrypted).put(widgetsDir+"ns/b",
		"{").put("/registry/secrets/ns/s", encrypted)
	c.migrate(Options{}).refusedFor("error encrypted "+widgetsKey, "error encrypted "+widgetsDir+"ns/a",
		"error encrypted /registry/secrets/ns/s", "error undecodable "+widgetsDir+"ns/b")
}
