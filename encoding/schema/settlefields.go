package schema

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// SettleManagedFields changes metadata.managedFields of obj, which is at the
// storage version, in place into what a no-op update by a server of 1.37 leaves:
// entries that own nothing go, the others are written as the server writes them,
// at most ten of operation Update stay apart. Where one entry is none that the
// server reads it drops all; lost are the managers of these. An object that the
// server cannot bring into the types of the schema keeps what it has, and so
// does one whose entries at other versions only a webhook could convert.
func (c *CRD) SettleManagedFields(obj map[string]any) (lost []string, err error) {
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	if len(list) == 0 {
		return nil, nil
	}
	storage, err := c.versionOf(obj)
	if err != nil {
		return nil, err
	}
	manager, err := storage.fieldManager()
	if err != nil {
		return nil, err
	}
	// Of the metadata a server changes nothing but managedFields.
	live := func() *unstructured.Unstructured {
		out := maps.Clone(obj)
		out["metadata"] = map[string]any{"managedFields": cloneJSON(list), "uid": "any"}
		return &unstructured.Unstructured{Object: out}
	}
	updated, err := manager.Update(live(), live(), "")
	if err != nil {
		return nil, nil // the server keeps them then
	}
	settled, _, _ := unstructured.NestedSlice(updated.(*unstructured.Unstructured).Object, "metadata", "managedFields")
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

// compileFieldManager makes the field manager that a server has for requests at
// the version.
func (v *Version) compileFieldManager() (*managedfields.FieldManager, error) {
	c := fieldConverter{v.crd}
	gvk := v.GroupVersionKind()
	return managedfields.NewDefaultCRDFieldManager(c, c, nil, c, gvk, gvk.GroupVersion(), "", nil)
}

// fieldConverter is what a field manager asks. Conversion is that of the
// strategy None, which drops no fields here; a webhook is not asked.
type fieldConverter struct{ crd *CRD }

// ObjectToTyped implements managedfields.TypeConverter.
func (c fieldConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
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

// Convert implements runtime.ObjectConvertor; no field manager calls it.
func (c fieldConverter) Convert(in, out, context any) error { return ErrNeedsWebhook }

// ConvertFieldLabel implements runtime.ObjectConvertor; no field manager calls it.
func (c fieldConverter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// New implements runtime.ObjectCreater.
func (c fieldConverter) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	return out, nil
}
