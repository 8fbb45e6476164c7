package selectors

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
)

// Selector selects objects by --selector and --field-selector.
type Selector struct {
	Labels labels.Selector
	Fields fields.Selector
}

// Everything selects all objects.
func Everything() Selector { return Selector{labels.Everything(), fields.Everything()} }

// Empty reports whether the selector selects all objects.
func (s Selector) Empty() bool { return s.Labels.Empty() && s.Fields.Empty() }

// Parse reads the texts of --selector and --field-selector. An error names the flag.
func Parse(selector, fieldSelector string) (s Selector, err error) {
	if s.Labels, err = labels.Parse(selector); err != nil {
		return s, fmt.Errorf("--selector: %w", err)
	}
	if s.Fields, err = fields.ParseSelector(fieldSelector); err != nil {
		return s, fmt.Errorf("--field-selector: %w", err)
	}
	return s, nil
}

// Check refuses fields by which a server would not select objects of a type.
func (s Selector) Check(t *inspect.Type) error {
	takes := Fields(t, "")
	for _, r := range s.Fields.Requirements() {
		if !strings.HasPrefix(r.Field, "metadata.") && !slices.Contains(takes, r.Field) {
			return fmt.Errorf("--field-selector: no field %q selects %s; it takes %s", r.Field, t.Name(), strings.Join(takes, ", "))
		}
	}
	return nil
}

// Fits reports whether the selector selects an object.
func (s Selector) Fits(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return s.Labels.Matches(labels.Set(u.GetLabels())) && s.Fields.Matches(Values(s.Fields, content))
}
