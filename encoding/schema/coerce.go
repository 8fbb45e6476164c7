package schema

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Prune coerces obj in place like a server that decodes the object from etcd at this version. Prune
// drops unknown fields and meaningless nulls, keeps the well-formed known fields of metadata, sets
// a missing generation to 1, and returns the dropped paths, sorted. An object that no server could
// decode stays unchanged; Coerce returns the reason.
func (v *Version) Prune(obj map[string]any) []string {
	dropped, _ := v.Coerce(obj)
	return dropped
}

// Coerce is Prune, and also returns the reason why the object cannot be decoded.
func (v *Version) Coerce(obj map[string]any) ([]string, error) { return v.coerce(obj, false) }

// governs reports whether the schemas apply: same group and kind. A server does not change an
// object of another kind below the keys of this kind.
func (v *Version) governs(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	apiVersion, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && schema.GroupKind{Group: gv.Group, Kind: kind} == v.crd.GroupKind()
}

// coerce is unstructuredSchemaCoercer.apply of the API server. strict selects the mode after a
// conversion: malformed metadata is an error, and generation is not repaired.
func (v *Version) coerce(obj map[string]any, strict bool) ([]string, error) {
	structural, err := v.structural()
	if err != nil {
		return nil, err
	}
	if err := checkTypes(obj); err != nil {
		return nil, err
	}
	governs, before := v.governs(obj), cloneJSON(obj).(map[string]any)
	if err = coerceMetadata(obj, governs, strict); err == nil && governs {
		err = v.coerceFields(obj, structural, strict)
	}
	if err != nil {
		return nil, err
	}
	return droppedPaths(before, obj, v.shape()), nil
}

// coerceMetadata decodes the object's own metadata into metav1.ObjectMeta and encodes the result.
func coerceMetadata(obj map[string]any, governs, strict bool) error {
	meta, found, err := objectmeta.GetObjectMeta(obj, !strict)
	if err != nil || !found {
		return err
	}
	if governs && !strict && meta.Generation == 0 {
		meta.Generation = 1
	}
	return objectmeta.SetObjectMeta(obj, meta)
}

func (v *Version) coerceFields(obj map[string]any, structural *structuralschema.Structural, strict bool) error {
	if !v.preserves() {
		pruning.Prune(obj, structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(obj, structural)
	}
	if err := objectmeta.Coerce(nil, obj, structural, false, !strict); err != nil {
		return err // a nil *field.Error is not a nil error
	}
	return nil
}

// checkTypes returns an error if no server decodes the type of kind or apiVersion.
func checkTypes(obj map[string]any) error {
	if _, _, err := unstructured.NestedString(obj, "kind"); err != nil {
		return err
	}
	apiVersion, _, err := unstructured.NestedString(obj, "apiVersion")
	if err != nil {
		return err
	}
	_, err = schema.ParseGroupVersion(apiVersion)
	return err
}
