package schema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// validateUpdate returns the errors of a server (1.30 or later) that updates old to obj at this
// version, both pruned and defaulted, if only labels and annotations of the metadata change.
// Unchanged errors of old are ignored if the server can match them; Refused lists the exceptions.
func (v *Version) validateUpdate(ctx context.Context, obj, old map[string]any) field.ErrorList {
	structural, compiled, errs := v.compiled(ctx, obj)
	if errs != nil {
		return errs
	}
	var same *common.CorrelatedObject
	if structural != nil {
		same = common.NewCorrelatedObject(obj, old, &model.Structural{Structural: structural})
	}
	errs = v.validateMeta(obj)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, compiled.openAPI,
		validation.WithRatcheting(same))...)
	errs = append(errs, v.validateScale(obj)...)
	errs = append(errs, compiled.embeddedErrors(ctx, obj, structural)...)
	if len(compiled.listErrors(old, structural)) == 0 {
		errs = append(errs, compiled.listErrors(obj, structural)...)
	}
	return compiled.rules(ctx, errs, structural, obj, old, cel.WithRatcheting(same))
}

// validateMeta is validateCommonFields of the API server's registry, without managedFields: a
// server rewrites managedFields earlier.
func (v *Version) validateMeta(obj map[string]any) field.ErrorList {
	return ValidateMeta(obj, v.crd.isNamespaced())
}

// ValidateMeta returns the errors in the metadata of an object of any kind that prevent a write,
// without managedFields.
func ValidateMeta(obj map[string]any, namespaced bool) field.ErrorList {
	metadata, _ := obj["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	accessor := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	segment := func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	return metavalidation.ValidateObjectMetaAccessor(accessor, namespaced, segment, field.NewPath("metadata"))
}

// Refused returns the reasons why a server refuses every update of obj at this version, even of an
// annotation. A server does not ignore old errors in map list items with missing or doubled keys,
// in metadata (also of embedded resources), in the fields of the scale subresource, and at the
// root. A server refuses an update of the status subresource only for errors in the status.
func (v *Version) Refused(ctx context.Context, obj map[string]any) field.ErrorList {
	compiled, err := v.validators()
	if err == nil && compiled.asOnCreates && len(v.Validate(ctx, obj)) == 0 {
		return v.RefusedValid(ctx, obj) // a tenth of the work
	}
	return v.refused(ctx, obj)
}

// refused compares the object with itself, like a server.
func (v *Version) refused(ctx context.Context, obj map[string]any) field.ErrorList {
	if touched := touch(obj); touched != nil {
		return v.validateUpdate(ctx, touched, obj)
	}
	return nil
}

// RefusedValid is a faster Refused for an object without errors of Validate.
func (v *Version) RefusedValid(ctx context.Context, obj map[string]any) field.ErrorList {
	compiled, err := v.validators()
	if err != nil || !compiled.asOnCreates {
		return v.refused(ctx, obj)
	}
	touched := touch(obj)
	if touched == nil {
		return nil
	}
	if _, _, errs := v.compiled(ctx, touched); errs != nil {
		return errs
	}
	return v.validateMeta(touched)
}

// touch returns obj with another annotation, or nil without metadata: no server reads such an
// object.
func touch(obj map[string]any) map[string]any {
	metadata, _ := obj["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	touched, meta, noted := maps.Clone(obj), maps.Clone(metadata), maps.Clone(annotations)
	if meta == nil {
		return nil
	}
	if noted == nil {
		noted = map[string]any{}
	}
	noted["etcdshift/any"] = "other" // never stored
	meta["annotations"], touched["metadata"] = noted, meta
	return touched
}

var errUnreadableEntry = errors.New("an entry of metadata.managedFields is none that a server reads")

// CheckApply returns the reason in the fields or managedFields of obj, at the storage version, why
// a server refuses every server-side apply, or nil. Refused has the other reasons. Servers up to
// 1.36 drop all managedFields of such an object with the next update. No error quotes a value. With
// a conversion webhook, entries at other versions are not checked.
func (c *CRD) CheckApply(obj map[string]any) error {
	storage, err := c.versionOf(obj)
	if err != nil {
		return err
	}
	if _, err := storage.typedAt(obj, typed.AllowDuplicates); err != nil {
		return fmt.Errorf("its fields are not those of the schema: %s", typedPaths(err))
	}
	r := relabel{crd: c, storage: storage, obj: obj, accepted: map[*Version]bool{}}
	metadata, _ := obj["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	kept := keepsManagedFields(c, list)
	for _, element := range list {
		entry, _ := element.(map[string]any)
		if !kept && !isReadable(entry) {
			return errUnreadableEntry
		}
		if r.breaks(entry) {
			if _, err := c.versionOf(entry); err != nil {
				return fmt.Errorf("metadata.managedFields: %w", err)
			}
			return fmt.Errorf("metadata.managedFields name %s, whose schema does not allow the object's fields",
				entryField(entry, "apiVersion"))
		}
	}
	return nil
}

// isReadable reports whether a server reads an entry of managedFields.
func isReadable(entry map[string]any) bool {
	_, readable := decodeEntry(entry)
	return readable && entryField(entry, "apiVersion") != ""
}

// Fields lists the fields of errors with the type of each error, sorted and without values.
func Fields(errs field.ErrorList) []string {
	var fields []string
	for _, e := range errs {
		name := e.Field
		switch {
		case name == "<nil>" && strings.HasPrefix(e.Detail, rulesSkipped):
			continue // has no information of its own
		case name == "<nil>" || name == "":
			name = "the object itself"
		}
		fields = append(fields, name+" ("+string(e.Type)+")")
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// typedPaths lists the fields that cannot be converted to typed, without keys of list items.
func typedPaths(err error) string {
	var all typed.ValidationErrors
	if !errors.As(err, &all) {
		return "unknown"
	}
	var paths []string
	for _, one := range all {
		if path := listKeys().ReplaceAllString(one.Path, "[]"); path != "" && !slices.Contains(paths, path[1:]) {
			paths = append(paths, path[1:])
		}
	}
	slices.Sort(paths)
	return strings.Join(paths, ", ")
}

var listKeys = pattern.New(`\[[^\]]*\]`)
