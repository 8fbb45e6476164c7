package schema

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// validators holds the compiled schema of a version.
type validators struct {
	openAPI validation.SchemaValidator

	name    string                // of the CRD
	ruled   bool                  // the schema may have CEL rules
	cel     func() *cel.Validator // compiled on first use; nil without rules
	created func() *ruleNode      // the same for created objects

	costs       *costs
	embedded    bool // the schema has embedded resources
	lists       bool // the schema has sets or maps in lists
	asOnCreates bool // updates are subject to the same rules as creates
}

func compileValidators(v *Version) (validators, error) {
	props, err := v.props()
	if err != nil {
		return validators{}, err
	}
	structural, err := v.structural()
	if err != nil {
		return validators{}, err
	}
	if err := errors.Join(checkPatterns(props), checkUniqueItems(props)); err != nil {
		return validators{}, err
	}
	openAPI, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return validators{}, err
	}
	return validators{
		openAPI: openAPI, name: v.crd.v1.Name, ruled: hasRules(structural),
		cel: sync.OnceValue(func() *cel.Validator {
			bounded.Environment() // rules compile in this environment
			return cel.NewValidator(structural, true, celconfig.PerCallLimit)
		}),
		created: sync.OnceValue(func() *ruleNode { return newRoot(structural) }),
		costs:   newCosts(props), embedded: v.shape().hasEmbedded(), asOnCreates: asOnCreates(v, props),
		lists: anyStructural(structural, func(s *structuralschema.Structural) bool { return s.XListType != nil }),
	}, nil
}

// Validate returns the errors of a server that creates obj at this version: type meta, schema and
// formats, scale fields, metadata of embedded resources, sets and maps in lists, and CEL rules
// unless earlier errors make them meaningless. Rules for metadata, such as names and labels, are
// not checked. For an object that would take minutes the result is one InternalError. The cost of
// rules counts in the bounded.Meter of ctx. Call Prune and Default first.
func (v *Version) Validate(ctx context.Context, obj map[string]any) field.ErrorList {
	structural, compiled, errs := v.compiled(ctx, obj)
	if errs != nil {
		return errs
	}
	errs = validation.ValidateCustomResource(nil, obj, compiled.openAPI)
	errs = append(errs, v.validateScale(obj)...)
	errs = append(errs, compiled.embeddedErrors(ctx, obj, structural)...)
	errs = append(errs, compiled.listErrors(obj, structural)...)
	return compiled.rules(ctx, errs, structural, obj, nil)
}

// compiled returns the schema and validators for obj, or the errors of its type meta.
func (v *Version) compiled(
	ctx context.Context, obj map[string]any,
) (*structuralschema.Structural, validators, field.ErrorList) {
	compiled, err := v.validators()
	if err == nil {
		err = v.checkable(ctx, obj, compiled.costs)
	}
	if err != nil {
		return nil, validators{}, field.ErrorList{field.InternalError(nil, err)}
	}
	structural, _ := v.structural()
	return structural, compiled, v.validateTypeMeta(obj)
}

// embeddedErrors returns the errors in embedded resources.
func (c validators) embeddedErrors(
	ctx context.Context, obj map[string]any, structural *structuralschema.Structural,
) field.ErrorList {
	if !c.embedded {
		return nil
	}
	return objectmeta.Validate(ctx, nil, obj, structural, false)
}

// listErrors returns the errors in sets and maps in lists.
func (c validators) listErrors(obj map[string]any, structural *structuralschema.Structural) field.ErrorList {
	if !c.lists {
		return nil
	}
	return listtype.ValidateListSetsAndMaps(nil, structural, obj)
}

const rulesSkipped = "some validation rules were not checked"

// rules adds the errors of CEL rules unless errs make them meaningless; old is nil for a create.
func (c validators) rules(ctx context.Context, errs field.ErrorList, structural *structuralschema.Structural,
	obj map[string]any, old any,
	options ...cel.Option) field.ErrorList {
	if !c.ruled || c.cel() == nil {
		return errs
	}
	if slices.ContainsFunc(errs, blocksRules) {
		return append(errs, field.Invalid(nil, nil, rulesSkipped+
			" because the object was invalid; correct the existing errors to complete validation"))
	}
	meter := bounded.MeterOf(ctx)
	if !meter.Start() {
		return field.ErrorList{field.InternalError(nil, errRules)}
	}
	broken, left := c.cel().Validate(ctx, nil, structural, obj, old, celconfig.RuntimeCELCostBudget, options...)
	meter.Add(c.name, celconfig.RuntimeCELCostBudget-max(0, left))
	switch {
	case ctx.Err() != nil:
		return field.ErrorList{field.InternalError(nil, ctx.Err())}
	case slices.ContainsFunc(broken, func(err *field.Error) bool { return bounded.Is(errors.New(err.Detail)) }):
		return field.ErrorList{field.InternalError(nil, bounded.ErrTooLarge)}
	case left < 0: // after evaluating rules in map order
		return append(errs, field.Invalid(nil, nil, errBudget))
	}
	return append(errs, broken...)
}

// errRules is returned if the meter of the context has no budget left.
var errRules = errors.New("the schemas and rules of CustomResourceDefinitions cost too much for all objects together")

// errBudget is a server's error for an object whose rules cost too much together.
const errBudget = "validation failed due to running out of cost budget, no further validation rules will be run"

func (v *Version) validateTypeMeta(obj map[string]any) (errs field.ErrorList) {
	gvk := v.gvk()
	if obj["kind"] != gvk.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), obj["kind"], fmt.Sprintf("must be %v", gvk.Kind)))
	}
	if want := gvk.GroupVersion().String(); obj["apiVersion"] != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), obj["apiVersion"],
			fmt.Sprintf("must be %v", want)))
	}
	if _, _, err := objectmeta.GetObjectMeta(obj, false); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("metadata"), obj["metadata"], err.Error()))
	}
	return errs
}

// blocksRules reports whether an error prevents the CEL rules from running, like hasBlockingErr of
// the API server's custom resource strategy.
func blocksRules(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{
		field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid,
	}, err.Type)
}

// validateScale checks the fields of the scale subresource like the API server's
// customResourceValidator.
func (v *Version) validateScale(obj map[string]any) field.ErrorList {
	if v.spec.Subresources == nil || v.spec.Subresources.Scale == nil {
		return nil
	}
	scale := v.spec.Subresources.Scale
	errs := validateReplicas(obj, scale.SpecReplicasPath)
	errs = append(errs, validateReplicas(obj, scale.StatusReplicasPath)...)
	if scale.LabelSelectorPath != nil {
		path := *scale.LabelSelectorPath
		if value, _, err := unstructured.NestedString(obj, fieldNames(path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), value, err.Error()))
		}
	}
	return errs
}

func validateReplicas(obj map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(obj, fieldNames(path)...)
	var reason string
	switch {
	case err != nil:
		reason = err.Error()
	case replicas < 0:
		reason = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		reason = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), replicas, reason)}
}

// fieldNames splits a path such as ".spec.replicas".
func fieldNames(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
