package preparerestore

import (
	"context"
	"encoding/json"
	"maps"
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
	cluster string // UID of the namespace kube-system; "" where it is not known
}

// readUndo reads the report that --undo names.
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
			if of.Prepared != nil && report.Prepared.Prepared != nil { // whose changes may hide each other
				return nil, transform.Usagef("--undo %s: several steps are \"prepare-restore\"; it takes a report with one", a.String("undo"))
			}
			if of.Prepared != nil {
				report.Prepared = of
			}
		}
	}
	if report.APIVersion != transform.APIVersion || report.Kind != "Report" || report.Prepared.Prepared == nil || report.Outcome != transform.Written {
		return nil, transform.Usagef("--undo %s: it is not the report of a run of \"prepare-restore\" that wrote a snapshot", a.String("undo"))
	}
	return &undo{report.Saved, report.Undo, report.Cluster}, nil
}

// Plan puts back each change of the report.
func (u *undo) Plan(ctx context.Context, v *transform.View) error {
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	if _, err := v.Layouts(ctx); err != nil { // with which Get parses keys
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
		done, err := u.one(ctx, v, types, c)
		if err != nil {
			return err
		}
		if done {
			counts[c.Step].Changed++
		}
	}
	return nil
}

// fits reports a snapshot of another cluster than that of the report, and a report with nothing to
// put back.
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
	return v.Raise("", codeOtherCluster.Because("the namespace kube-system has the UID %q in the snapshot, and %q in the report's", cluster, u.cluster)), nil
}

func byName(steps []Step) map[string]*Step {
	by := map[string]*Step{}
	for i := range steps {
		by[steps[i].Step] = &steps[i]
	}
	return by
}

// one puts back one change, or reports why it cannot.
func (u *undo) one(ctx context.Context, v *transform.View, types *inspect.Types, c Change) (done bool, err error) {
	var was, is map[string]any
	if err := utiljson.Unmarshal(u.saved[c.Key], &was); err != nil || was == nil {
		v.Raise(c.Key, codeChangedSince.Because("the report has nothing saved of it"))
		return false, nil
	}
	if hides(was) {
		v.Raise(c.Key, codeChangedSince.Because("the report has it without its credentials: the snapshot that was changed has them"))
		return false, nil
	}
	if err := utiljson.Unmarshal(c.After, &is); err != nil {
		v.Raise(c.Key, codeChangedSince.Because("the report does not tell what was written"))
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
		v.Raise(c.Key, codeChangedSince.Because("it is not there any more"))
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
		v.Raise(c.Key, codeChangedSince.Because("it is another object now: its UID is another"))
		return false, nil
	}
	if other := putBack(content, was, is); other != "" {
		v.Raise(c.Key, codeChangedSince.Because("%s is not what was written", other))
		return false, nil
	}
	return v.PutObject(ctx, o, content)
}

// hides reports whether a credential was left out of content.
func hides(content any) bool {
	switch v := content.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hides)
	case []any:
		return slices.ContainsFunc(v, hides)
	}
	return redact.Hidden(content)
}

// create makes a deleted object again.
func (u *undo) create(ctx context.Context, v *transform.View, key string, e *transform.Entry, was map[string]any) (bool, error) {
	value, err := json.Marshal(was)
	if err != nil {
		return false, err
	}
	if e != nil {
		v.Raise(key, codeChangedSince.Because("it is there again"))
		return false, nil
	}
	return true, v.Create(ctx, []byte(key), append(value, '\n'), 0)
}

func uidOf(content map[string]any) string {
	uid, _, _ := unstructured.NestedString(content, "metadata", "uid")
	return uid
}
