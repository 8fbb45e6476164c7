package schema

import (
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// rules are the part of a schema that Accepts checks. The kind of a schema with anything else is
// unsureValue.
type rules struct {
	kind       string // a type, anyValue or unsureValue
	properties map[string]*rules
	additional *rules // of the other fields
	open       bool   // other fields may be anything
	items      *rules
	required   []string

	enum     []string
	min, max *float64 // of a number, or the length of a text
	pattern  *regexp.Regexp
}

const (
	unsureValue = ""
	anyValue    = "any"
)

// compileRules returns nil where nothing can be told about objects of the version.
func (v *Version) compileRules() *rules {
	props, err := v.props()
	if err != nil || props == nil || v.spec.Subresources != nil && v.spec.Subresources.Scale != nil {
		return nil
	}
	if _, err := v.validators(); err != nil {
		return nil
	}
	if _, err := v.fieldType(); err != nil {
		return nil
	}
	r := newRules(props)
	for name, kind := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
		own := r.properties[name]
		if own != nil && (own.kind != kind || own.restricts()) {
			return nil
		}
		delete(r.properties, name)
	}
	if r.kind != "object" {
		return nil
	}
	return r
}

// restricts tells whether not every value of the type is accepted.
func (r *rules) restricts() bool {
	return len(r.properties) > 0 || r.additional != nil || len(r.required) > 0 || r.enum != nil || r.min != nil || r.max != nil || r.pattern != nil
}

func newRules(p *apiextensions.JSONSchemaProps) *rules {
	r := &rules{kind: p.Type, open: p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields}
	if !isSimple(p) {
		return &rules{}
	}
	switch p.Type {
	case "object":
		r.ofObject(p)
	case "array":
		if p.Items == nil || p.Items.Schema == nil || p.XListType != nil && *p.XListType != "atomic" {
			return &rules{}
		}
		r.items = newRules(p.Items.Schema)
	case "string":
		r.ofString(p)
	case "integer":
		r.min, r.max = p.Minimum, p.Maximum
	case "number":
		if p.Minimum != nil || p.Maximum != nil {
			r.kind = unsureValue
		}
	case "":
		if r.open && len(p.Properties) == 0 && p.AdditionalProperties == nil && p.Items == nil && len(p.Required) == 0 {
			r.kind = anyValue
		}
	}
	return r
}

// isSimple tells schemas without what newRules does not read.
func isSimple(p *apiextensions.JSONSchemaProps) bool {
	bounded := p.MaxItems != nil || p.MinItems != nil || p.MaxProperties != nil || p.MinProperties != nil || p.MultipleOf != nil ||
		p.ExclusiveMaximum || p.ExclusiveMinimum || p.UniqueItems
	combined := len(p.AllOf)+len(p.AnyOf)+len(p.OneOf) > 0 || p.Not != nil || p.Ref != nil || len(p.PatternProperties)+len(p.Dependencies) > 0
	special := p.XEmbeddedResource || p.XIntOrString || len(p.XValidations) > 0 || p.AdditionalItems != nil || p.Format != "" || p.XMapType != nil
	misplaced := p.Type != "string" && (len(p.Enum) > 0 || p.Pattern != "" || p.MinLength != nil || p.MaxLength != nil) ||
		p.Type != "object" && (len(p.Required) > 0 || len(p.Properties) > 0 || p.AdditionalProperties != nil) && p.Type != "" ||
		p.Type != "array" && (p.Items != nil || p.XListType != nil) ||
		p.Type != "object" && p.Type != "" && p.XPreserveUnknownFields != nil ||
		p.Type != "integer" && p.Type != "number" && (p.Minimum != nil || p.Maximum != nil)
	return !bounded && !combined && !special && !misplaced
}

func (r *rules) ofObject(p *apiextensions.JSONSchemaProps) {
	r.required = slices.Compact(slices.Sorted(slices.Values(p.Required)))
	if len(p.Properties) > 256 {
		r.kind = unsureValue // see maxAccepted
		return
	}
	r.properties = make(map[string]*rules, len(p.Properties))
	for name, property := range p.Properties {
		r.properties[name] = newRules(&property)
	}
	if p.AdditionalProperties == nil {
		return
	}
	if p.AdditionalProperties.Schema == nil {
		r.kind = unsureValue
		return
	}
	r.additional = newRules(p.AdditionalProperties.Schema)
}

func (r *rules) ofString(p *apiextensions.JSONSchemaProps) {
	for _, value := range p.Enum {
		text, isText := value.(string)
		if !isText {
			r.kind = unsureValue
			return
		}
		r.enum = append(r.enum, text)
	}
	length := func(n *int64) *float64 {
		if n == nil {
			return nil
		}
		return new(float64(*n))
	}
	r.min, r.max = length(p.MinLength), length(p.MaxLength)
	if p.Pattern == "" {
		return
	}
	var err error
	if r.pattern, err = regexp.Compile(p.Pattern); err != nil || len(p.Pattern) > 256 {
		r.kind = unsureValue
	}
}

func (r *rules) within(n float64) bool {
	return (r.min == nil || n >= *r.min) && (r.max == nil || n <= *r.max)
}

func (r *rules) acceptsText(text []byte) bool {
	return (r.enum == nil || slices.Contains(r.enum, string(text))) && (r.pattern == nil || r.pattern.Match(text)) &&
		(r.min == nil && r.max == nil || r.within(float64(utf8.RuneCount(text))))
}

// acceptsInteger checks an integer; one of many digits only where there is no bound.
func (r *rules) acceptsInteger(digits []byte) bool {
	if r.min == nil && r.max == nil {
		return true
	}
	n, err := strconv.Atoi(string(digits))
	return err == nil && len(digits) <= 15 && r.within(float64(n))
}
