package schema

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// RewriteManagedFields changes metadata.managedFields of obj, at the storage version, in place like
// a no-op update by a 1.37 server: entries without fields are dropped, the others rewritten, and at
// most ten of operation Update kept apart. With one unreadable entry the server drops all entries;
// lost are the managers of these entries. Objects that do not fit the schema and entries for a
// webhook stay unchanged.
func (c *CRD) RewriteManagedFields(obj map[string]any) (lost []string, err error) {
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	if len(list) == 0 {
		return nil, nil
	}
	storage, err := c.versionOf(obj)
	if err != nil || keepsManagedFields(c, list) {
		return nil, err
	}
	settled, err := updateManagedFields(storage, obj, list)
	if err != nil {
		return nil, err
	}
	if len(settled) > 0 {
		metadata["managedFields"] = settled
		return nil, nil
	}
	delete(metadata, "managedFields")
	for _, element := range list {
		entry, _ := element.(map[string]any)
		if fields, readable := decodeEntry(entry); !readable || !fields.Empty() {
			lost = append(lost, entryField(entry, "manager"))
		}
	}
	return lost, nil
}

// updateManagedFields runs a server's field manager on an update without changes, and returns the
// new managedFields.
func updateManagedFields(v *Version, obj map[string]any, list []any) ([]any, error) {
	manager, err := v.fieldManager()
	if err != nil {
		return nil, err
	}
	// A server changes only managedFields in the metadata.
	live := func() *unstructured.Unstructured {
		out := maps.Clone(obj)
		out["metadata"] = map[string]any{"managedFields": cloneJSON(list), "uid": "any"}
		return &unstructured.Unstructured{Object: out}
	}
	updated, err := manager.Update(live(), live(), "")
	if err != nil {
		return list, nil // the server then keeps the list
	}
	settled, _, _ := unstructured.NestedSlice(updated.(*unstructured.Unstructured).Object, "metadata", "managedFields")
	return settled, nil
}

// compileFieldManager returns a server's field manager for requests at the version.
func compileFieldManager(v *Version) (*managedfields.FieldManager, error) {
	c, gvk := fieldConverter{crd: v.crd}, v.gvk()
	return managedfields.NewDefaultCRDFieldManager(c, c, nil, unstructuredscheme.NewUnstructuredCreator(), gvk,
		gvk.GroupVersion(), "", nil)
}

// fieldConverter converts for a field manager with the strategy None, without dropping fields.
type fieldConverter struct {
	runtime.ObjectConvertor // a field manager only calls ConvertToVersion
	crd                     *CRD
}

// ObjectToTyped implements managedfields.TypeConverter.
func (c fieldConverter) ObjectToTyped(
	obj runtime.Object, options ...typed.ValidationOptions,
) (*typed.TypedValue, error) {
	content := obj.(*unstructured.Unstructured).Object
	version, err := c.crd.versionOf(content)
	if err != nil {
		return nil, err
	}
	return version.typedAt(content, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (c fieldConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no object")
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (c fieldConverter) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	gv, ok := target.(schema.GroupVersion)
	content := in.(*unstructured.Unstructured).Object
	if !ok || c.crd.Webhook() && content["apiVersion"] != gv.String() {
		return nil, ErrNeedsWebhook
	}
	if _, err := c.crd.Version(gv.Version); err != nil || gv.Group != c.crd.v1.Spec.Group {
		return nil, ErrNoVersion
	}
	out := maps.Clone(content)
	out["apiVersion"] = gv.String()
	return &unstructured.Unstructured{Object: out}, nil
}
