package preparerestore

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/transform"
)

// undo is the transform of --undo.
type undo struct {
	saved   map[string]json.RawMessage
	changes []Change
	cluster string // UID of the namespace kube-system; "" if unknown
}

// readUndo reads the report of --undo.
func readUndo(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	text, err := a.ReadFile(ctx, "undo")
	if err != nil {
		return nil, err
	}
	var report struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Outcome    transform.Outcome `json:"outcome"`
		Prepared
		Plan []struct { // of etcdshift run
			Sections []Prepared `json:"sections"`
		} `json:"plan"`
		Saved map[string]json.RawMessage `json:"saved"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, transform.Usagef("--undo %s: it is no report: %v", a.String("undo"), err)
	}
	for _, step := range report.Plan {
		for _, of := range step.Sections {
			if of.Prepared != nil && report.Prepared.Prepared != nil { // their changes may overlap
				return nil, transform.Usagef("--undo %s: several steps are \"prepare-restore\"; it takes a "+
					"report with one", a.String("undo"))
			}
			if of.Prepared != nil {
				report.Prepared = of
			}
		}
	}
	if report.APIVersion != transform.APIVersion || report.Kind != "Report" || report.Prepared.Prepared == nil ||
		report.Outcome != transform.Written {
		return nil, transform.Usagef("--undo %s: it is not the report of a run of \"prepare-restore\" that "+
			"wrote a snapshot", a.String("undo"))
	}
	return &undo{report.Saved, report.Undo, report.Cluster}, nil
}

// Plan reverts each change of the report.
func (u *undo) Plan(ctx context.Context, v *transform.View) error {
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	if _, err := v.Layouts(ctx); err != nil { // Get needs the layouts to parse keys
		return err
	}
	section := &Prepared{Prepared: []Step{}, Undo: []Change{}}
	v.Report().Sections = append(v.Report().Sections, section)
	if fits, err := u.fits(ctx, v); err != nil || !fits {
		return err
	}
	counts := map[string]*Step{}
	for _, c := range u.changes {
		if counts[c.Step] == nil {
			section.Prepared = append(section.Prepared, Step{Step: c.Step, Reason: "put back as it was"})
			counts = byName(section.Prepared)
		}
		done, err := u.revert(ctx, v, types, c)
		if err != nil {
			return err
		}
		if done {
			counts[c.Step].Changed++
		}
	}
	return nil
}

// fits reports whether the report has changes and belongs to the cluster of the snapshot, and
// raises findings otherwise.
func (u *undo) fits(ctx context.Context, v *transform.View) (bool, error) {
	if len(u.changes) == 0 {
		v.Raise("", codeNothingSaved.Because("its \"undo\" is empty"))
	}
	prefixes, err := v.KubernetesPrefixes(ctx)
	if err != nil {
		return false, err
	}
	cluster, err := clusterOf(ctx, v, prefixes)
	if err != nil || u.cluster == "" || cluster == u.cluster {
		return err == nil, err
	}
	return v.Raise("", codeOtherCluster.Because("the namespace kube-system has the UID %q in the snapshot, and %q in "+
		"the report's", cluster, u.cluster)), nil
}

func byName(steps []Step) map[string]*Step {
	by := map[string]*Step{}
	for i := range steps {
		by[steps[i].Step] = &steps[i]
	}
	return by
}

// revert reverts one change, or raises a finding.
func (u *undo) revert(ctx context.Context, v *transform.View, types *inspect.Types, c Change) (done bool, err error) {
	var was, is map[string]any
	if err := utiljson.Unmarshal(u.saved[c.Key], &was); err != nil || was == nil {
		v.Raise(c.Key, codeChangedSince.Because("the report has no saved copy of it"))
		return false, nil
	}
	if hides(was) {
		v.Raise(c.Key, codeChangedSince.Because("the report has it without its credentials: the snapshot that was "+
			"changed has them"))
		return false, nil
	}
	if err := utiljson.Unmarshal(c.After, &is); err != nil {
		v.Raise(c.Key, codeChangedSince.Because("the report does not have the written object"))
		return false, nil
	}
	e, err := v.Get(ctx, []byte(c.Key))
	if err != nil {
		return false, err
	}
	if is == nil {
		return u.create(ctx, v, c.Key, e, was)
	}
	if e == nil {
		v.Raise(c.Key, codeChangedSince.Because("it does not exist any more"))
		return false, nil
	}
	key, err := e.ParseKey()
	if err != nil || types.Of(key.Resource) == nil {
		v.Raise(c.Key, codeChangedSince.Because("no type has such a key"))
		return false, nil
	}
	o := inspect.NewObject(types.Of(key.Resource), e)
	if o.Err != nil {
		v.Raise(c.Key, transform.Unreadable(o.Err))
		return false, nil
	}
	content := runtime.DeepCopyJSON(o.Content)
	if uidOf(content) != uidOf(was) {
		v.Raise(c.Key, codeChangedSince.Because("it is another object now, with another UID"))
		return false, nil
	}
	if other := putBack(content, was, is); other != "" {
		v.Raise(c.Key, codeChangedSince.Because("%s differs from the value written by the run", other))
		return false, nil
	}
	return v.PutObject(ctx, o, content)
}

// hides reports whether content has a redacted credential.
func hides(content any) bool {
	switch v := content.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hides)
	case []any:
		return slices.ContainsFunc(v, hides)
	}
	return redact.Hidden(content)
}

// create recreates a deleted object.
func (u *undo) create(
	ctx context.Context, v *transform.View, key string, e *transform.Entry, was map[string]any,
) (bool, error) {
	value, err := json.Marshal(was)
	if err != nil {
		return false, err
	}
	if e != nil {
		v.Raise(key, codeChangedSince.Because("it exists again"))
		return false, nil
	}
	return true, v.Create(ctx, []byte(key), append(value, '\n'), 0)
}

func uidOf(content map[string]any) string {
	uid, _, _ := unstructured.NestedString(content, "metadata", "uid")
	return uid
}

// storedContent returns the stored content of an object.
func storedContent(o *inspect.Object) map[string]any {
	content := runtime.DeepCopyJSON(o.Content)
	if meta, is := content["metadata"].(map[string]any); is {
		delete(meta, "resourceVersion")
	}
	return content
}

// changed returns the fields that differ between two objects, with both values; a missing field is
// null. List elements are matched by name if all have one; otherwise a list is one value.
// metadata.generation counts changes and is ignored.
func changed(before, after map[string]any) (was, is map[string]any) {
	was, is = map[string]any{}, map[string]any{}
	for field := range union(before, after) {
		b, a := before[field], after[field]
		if reflect.DeepEqual(b, a) || field == "resourceVersion" || field == "generation" {
			continue
		}
		bm, isMap := b.(map[string]any)
		am, both := a.(map[string]any)
		switch {
		case both && (isMap || b == nil):
			if w, i := changed(bm, am); len(i) > 0 {
				was[field], is[field] = w, i
			}
		case sameNames(b, a):
			if w, i := changedElements(b, a); len(i) > 0 {
				was[field], is[field] = w, i
			}
		default:
			was[field], is[field] = b, a
		}
	}
	return was, is
}

// changedElements is changed for lists with the same names.
func changedElements(before, after any) (was, is []any) {
	by := named(after)
	names, _ := namesOf(before)
	for _, name := range names {
		if w, i := changed(named(before)[name], by[name]); len(i) > 0 {
			w["name"], i["name"] = name, name
			was, is = append(was, w), append(is, i)
		}
	}
	return was, is
}

// sameNames reports whether the elements of two lists have the same names in the same order.
func sameNames(a, b any) bool {
	first, are := namesOf(a)
	second, too := namesOf(b)
	return are && too && slices.Equal(first, second)
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}

// namesOf returns the names of all elements of a list; false for a missing or repeated name.
func namesOf(value any) (names []string, ok bool) {
	list, _ := value.([]any)
	for _, one := range list {
		element, _ := one.(map[string]any)
		name, _ := element["name"].(string)
		if name == "" || slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
	}
	return names, len(names) > 0
}

// named returns the elements of a list by name.
func named(value any) map[string]map[string]any {
	by := map[string]map[string]any{}
	list, _ := value.([]any)
	for _, one := range list {
		element, _ := one.(map[string]any)
		name, _ := element["name"].(string)
		by[name] = element
	}
	return by
}

// withIdentity adds the identity of an object to its fields.
func withIdentity(fields, of map[string]any) map[string]any {
	out := maps.Clone(fields)
	out["apiVersion"], out["kind"] = of["apiVersion"], of["kind"]
	meta, _ := out["metadata"].(map[string]any)
	meta = union(meta, nil)
	from, _ := of["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace", "uid"} {
		if from[field] != nil {
			meta[field] = from[field]
		}
	}
	out["metadata"] = meta
	return out
}

// putBack sets the fields of was in current, if current still has the values of is. It returns the
// path of a field with another value, or "".
func putBack(current, was, is map[string]any) (other string) {
	for _, field := range slices.Sorted(maps.Keys(is)) {
		if path := putBackField(current, field, was[field], is[field]); path != "" {
			return path
		}
	}
	return ""
}

func putBackField(current map[string]any, field string, was, is any) (other string) {
	inner, isMap := is.(map[string]any)
	before, both := was.(map[string]any)
	switch {
	case isMap && both:
		content, there := current[field].(map[string]any)
		if !there {
			return field
		}
		if other = putBack(content, before, inner); other != "" {
			return field + "." + other
		}
		if len(content) == 0 { // created by the run for its fields
			delete(current, field)
		}
	case sameNames(was, is):
		return putBackElements(current[field], field, was, is)
	case !reflect.DeepEqual(current[field], is):
		return field
	case was == nil:
		delete(current, field)
	default:
		current[field] = was
	}
	return ""
}

// putBackElements is putBack for list elements.
func putBackElements(current any, field string, was, is any) (other string) {
	now, before := named(current), named(was)
	names, _ := namesOf(is)
	for _, name := range names {
		at := field + "[" + name + "]"
		if now[name] == nil {
			return at
		}
		after := maps.Clone(named(is)[name])
		delete(after, "name")
		if other = putBack(now[name], before[name], after); other != "" {
			return at + "." + other
		}
	}
	return ""
}
