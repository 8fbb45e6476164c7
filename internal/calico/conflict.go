package calico

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// Conflicts selects the winner between a v1 record and an existing v3 object of the same name.
type Conflicts string

// The ways to resolve conflicts. The zero value refuses the run.
const (
	RefuseConflicts Conflicts = ""
	KeepV3          Conflicts = "keep-v3" // the v3 object stays, the v1 record is not migrated
	TakeV1          Conflicts = "take-v1" // the v3 object gets the content of the v1 record and keeps its UID
)

// resolveExisting handles a v1 record with an existing v3 object of the same name. If the specs are
// equal, the v3 object stays, as in the live migration; other differences are reported.
func (m *run) resolveExisting(d *draft) error {
	id, obj, other := d.id, d.r.obj, d.id.optional().there
	there, format, err := encoding.DecodeObject(other.value)
	if err != nil && !other.unreadable {
		other.unreadable = true
		m.Raise(string(other.key), transform.Unreadable(err))
	}
	if other.unreadable {
		return codeConflict.Because("the v3 object of its name cannot be read, and so not compared")
	}
	comparable := runtime.DeepCopyJSON(there)
	if err := normalize(id.kind, d.crd, comparable); err != nil {
		m.Raise(string(other.key), codeInvalid.Because("%v", err))
		return codeConflict.Because("the v3 object of its name cannot be compared")
	}
	paths := specDifferences(id.kind, obj, comparable)
	if len(paths) == 0 {
		id.fate = unchanged
		m.reportMetadata(id, obj, there)
		return nil
	}
	id.conflict = true
	choice, by := m.choices.decide(id, m.opts.Conflicts)
	differs := codeConflict.Because("a v3 object of its name is there and differs: %s", finding.List(paths))
	switch choice {
	case KeepV3:
		id.fate = kept
		m.Raise(string(id.key), differs.Decided(finding.Outcome("the v3 object stays ("+by+")")))
	case TakeV1:
		id.fate, other.replaced = replaced, true
		m.Raise(string(id.key), differs.Decided(finding.Outcome("the v1 record takes its place ("+by+")")))
		obj = updateOf(obj, there)
		value, err := encoding.EncodeObject(obj, format)
		if err != nil {
			return err
		}
		return m.write(id, obj, value)
	default:
		m.skip(id, differs)
		m.step("settle the conflicts with v3 objects: migrate the input again with --conflicts %s or --conflicts %s, "+
			"or decide by object with --conflict KIND[/NAMESPACE]/NAME=%s", KeepV3, TakeV1, TakeV1)
	}
	return nil
}

// normalize makes a v3 object comparable with a converted record: pruned, defaulted, and with the
// fields set by admission and reading.
func normalize(k *kind, crd *schema.CRD, obj map[string]any) error {
	version, err := crd.Version("v3")
	if err != nil {
		return err
	}
	version.Prune(obj)
	if err := version.Default(obj); err != nil {
		return err
	}
	if spec, err := specOf(obj); err == nil { // an object without a spec differs
		meta := objectAt(obj, "metadata")
		if meta == nil {
			meta = map[string]any{}
		}
		_ = convertSpec(k, meta, spec) // an object that does not convert differs
	}
	return nil
}

// updateOf returns obj as an update of there: generation and finalizers continue, and so does the
// status if obj has none.
func updateOf(obj, there map[string]any) map[string]any {
	meta, old := objectAt(obj, "metadata"), objectAt(there, "metadata")
	if generation, ok := old["generation"].(int64); ok {
		meta["generation"] = generation + 1
	}
	ours, _ := meta["finalizers"].([]any)
	theirs, _ := old["finalizers"].([]any)
	if finalizers := merge(ours, theirs); len(finalizers) > 0 {
		meta["finalizers"] = finalizers
	}
	if obj["status"] == nil && there["status"] != nil {
		obj["status"] = there["status"]
	}
	return obj
}

// reportMetadata reports metadata differences from an equal v3 object, which stays unchanged.
func (m *run) reportMetadata(id *identity, obj, there map[string]any) {
	ours, _ := metaOf(obj) // made from an ObjectMeta: cannot fail
	theirs, err := metaOf(there)
	if err != nil {
		m.Raise(string(id.optional().there.key), codeMetadataDiffers.Because("metadata: %v", err))
		return
	}
	var differ []string
	for _, field := range []struct {
		name string
		same bool
	}{
		{"uid", string(theirs.UID) == id.seen() || m.opts.NewUIDs},
		{"creationTimestamp", ours.CreationTimestamp.Equal(&theirs.CreationTimestamp)},
		{"labels", maps.Equal(ours.Labels, theirs.Labels)},
		{"annotations", maps.Equal(withoutMarks(ours.Annotations), withoutMarks(theirs.Annotations))},
		{"finalizers", slices.Equal(ours.Finalizers, theirs.Finalizers)},
		{"ownerReferences", m.sameOwners(ours.OwnerReferences, theirs.OwnerReferences)},
		{"deletionTimestamp", ours.DeletionTimestamp.Equal(theirs.DeletionTimestamp)},
		{"status", sameValue(obj["status"], there["status"])},
	} {
		if !field.same {
			differ = append(differ, field.name)
		}
	}
	if len(differ) > 0 {
		m.Raise(string(id.optional().there.key), codeMetadataDiffers.Because("its spec is that of %s, but not its %s: "+
			"it stays as it is", id.key, strings.Join(differ, ", ")))
	}
}

func metaOf(obj map[string]any) (out metav1.ObjectMeta, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(objectAt(obj, "metadata"), &out)
	return out, err
}

// sameOwners compares references by the objects they name.
func (o *owners) sameOwners(ours, theirs []metav1.OwnerReference) bool {
	return slices.EqualFunc(ours, theirs, func(a, b metav1.OwnerReference) bool {
		if v, err := o.translate(fromMeta(b)); err == nil && v.found {
			b = toMeta(v.ref)
		}
		return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind
	})
}

// withoutMarks drops the annotations of the live controller.
func withoutMarks(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, "migration.projectcalico.org/") })
	return out
}

// Decisions select the winner of single conflicts, by KIND[/NAMESPACE]/NAME. KIND is a kind or
// plural of either group in any case; NAME is the name of the v3 object or of the v1 record.
type Decisions map[string]Conflicts

// parseDecisions parses the values of --conflict.
func parseDecisions(words []string) (Decisions, error) {
	out := Decisions{}
	for _, word := range words {
		object, choice, _ := strings.Cut(word, "=")
		parts := strings.Split(object, "/")
		if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") || Conflicts(choice) != KeepV3 &&
			Conflicts(choice) != TakeV1 {
			return nil, transform.Usagef("--conflict is %q; it takes KIND[/NAMESPACE]/NAME=%s or =%s, such as "+
				"Tier/security=%s", word, TakeV1, KeepV3, TakeV1)
		}
		if is, there := out[object]; there && is != Conflicts(choice) {
			return nil, transform.Usagef("--conflict has both choices for %s", object)
		}
		out[object] = Conflicts(choice)
	}
	return out, nil
}

// choices holds decisions and their use.
type choices struct {
	Decisions
	words map[string]string // of the command line, with the kind in lower case
	used  map[string]bool   // by word: a record has that name
	met   []string          // conflicts found, as words
}

func newChoices(d Decisions) *choices {
	c := &choices{Decisions: d, words: map[string]string{}, used: map[string]bool{}}
	for word := range d {
		kind, rest, _ := strings.Cut(word, "/")
		c.words[strings.ToLower(kind)+"/"+rest] = word
	}
	return c
}

// of returns the decision about a record, "" for none.
func (c *choices) of(id *identity) string {
	for _, kind := range []string{id.kind.Kind, id.kind.V1Kind, id.kind.Plural, id.kind.V1Plural} {
		for _, name := range []string{id.name(), id.stored()} {
			if word, there := c.words[strings.ToLower(kind)+"/"+inNamespace(id, name)]; there {
				return word
			}
		}
	}
	return ""
}

func inNamespace(id *identity, name string) string {
	return strings.TrimPrefix(id.namespace()+"/"+name, "/")
}

// decide returns the choice for a conflict, and the flag that makes the choice.
func (c *choices) decide(id *identity, all Conflicts) (choice Conflicts, by string) {
	c.met = append(c.met, id.kind.Kind+"/"+inNamespace(id, id.name()))
	if word := c.of(id); word != "" {
		c.used[word] = true
		return c.Decisions[word], "--conflict " + word + "=" + string(c.Decisions[word])
	}
	return all, "--conflicts " + string(all)
}

// warnIdle warns of decisions about records without such a conflict.
func (c *choices) warnIdle(v *transform.View, records []*identity) {
	if len(c.used) == len(c.Decisions) {
		return
	}
	for _, id := range records {
		if word := c.of(id); word != "" && !c.used[word] {
			c.used[word] = true
			v.Raise(string(id.key), codeConflict.Because("--conflict %s=%s has no effect: no v3 object with another "+
				"spec was compared with the record",
				word, c.Decisions[word]).Decided(finding.Noted))
		}
	}
}

// unknown returns the usage error for a decision about no v1 record.
func (c *choices) unknown() error {
	for _, word := range slices.Sorted(maps.Keys(c.Decisions)) {
		if c.used[word] {
			continue
		}
		slices.Sort(c.met)
		hint := "there is no conflict"
		if near := phrase.Nearest(word, c.met); near != "" {
			hint = "did you mean " + near + "?"
		} else if len(c.met) > 0 {
			hint = "conflicts are " + finding.List(c.met)
		}
		return transform.Usagef("--conflict %s: there is no v1 record of that name; %s", word, hint)
	}
	return nil
}
