package sanitize

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
)

// definitions are the CustomResourceDefinitions whose names of objects are replaced, such as those
// in an enum, by the types that they had.
type definitions map[*inspect.Type]*inspect.Type

// definitions edits the definitions of the types.
func (s *sanitizer) definitions() (definitions, error) {
	out := definitions{}
	for _, t := range s.types.All() {
		if t.CRD == nil {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.CRD.Object())
		if err != nil {
			return nil, fmt.Errorf("definition of %s: %w", t.Name(), err)
		}
		content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		edit := s.names.edit()
		if edit.object(content) != nil || edit.replaced == 0 { // an error is reported of its record
			continue
		}
		renamed := *t
		text, err := json.Marshal(content)
		if err == nil {
			renamed.CRD, err = schema.ParseCRD(text)
		}
		if err != nil {
			return nil, fmt.Errorf("definition of %s with names replaced: %w", t.Name(), err)
		}
		out[t] = &renamed
	}
	return out, nil
}

// check has an object of a changed definition be of that. It returns why content does not fit,
// where the object fitted what was before.
func (d definitions) check(ctx context.Context, o *inspect.Object, content map[string]any) error {
	to := d[o.Type]
	if to == nil {
		return nil
	}
	invalid := func(t *inspect.Type, content map[string]any) ([]string, error) {
		apiVersion, _ := content["apiVersion"].(string)
		version, err := t.CRD.Version(apiVersion[strings.LastIndex(apiVersion, "/")+1:])
		if err != nil {
			return nil, err
		}
		wrong, _ := version.Invalid(ctx, content) // one that cannot be checked is sanitized too
		return wrong, nil
	}
	wrong, err := invalid(to, content)
	if len(wrong) > 0 {
		had, _ := invalid(o.Type, o.Content)
		wrong = slices.DeleteFunc(wrong, func(field string) bool { return slices.Contains(had, field) })
	}
	if o.Type = to; len(wrong) > 0 {
		return fmt.Errorf("it does not fit the schema: %s", finding.List(wrong))
	}
	return err
}
