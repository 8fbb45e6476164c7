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
	"github.com/etcdshift/etcdshift/transform"
)

// Conflicts says which object wins where another v3 object has the name that a v1 record gets.
type Conflicts string

// The ways to resolve conflicts. The zero value refuses the run.
const (
	RefuseConflicts Conflicts = ""
	KeepV3          Conflicts = "keep-v3" // the v3 object stays, the v1 record is not migrated
	TakeV1          Conflicts = "take-v1" // the v3 object becomes what the v1 record is; its UID stays
)

// meet handles a v1 record whose v3 name is taken; obj is what it would become. Objects with equal
// specs stay as they are, as with the live controller; other differences are reported.
func (m *run) meet(id *identity, version *schema.Version, obj map[string]any) {
	other := id.rest().there
	there, format, err := encoding.DecodeObject(other.value)
	if err != nil && !other.unreadable {
		other.unreadable = true
		m.Raise(string(other.key), transform.Unreadable(err))
	}
	if other.unreadable {
		m.skip(id, codeConflict.Because("the v3 object of its name cannot be read, and so not compared"))
		return
	}
	comparable := runtime.DeepCopyJSON(there)
	if err := normalize(id.kind, version, comparable); err != nil {
		m.Raise(string(other.key), codeInvalid.Because("%v", err))
		m.skip(id, codeConflict.Because("the v3 object of its name cannot be compared"))
		return
	}
	paths := specDifferences(id.kind, obj, comparable)
	if len(paths) == 0 {
		id.fate = unchanged
		m.reportMetadata(id, obj, there)
		return
	}
	id.more().conflict = true
	choice, by := m.decide(id)
	differs := codeConflict.Because("a v3 object of its name is there and differs: %s", finding.List(paths))
	switch choice {
	case KeepV3:
		id.fate = kept
		m.Raise(string(id.key), differs.Decided(finding.Outcome("the v3 object stays ("+by+")")))
	case TakeV1:
		id.fate, other.replaced = replaced, true
		m.Raise(string(id.key), differs.Decided(finding.Outcome("the v1 record takes its place ("+by+")")))
		m.write(id, succeed(obj, there), format, nil)
	default:
		m.skip(id, differs)
		m.Step("settle the conflicts with v3 objects: migrate the input again with --conflicts %s or --conflicts %s, "+
			"or decide by object with --conflict KIND[/NAMESPACE]/NAME=%s", KeepV3, TakeV1, TakeV1)
	}
}

// normalize makes a v3 object comparable with a converted record: pruned, defaulted, and with the
// fields that admission and reading would set.
func normalize(k *kind, version *schema.Version, obj map[string]any) error {
	version.Prune(obj)
	if err := version.Default(obj); err != nil {
		return err
	}
	if spec, err := specOf(obj); err == nil { // one without differs
		meta := objectAt(obj, "metadata")
		if meta == nil {
			meta = map[string]any{}
		}
		_ = convertSpec(k, meta, spec) // one that does not convert differs
	}
	return nil
}

// succeed is obj as an update of there: the generation goes on, finalizers stay, and so does a
// status that obj does not have.
func succeed(obj, there map[string]any) map[string]any {
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

// reportMetadata reports the metadata that an equal v3 object has otherwise; it stays as it is.
func (m *run) reportMetadata(id *identity, obj, there map[string]any) {
	ours, _ := metaOf(obj) // it was made from an ObjectMeta
	theirs, err := metaOf(there)
	if err != nil {
		m.Raise(string(id.rest().there.key), codeMetadataDiffers.Because("metadata: %v", err))
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
		m.Raise(string(id.rest().there.key), codeMetadataDiffers.Because("its spec is that of %s, but not its %s: it stays as it is",
			id.key, strings.Join(differ, ", ")))
	}
}

func metaOf(obj map[string]any) (out metav1.ObjectMeta, err error) {
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(objectAt(obj, "metadata"), &out)
	return out, err
}

// sameOwners compares references by the objects they name.
func (m *run) sameOwners(ours, theirs []metav1.OwnerReference) bool {
	return slices.EqualFunc(ours, theirs, func(a, b metav1.OwnerReference) bool {
		if ofV1, ok := isCalico(b.APIVersion); ok {
			if v, err := m.calicoOwner("", fromMeta(b), ofV1); err == nil && v.found {
				b = toMeta(v.ref)
			}
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
