package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// rules are the constraints of a schema on one value. Methods return two results: whether a field
// manager accepts the value (typed), and whether a server accepts the value too (valid).
type rules struct {
	kind   string // a type, intOrString, anyValue, or "" if no value is surely accepted
	unsure bool   // the schema has further rules
	list   string // "map" or "set"

	required         []string
	keys             []string // keys of a map item
	minSize, maxSize *int64   // number of fields, items or letters

	enum    []string
	pattern *regexp.Regexp
	format  string

	min, max         *float64 // whole numbers
	openMin, openMax bool     // min or max itself is excluded
	int32, notNull   bool

	combined, enumSize, patternSize int // for counting checks
}

const (
	anyValue    = "any"
	intOrString = "integer or string"
)

var noRules = &rules{}

// checks returns the rules for values of the shape itself.
func (s *shape) checks() *rules {
	if s == nil || s.rules == nil {
		return noRules
	}
	return s.rules
}

// compileChecked returns the shape of the version with rules, or without rules if the version's
// objects cannot be checked; nil if no server would serve the version.
func compileChecked(v *Version) *shape {
	if _, err := v.structural(); err != nil {
		return nil
	}
	root := v.shape()
	if root == nil {
		return &shape{}
	}
	props, err := v.props()
	if err != nil || v.preserves() || root.open {
		return root
	}
	if _, err := v.validators(); err != nil {
		return root
	}
	if _, err := v.fieldType(); err != nil {
		return root
	}
	root.attach(props)
	if root.rules.kind != "object" || !bindScale(v, root) || restrictsMeta(props) {
		root.rules = nil
	}
	return root
}

// restrictsMeta reports whether the schema has rules for the type meta or the metadata.
func restrictsMeta(props *apiextensions.JSONSchemaProps) bool {
	for name, kind := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
		if own, declared := props.Properties[name]; declared {
			r := newRules(&own)
			if r.kind != kind || r.restricts() || len(own.Properties) > 0 || own.AdditionalProperties != nil {
				return true
			}
		}
	}
	return false
}

// restricts reports whether the rules reject some values of the type.
func (r *rules) restricts() bool {
	return r.unsure || len(r.required) > 0 || r.minSize != nil || r.maxSize != nil || r.hasTextRules()
}

// attach adds the rules of the schema to the shape and to all shapes below.
func (s *shape) attach(p *apiextensions.JSONSchemaProps) {
	s.rules = newRules(p)
	for name, below := range s.properties {
		if property, found := p.Properties[name]; found {
			below.attach(&property)
		}
	}
	if s.additional != nil && p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		s.additional.attach(p.AdditionalProperties.Schema)
	}
	if s.items != nil && p.Items != nil && p.Items.Schema != nil {
		s.items.attach(p.Items.Schema)
		if s.rules.list == "map" {
			s.items.rules.keys = slices.Compact(slices.Sorted(slices.Values(p.XListMapKeys)))
		}
	}
}

// bindScale adds the checks of validateScale, or returns false if the schema does not declare the
// fields.
func bindScale(v *Version, root *shape) bool {
	if v.spec.Subresources == nil || v.spec.Subresources.Scale == nil {
		return true
	}
	at := func(path string) *rules {
		of := root
		for _, name := range fieldNames(path) {
			if of = of.property(name); of == nil {
				return noRules
			}
		}
		r := of.checks()
		if r != noRules {
			r.notNull = true
		}
		return r
	}
	scale := v.spec.Subresources.Scale
	for _, path := range []string{scale.SpecReplicasPath, scale.StatusReplicasPath} {
		r := at(path)
		if r.kind != "integer" {
			return false
		}
		if r.int32 = true; r.min == nil || *r.min < 0 {
			r.min, r.openMin = new(0.0), false
		}
	}
	return scale.LabelSelectorPath == nil || at(*scale.LabelSelectorPath).kind == "string"
}

// property returns the shape of a declared field, or nil.
func (s *shape) property(name string) *shape {
	if isMetaField(name) {
		return nil
	}
	return s.properties[name]
}

func newRules(p *apiextensions.JSONSchemaProps) *rules {
	r := &rules{kind: p.Type, unsure: hasUnreadRules(p), combined: len(p.AnyOf), enumSize: len(p.Enum),
		patternSize: int(bounded.Instructions(p.Pattern))}
	preserves := p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields
	switch {
	case p.XIntOrString && p.Type == "":
		r.kind = intOrString
	case p.Type == "" && preserves && len(p.Required) == 0:
		r.kind = anyValue
	}
	if isMisplaced(p, r.kind) {
		return &rules{}
	}
	switch r.kind {
	case "object":
		r.required = slices.Compact(slices.Sorted(slices.Values(p.Required)))
		r.minSize, r.maxSize = p.MinProperties, p.MaxProperties
	case "array":
		r.minSize, r.maxSize = p.MinItems, p.MaxItems
		if p.XListType != nil && *p.XListType != "atomic" {
			r.list = *p.XListType
		}
	case "string", intOrString:
		r.addText(p)
	case "integer", "number":
		r.addNumber(p)
	}
	return r
}

// hasUnreadRules reports whether a schema has rules that newRules does not read.
func hasUnreadRules(p *apiextensions.JSONSchemaProps) bool {
	eitherType := p.XIntOrString && len(p.AnyOf) == 2 && isType(&p.AnyOf[0], "integer") && isType(&p.AnyOf[1], "string")
	combined := len(p.AllOf)+len(p.OneOf) > 0 || len(p.AnyOf) > 0 && !eitherType || p.Not != nil || p.Ref != nil
	named := len(p.PatternProperties)+len(p.Dependencies)+len(p.Definitions) > 0 || p.AdditionalItems != nil
	return combined || named || p.MultipleOf != nil || p.UniqueItems || p.XEmbeddedResource
}

// isType reports whether a schema requires a type and nothing else.
func isType(p *apiextensions.JSONSchemaProps, kind string) bool {
	r := newRules(p)
	return r.kind == kind && !r.restricts() && r.min == nil && r.max == nil && !r.int32
}

// isMisplaced reports whether a schema has rules for another type than its own, or an unknown type.
func isMisplaced(p *apiextensions.JSONSchemaProps, kind string) bool {
	isKind := func(kinds ...string) bool { return slices.Contains(kinds, kind) }
	fields := len(p.Required)+len(p.Properties) > 0 || p.AdditionalProperties != nil || p.MinProperties != nil ||
		p.MaxProperties != nil || p.XMapType != nil
	items := p.Items != nil || p.MinItems != nil || p.MaxItems != nil || p.XListType != nil || len(p.XListMapKeys) > 0
	text := p.Pattern != "" || p.MinLength != nil || p.MaxLength != nil
	number := p.Minimum != nil || p.Maximum != nil || p.ExclusiveMinimum || p.ExclusiveMaximum
	open := p.AdditionalProperties != nil && p.AdditionalProperties.Schema == nil || kind == "array" &&
		(p.Items == nil || p.Items.Schema == nil)
	return !isKind("object", "array", "string", "integer", "number", "boolean", intOrString, anyValue) || open ||
		fields && !isKind("object") || items && !isKind("array") || text && !isKind("string", intOrString) || number &&
		!isKind("integer", "number") ||
		len(p.Enum) > 0 && !isKind("string") || p.XPreserveUnknownFields != nil && !isKind("object", anyValue) ||
		p.XIntOrString && !isKind(intOrString)
}

// addText adds the rules for strings.
func (r *rules) addText(p *apiextensions.JSONSchemaProps) {
	for _, value := range p.Enum {
		text, isText := value.(string)
		r.unsure = r.unsure || !isText
		r.enum = append(r.enum, text)
	}
	r.minSize, r.maxSize = p.MinLength, p.MaxLength
	if strfmt.Default.ContainsName(p.Format) {
		r.format = p.Format
		r.patternSize += formatSize
	}
	if p.Pattern != "" {
		var err error
		r.pattern, err = regexp.Compile(p.Pattern)
		r.unsure = r.unsure || err != nil
	}
}

// addNumber adds the rules for numbers. With whole bounds the library compares in the same way.
func (r *rules) addNumber(p *apiextensions.JSONSchemaProps) {
	r.min, r.max, r.openMin, r.openMax = p.Minimum, p.Maximum, p.ExclusiveMinimum, p.ExclusiveMaximum
	r.int32 = p.Format == "int32" && p.Type == "integer"
	most := float64(1 << 53)
	if r.int32 {
		most = math.MaxInt32
	}
	for _, bound := range []*float64{r.min, r.max} {
		r.unsure = r.unsure || bound != nil && (*bound != math.Trunc(*bound) || math.Abs(*bound) > most)
	}
	r.unsure = r.unsure || p.Type == "number" && p.Format == "float"
}

func within(n int, least, most *int64) bool {
	return (least == nil || int64(n) >= *least) && (most == nil || int64(n) <= *most)
}

func (r *rules) acceptsNull() (typed, valid bool) {
	return r.kind != "" && len(r.keys) == 0, !r.unsure && !r.notNull && r.enum == nil
}

// hasTextRules reports whether the rules reject some strings.
func (r *rules) hasTextRules() bool {
	return r.enum != nil || r.pattern != nil || r.format != "" || r.minSize != nil || r.maxSize != nil
}

// acceptsText checks a quoted string: typed means that the type allows a string, valid that the
// rules accept this string.
func (r *rules) acceptsText(quoted []byte) (typed, valid bool) {
	switch r.kind {
	case anyValue:
		return true, !r.unsure
	case "string", intOrString:
	default:
		return false, false
	}
	if r.unsure || !r.hasTextRules() {
		return true, !r.unsure
	}
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		var decoded string
		if json.Unmarshal(quoted, &decoded) != nil {
			return true, false
		}
		text = []byte(decoded)
	}
	sized := r.minSize == nil && r.maxSize == nil || within(utf8.RuneCount(text), r.minSize, r.maxSize)
	return true, sized && (r.enum == nil || slices.Contains(r.enum, string(text))) &&
		(r.pattern == nil || r.pattern.Match(text)) && r.hasFormat(text)
}

func (r *rules) hasFormat(text []byte) bool {
	return r.format == "" || r.format == "date-time" && isTime(text) || strfmt.Default.Validates(r.format, string(text))
}

// acceptsNumber checks a number: typed means that the type allows a number, valid that the rules
// accept this number.
func (r *rules) acceptsNumber(text []byte) (typed, valid bool) {
	whole := !bytes.ContainsAny(text, ".eE")
	switch r.kind {
	case anyValue:
	case "integer", "number", intOrString:
		if !whole && r.kind != "number" {
			return true, false
		}
	default:
		return false, false
	}
	if r.unsure || r.min == nil && r.max == nil && !r.int32 {
		return true, !r.unsure
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil || whole && math.Abs(n) >= 1<<53 {
		return true, false
	}
	return true, (!r.int32 || n >= math.MinInt32 && n <= math.MaxInt32) &&
		(r.min == nil || n > *r.min || n == *r.min && !r.openMin) &&
		(r.max == nil || n < *r.max || n == *r.max && !r.openMax)
}
