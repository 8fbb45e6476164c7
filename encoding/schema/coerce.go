package schema

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Prune coerces obj in place as a server does when it decodes the object from
// etcd at this version: unknown fields and nulls that mean nothing are dropped,
// metadata keeps its well-formed known fields, a missing generation becomes 1.
// It returns the dropped paths, sorted. An object that no server could decode
// (kind, apiVersion or metadata of the wrong type) stays as it is; Coerce and
// Validate say why.
func (v *Version) Prune(obj map[string]any) []string {
	dropped, _ := v.Coerce(obj)
	return dropped
}

// Coerce is Prune with the reason where the object cannot be decoded.
func (v *Version) Coerce(obj map[string]any) ([]string, error) { return v.coerce(obj, false) }

// governs says whether the schemas apply: same group and kind. The server too
// leaves an object of another kind below this kind's keys alone.
func (v *Version) governs(obj map[string]any) bool {
	kind, _ := obj["kind"].(string)
	apiVersion, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && schema.GroupKind{Group: gv.Group, Kind: kind} == v.crd.GroupKind()
}

// coerce is unstructuredSchemaCoercer.apply of the API server. Strict is its
// mode after a conversion: malformed metadata is an error, generation is not
// repaired.
func (v *Version) coerce(obj map[string]any, strict bool) ([]string, error) {
	structural, err := v.structural()
	if err != nil {
		return nil, err
	}
	if err := checkTypes(obj); err != nil {
		return nil, err
	}
	governs := v.governs(obj)
	metaFits := fitsMetadata(obj, governs && !strict)
	if metaFits && (!governs || v.fits(obj)) {
		return nil, nil // as most objects do
	}
	before := cloneJSON(obj)
	if !metaFits {
		if err := coerceMetadata(obj, governs, strict); err != nil {
			return nil, err
		}
	}
	if governs {
		if err := v.coerceFields(obj, structural, strict); err != nil {
			return nil, err
		}
	}
	return droppedPaths(before.(map[string]any), obj, structural), nil
}

// fitsMetadata says that a server would leave the object's own metadata as it
// is.
func fitsMetadata(obj map[string]any, repairGeneration bool) bool {
	value, found := obj["metadata"]
	if !found {
		return true
	}
	metadata, _ := value.(map[string]any)
	return isCanonicalMeta(value) && (!repairGeneration || metadata["generation"] != nil)
}

// coerceMetadata takes the object's own metadata through metav1.ObjectMeta.
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
		return err
	}
	return nil
}

// checkTypes returns an error where kind or apiVersion are not of a type that a
// server can decode.
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
