package storageversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/transform"
)

// converter is a test double of a conversion webhook.
type converter struct {
	calls []int // objects in each call
	asked []string
	do    func(obj map[string]any) error
	fail  func(call int) error
}

func (c *converter) Convert(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string, objs []map[string]any,
) ([]conversion.Converted, error) {
	c.calls, c.asked = append(c.calls, len(objs)), append(c.asked, crd.Name+" to "+version)
	if c.fail != nil {
		if err := c.fail(len(c.calls)); err != nil {
			return nil, err
		}
	}
	var out []conversion.Converted
	for _, obj := range objs {
		copied := map[string]any{}
		for name, value := range obj {
			copied[name] = value
		}
		copied["apiVersion"] = crd.Spec.Group + "/" + version
		if err := c.do(copied); err != nil {
			out = append(out, conversion.Converted{Err: err})
			continue
		}
		out = append(out, conversion.Converted{Object: copied})
	}
	return out, nil
}

// renames moves spec.text to spec.body, the name in v2.
func renames(obj map[string]any) error {
	spec := obj["spec"].(map[string]any)
	obj["spec"] = map[string]any{"body": spec["text"]}
	return nil
}

func webhooked() definition {
	return definition{versions: "v1 v2*", stored: `["v1","v2"]`, webhook: true, schemas: map[string]string{
		"v1": typed(`"text":{"type":"string"}`),
		"v2": typed(`"body":{"type":"string"},"since":{"type":"string","default":"v2"}`),
	}}
}

// TestConverter checks that objects of several versions are converted in one call, objects at the
// storage version are not sent, generations stay, and a second run makes no call.
func TestConverter(t *testing.T) {
	c := newCluster(t, webhooked())
	for i := range 4 {
		o := resource{version: "v1", name: fmt.Sprintf("w%d", i)}
		if i%2 == 1 {
			o.version, o.spec = "v2", `{"body":"x","since":"v2"}`
		}
		c.add(o)
	}
	ask := &converter{do: renames}
	o := Options{Converters: map[string]Converter{"example.com": ask}}
	r := c.migrate(o)
	require.Equal(t, []string{widgetsKey, widgetsDir + "ns/w0", widgetsDir + "ns/w2"}, r.changed())
	require.Equal(t, resource{version: "v2", name: "w0", spec: `{"body":"x","since":"v2"}`}.json(t),
		r.out[widgetsDir+"ns/w0"].value)
	require.Equal(t, []int{2}, ask.calls)
	require.Equal(t, []string{"widgets.example.com to v2"}, ask.asked)
	require.Equal(t, []string{"v2"}, r.storedVersions(widgetsKey))
	require.Empty(t, r.Problems)

	again := migrate(t, transform.Options{In: r.path}, o)
	require.Equal(t, transform.Unchanged, again.Outcome)
	require.Len(t, ask.calls, 1)
	require.Equal(t, transform.Unchanged, migrate(t, transform.Options{In: r.path}, Options{}).Outcome,
		"nor is a converter needed")
}

// TestNeedsWebhook checks that without a converter only the objects that need one are refused; a
// converter of another group does not count.
func TestNeedsWebhook(t *testing.T) {
	stale, current := resource{version: "v1", name: "a"}, resource{version: "v2", name: "b", spec: `{"body":"x"}`}
	path := newCluster(t, webhooked(), definition{name: "things.example.org", versions: "v1*",
		webhook: true}).add(stale, current).build()
	for _, o := range []Options{{}, {Converters: map[string]Converter{"example.org": &converter{do: renames}}}} {
		r := migrate(t, transform.Options{In: path}, o)
		r.refusedFor("error needs-webhook "+stale.key(), "warning stored-versions-kept "+widgetsKey)
		require.Equal(t, "it is stored at v1, and only the conversion webhook of widgets.example.com can "+
			"bring it to v2", r.reason(codeNeedsWebhook.Name))
	}
	r := migrate(t, transform.Options{In: path, Allow: []string{codeNeedsWebhook.Name}}, Options{})
	require.Equal(t, []string{current.key()}, r.changed(), "it gets its default")
	require.Equal(t, []string{"v1", "v2"}, r.storedVersions(widgetsKey))
	require.Equal(t, finding.Skipped, r.Problems[0].Outcome)
}

// TestConverterRefuses checks that among many objects exactly those with a wrong answer of the
// converter are named.
func TestConverterRefuses(t *testing.T) {
	c := newCluster(t, webhooked())
	for i := range 10 {
		c.add(resource{version: "v1", name: fmt.Sprintf("w%d", i), spec: fmt.Sprintf(`{"text":"%d"}`, i)})
	}
	path := c.build()
	ask := &converter{do: func(obj map[string]any) error {
		if text := obj["spec"].(map[string]any)["text"]; text == "3" || text == "8" {
			return errors.New("cannot")
		}
		return renames(obj)
	}}
	o := Options{Converters: map[string]Converter{"example.com": ask}}
	r := migrate(t, transform.Options{In: path}, o)
	r.refusedFor("error conversion-failed "+widgetsDir+"ns/w3", "error conversion-failed "+widgetsDir+"ns/w8",
		"warning stored-versions-kept "+widgetsKey)
	require.Equal(t, []int{8, 2}, []int{r.resources(widgetsCRD).Rewritten, r.resources(widgetsCRD).Refused})

	r = migrate(t, transform.Options{In: path, Allow: []string{codeConversionFailed.Name}}, o)
	require.Len(t, r.changed(), 8)
	require.Equal(t, []string{"v1", "v2"}, r.storedVersions(widgetsKey))
	require.Equal(t, "objects are still stored at v1", r.resources(widgetsCRD).StoredVersions.Kept)

	ask.do = renames
	r = migrate(t, transform.Options{In: r.path}, o)
	require.Equal(t, []string{widgetsKey, widgetsDir + "ns/w3", widgetsDir + "ns/w8"}, r.changed(),
		"a later run takes up the rest")
}

// TestConverterBreaks checks that a converter that fails as a whole is called once, not for each
// batch, and every waiting object is named with its message.
func TestConverterBreaks(t *testing.T) {
	many := 2*batchObjects + 3
	c := newCluster(t, webhooked())
	for i := range many {
		c.add(resource{version: "v1", name: fmt.Sprintf("w%d", i)})
	}
	path := c.build()
	for first, rewritten := range map[int]int{1: 0, 2: batchObjects} {
		ask := &converter{do: renames, fail: func(call int) error {
			if call < first {
				return nil
			}
			return fmt.Errorf("%w: it is silent%s", conversion.ErrUnusable, strings.Repeat("!", 5000))
		}}
		r := migrate(t, transform.Options{In: path}, Options{Converters: map[string]Converter{"example.com": ask}})
		require.ErrorIs(t, r.err, transform.ErrRefused)
		require.Len(t, ask.calls, first)
		require.Equal(t, []int{rewritten, many - rewritten},
			[]int{r.resources(widgetsCRD).Rewritten, r.resources(widgetsCRD).Refused})
		require.Len(t, r.Problems, many-rewritten+1)
		require.Contains(t, r.Problems[0].Reason, "it is silent")
		require.Less(t, len(r.Problems[0].Reason), 4100)
	}
	ask := &converter{do: renames}
	r := migrate(t, transform.Options{In: path}, Options{Converters: map[string]Converter{"example.com": ask}})
	require.Equal(t, []int{batchObjects, batchObjects, 3}, ask.calls)
	require.Len(t, r.changed(), many+1)
}

// TestConverterAnswers checks that the answer of a converter is validated by the schema of the
// storage version.
func TestConverterAnswers(t *testing.T) {
	o := resource{version: "v1", name: "a"}
	path := newCluster(t, webhooked()).add(o).build()
	run := func(do func(obj map[string]any) error, allow ...string) result {
		return migrate(t, transform.Options{In: path, Allow: allow},
			Options{Converters: map[string]Converter{"example.com": &converter{do: do}}})
	}
	keeps := func(obj map[string]any) error { return nil } // keeps spec.text, which v2 does not have
	r := run(keeps)
	r.refusedFor("error pruned-field "+o.key(), "warning stored-versions-kept "+widgetsKey)
	require.Equal(t, "the schemas do not know spec.text", r.reason(codePrunedField.Name))
	require.Equal(t, resource{version: "v2", name: "a", spec: `{"since":"v2"}`}.json(t),
		run(keeps, codePrunedField.Name).out[o.key()].value)

	r = run(func(obj map[string]any) error { obj["apiVersion"] = "example.com/v1"; return renames(obj) })
	r.refusedFor("error conversion-failed "+o.key(), "warning stored-versions-kept "+widgetsKey)

	r = run(func(obj map[string]any) error {
		obj["grown"] = strings.Repeat("x", schema.MaxGrowth+1000)
		return renames(obj)
	})
	r.refusedFor("error invalid "+o.key(), "warning stored-versions-kept "+widgetsKey)
	require.Equal(t, "the converter's answer: the object grows too large: by more than 6291456 bytes",
		r.reason(codeInvalid.Name))

	r = run(func(obj map[string]any) error { obj["metadata"] = "none"; return renames(obj) })
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Contains(t, r.problems(), "error conversion-failed "+o.key())
}

// TestConverterCancelled checks that a cancellation during a call of the converter ends the run
// without output.
func TestConverterCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	ask := &converter{do: renames, fail: func(int) error { cancel(); return ctx.Err() }}
	path := newCluster(t, webhooked()).add(resource{version: "v1", name: "a"}).build()
	r := migrateContext(ctx, t, transform.Options{In: path},
		Options{Converters: map[string]Converter{"example.com": ask}})
	require.ErrorIs(t, r.err, context.Canceled)
	require.Equal(t, transform.Failed, r.Outcome)
}

// TestTo checks that another version becomes the storage version, forward and back. The result of
// both is equal to the start, except for the generation of the CustomResourceDefinition.
func TestTo(t *testing.T) {
	d := definition{versions: "v1alpha1- v1beta1 v1*"}
	objects := []resource{{version: "v1", name: "a"}, {version: "v1", name: "b", spec: `{"free":{"x":[1,2.5]}}`}}
	path := newCluster(t, d).add(objects...).build()
	back := migrate(t, transform.Options{In: path}, Options{To: "v1alpha1"})
	require.Equal(t, []string{widgetsKey, objects[0].key(), objects[1].key()}, back.changed())
	require.Equal(t, objects[1].at("v1alpha1").json(t), back.out[objects[1].key()].value)
	require.Contains(t, back.out[widgetsKey].value, `"generation":3`)
	require.Equal(t, []string{"v1alpha1"}, back.storedVersions(widgetsKey))
	require.Equal(t, "v1alpha1", back.resources(widgetsCRD).StorageVersion)

	same := migrate(t, transform.Options{In: back.path}, Options{})
	require.Equal(t, transform.Unchanged, same.Outcome)
	require.Equal(t, transform.Unchanged, migrate(t, transform.Options{In: back.path}, Options{To: "v1alpha1"}).Outcome)

	forth := migrate(t, transform.Options{In: back.path}, Options{To: "v1"})
	for _, o := range objects {
		require.Equal(t, o.json(t), forth.out[o.key()].value)
	}
	d.meta = ""
	require.Equal(t, strings.Replace(d.json(t), `"generation":2`, `"generation":4`, 1), forth.out[widgetsKey].value)
}

// TestToNoVersion checks that an unlisted version is refused before any change.
func TestToNoVersion(t *testing.T) {
	o := resource{version: "v1alpha1", name: "a"}
	path := newCluster(t, twoVersions(), definition{name: "gadgets.example.com", versions: "v1* v2"}).add(o).build()
	r := migrate(t, transform.Options{In: path}, Options{To: "v2"})
	r.refusedFor("error unlisted-version " + widgetsKey)
	require.Equal(t, "its storage version cannot become v2: it has v1alpha1, v1", r.reason(codeUnlistedVersion.Name))
	require.Equal(t, "v1", r.resources(widgetsCRD).StorageVersion)
	r = migrate(t, transform.Options{In: path, Allow: []string{codeUnlistedVersion.Name}}, Options{To: "v2"})
	require.Equal(t, []string{definitions + "gadgets.example.com"}, r.changed())
	require.Equal(t, []string{"v1alpha1", "v1"}, r.storedVersions(widgetsKey))
}

// TestToWebhook checks that the way back needs a converter too.
func TestToWebhook(t *testing.T) {
	o := resource{version: "v2", name: "a", spec: `{"body":"x","since":"v2"}`}
	path := newCluster(t, webhooked()).add(o).build()
	migrate(t, transform.Options{In: path}, Options{To: "v1"}).refusedFor("error needs-webhook "+o.key(),
		"warning stored-versions-kept "+widgetsKey)
	ask := &converter{do: func(obj map[string]any) error {
		obj["spec"] = map[string]any{"text": obj["spec"].(map[string]any)["body"]}
		return nil
	}}
	r := migrate(t, transform.Options{In: path}, Options{To: "v1",
		Converters: map[string]Converter{"example.com": ask}})
	require.Equal(t, resource{version: "v1", name: "a"}.json(t), r.out[o.key()].value)
	require.Equal(t, []string{"widgets.example.com to v1"}, ask.asked)
}

// TestMap checks that with --map, objects of a removed version are read as objects of another
// version.
func TestMap(t *testing.T) {
	gone := resource{version: "v1beta1", name: "a"}
	lists := definition{versions: "v1alpha1 v1*", stored: `["v1beta1","v1"]`}
	tests := []struct {
		name    string
		m       []Mapping
		reason  string // of the refusal; empty for none
		changed []string
		unused  int // mappings
	}{
		{"to the storage version", []Mapping{{"example.com", "v1beta1", "v1"}}, "", []string{widgetsKey, gone.key()},
			0},
		{"to another", []Mapping{{"example.com", "v1beta1", "v1alpha1"}}, "", []string{widgetsKey, gone.key()}, 0},
		{"the first that fits", []Mapping{{"example.com", "v2", "v1"}, {"example.com", "v1beta1", "v7"},
			{"example.com", "v1beta1", "v1"}}, "", []string{widgetsKey, gone.key()}, 1},
		{"none", nil, "it is stored at v1beta1", nil, 0},
		{"of another version", []Mapping{{"example.com", "v1beta2", "v1"}}, "it is stored at v1beta1", nil, 1},
		{"to one that is gone too", []Mapping{{"example.com", "v1beta1", "v2"}},
			"v2, which is to take its place, is not listed either", nil, 0},
		{"of another group", []Mapping{{"example.org", "v1beta1", "v1"}}, "it is stored at v1beta1", nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newCluster(t, lists, definition{name: "things.example.org",
				versions: "v1*"}).add(gone).migrate(Options{Mappings: tt.m})
			if tt.reason != "" {
				want := []string{"error unlisted-version " + gone.key(), "warning stored-versions-kept " + widgetsKey}
				r.refusedFor(slices.Insert(want, 1, slices.Repeat([]string{"warning mapping-unused "},
					tt.unused)...)...)
				require.Contains(t, r.reason(codeUnlistedVersion.Name), tt.reason)
				return
			}
			require.Equal(t, tt.changed, r.changed())
			require.Equal(t, gone.at("v1").json(t), r.out[gone.key()].value)
			require.Equal(t, []string{"v1"}, r.storedVersions(widgetsKey))
			require.Equal(t, map[string]int{"v1beta1": 1}, r.resources(widgetsCRD).Found)
			require.Len(t, r.Problems, tt.unused)
		})
	}
}

// TestMapGroup checks that a mapping applies to every kind of its group without the version; if the
// version is still listed, its own schema reads the objects.
func TestMapGroup(t *testing.T) {
	lists := definition{name: "gadgets.example.com", versions: "v1beta1 v1*", stored: `["v1beta1","v1"]`,
		schemas: map[string]string{"v1beta1": typed(`"text":{"type":"string"},"own":{"type":"string","default":"o"}`),
			"v1": typed(`"text":{"type":"string"},"own":{"type":"string"}`)}}
	lost := definition{versions: "v1*", stored: `["v1beta1","v1"]`}
	listed, gone := resource{crd: "gadgets.example.com", version: "v1beta1", name: "a"},
		resource{version: "v1beta1", name: "a"}
	other := resource{crd: "things.example.com", version: "v1beta1", name: "a"}
	r := newCluster(t, lists, lost, definition{name: "things.example.com", versions: "v1*"}).add(listed, gone, other).
		migrate(Options{Exclude: []string{"things.example.com"}, Mappings: []Mapping{{"example.com", "v1beta1", "v1"}}})
	require.Equal(t, []string{lists.key(), widgetsKey, listed.key(), gone.key()}, r.changed())
	want := listed.at("v1")
	want.spec = `{"own":"o","text":"x"}`
	require.Equal(t, want.json(t), r.out[listed.key()].value, "the default of its own schema")
	require.Equal(t, []string{"warning not-chosen " + definitions + "things.example.com"}, r.problems())
}
