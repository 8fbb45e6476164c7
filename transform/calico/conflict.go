package calico

import (
	"context"
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

// Conflicts is what to do where another v3 object has the name that a v1 record gets.
type Conflicts string

// The ways to resolve conflicts. The zero value refuses the run.
const (
	RefuseConflicts Conflicts = ""
	KeepV3          Conflicts = "keep-v3" // the v3 object stays, the v1 record is not migrated
	TakeV1          Conflicts = "take-v1" // the v3 object becomes what the v1 record is; its UID stays
)

// meet handles a v1 record whose v3 name is taken: obj is what it would become. Equal specs are left as they are; the live
// controller does the same, but says nothing about what differs besides.
func (m *run) meet(ctx context.Context, id *identity, version *schema.Version, obj map[string]any) error {
	there, format, err := encoding.DecodeObject(id.there.value)
	if err != nil && !id.there.unreadable {
		id.there.unreadable = true
		m.view.Raise(string(id.v3key), transform.Unreadable(err))
	}
	if id.there.unreadable {
		m.leave(id, codeConflict.Because("the v3 object of its name cannot be read, and so not compared"))
		return nil
	}
	comparable := runtime.DeepCopyJSON(there)
	if err := normalize(m.kinds[id.kind], version, comparable); err != nil {
		m.view.Raise(string(id.v3key), codeInvalid.Because("%v", err))
		m.leave(id, codeConflict.Because("the v3 object of its name cannot be compared"))
		return nil
	}
	paths := specDifferences(m.kinds[id.kind], obj, comparable)
	if len(paths) == 0 {
		id.fate = unchanged
		m.reportMetadata(id, obj, there)
		return nil
	}
	id.conflict = true
	reason := "a v3 object of its name is there and differs: " + finding.List(paths)
	switch m.opts.Conflicts {
	case KeepV3:
		id.fate = kept
		m.view.Raise(string(id.key), codeConflict.Because("%s", reason).Decided("the v3 object stays (--conflicts keep-v3)"))
		return nil
	case TakeV1:
		id.fate = replaced
		id.there.replaced = true
		m.feedIPAM(id, obj)
		m.view.Raise(string(id.key), codeConflict.Because("%s", reason).Decided("the v1 record takes its place (--conflicts take-v1)"))
		return m.put(ctx, id, succeed(obj, there), format)
	default:
		m.leave(id, codeConflict.Because("%s", reason))
		m.view.Report().AddStep("settle the conflicts with v3 objects: migrate the input again with --conflicts %s or --conflicts %s, or correct single records by hand", KeepV3, TakeV1)
		return nil
	}
}

// normalize makes a v3 object that is there comparable with a converted one: pruned, defaulted, and with what admission
// and reading would set.
func normalize(k kind, version *schema.Version, obj map[string]any) error {
	version.Prune(obj)
	if err := version.Default(obj); err != nil {
		return err
	}
	spec, err := specOf(obj)
	if err != nil {
		return nil // what has no spec differs
	}
	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	_ = convertSpec(k, meta, spec) // what does not convert differs
	return nil
}

// succeed is obj in the place of there, as an update leaves it: the generation goes on, what keeps the old object alive
// and its status stay unless obj has its own.
func succeed(obj, there map[string]any) map[string]any {
	meta, _ := obj["metadata"].(map[string]any)
	old, _ := there["metadata"].(map[string]any)
	if generation, ok := old["generation"].(int64); ok {
		meta["generation"] = generation + 1
	}
	finalizers, _ := meta["finalizers"].([]any)
	more, _ := old["finalizers"].([]any)
	for _, f := range more {
		if !slices.Contains(finalizers, f) {
			finalizers = append(finalizers, f)
		}
	}
	if len(finalizers) > 0 {
		meta["finalizers"] = finalizers
	}
	if obj["status"] == nil && there["status"] != nil {
		obj["status"] = there["status"]
	}
	return obj
}

// reportMetadata says what an equal v3 object has otherwise: it stays as it is, so that differences are lost.
func (m *run) reportMetadata(id *identity, obj, there map[string]any) {
	ours, _ := metaOf(obj) // made from an ObjectMeta
	theirs, err := metaOf(there)
	if err != nil {
		m.view.Raise(string(id.there.key), codeMetadataDiffers.Because("metadata: %v", err))
		return
	}
	var differ []string
	note := func(what string, same bool) {
		if !same {
			differ = append(differ, what)
		}
	}
	note("uid", string(theirs.UID) == id.seen() || m.opts.NewUIDs)
	note("creationTimestamp", ours.CreationTimestamp.Equal(&theirs.CreationTimestamp))
	note("labels", maps.Equal(ours.Labels, theirs.Labels))
	note("annotations", maps.Equal(withoutMarks(ours.Annotations), withoutMarks(theirs.Annotations)))
	note("finalizers", slices.Equal(ours.Finalizers, theirs.Finalizers))
	note("ownerReferences", m.sameOwners(ours.OwnerReferences, theirs.OwnerReferences))
	note("deletionTimestamp", ours.DeletionTimestamp.Equal(theirs.DeletionTimestamp))
	note("status", sameValue(obj["status"], there["status"]))
	if len(differ) > 0 {
		m.view.Raise(string(id.there.key), codeMetadataDiffers.Because("its spec is that of %s, but not its %s: it stays as it is", id.key, strings.Join(differ, ", ")))
	}
}

func metaOf(obj map[string]any) (out metav1.ObjectMeta, err error) {
	meta, _ := obj["metadata"].(map[string]any)
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(meta, &out)
	return out, err
}

// sameOwners compares references by where they end.
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

// withoutMarks drops the annotations that the live controller leaves on what it made.
func withoutMarks(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, "migration.projectcalico.org/") })
	return out
}
