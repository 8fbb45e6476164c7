package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/phrase"
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

// ParseSelector parses the texts of --selector and --field-selector. An error names the flag.
func ParseSelector(selector, fieldSelector string) (s Selector, err error) {
	if s.Labels, err = labels.Parse(selector); err != nil {
		return s, fmt.Errorf("--selector: %w", err)
	}
	if s.Fields, err = fields.ParseSelector(fieldSelector); err != nil {
		return s, fmt.Errorf("--field-selector: %w", err)
	}
	return s, nil
}

// Check returns an error about fields unsupported by servers for a type.
func (s Selector) Check(t *inspect.Type) error {
	takes := SelectableFields(t, "")
	for _, r := range s.Fields.Requirements() {
		if !strings.HasPrefix(r.Field, "metadata.") && !slices.Contains(takes, r.Field) {
			return fmt.Errorf("--field-selector: no field %q selects %s; it takes %s", r.Field, t.Name(),
				strings.Join(takes, ", "))
		}
	}
	return nil
}

// Fits reports whether the selector selects an object.
func (s Selector) Fits(content map[string]any) bool {
	u := unstructured.Unstructured{Object: content}
	return s.Labels.Matches(labels.Set(u.GetLabels())) && s.Fields.Matches(FieldValues(s.Fields, content))
}

// builtinFields returns the selectable fields of built-in kinds besides metadata.name and
// metadata.namespace, as in kube-apiserver (pkg/apis/*/v1/conversion.go).
func builtinFields() map[string]string {
	const event = "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid " +
		"involvedObject.apiVersion " +
		"involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type"
	return map[string]string{
		"pods": "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork " +
			"status.phase status.podIP " +
			"status.nominatedNodeName",
		"events": event,
		"events.events.k8s.io": strings.NewReplacer("involvedObject", "regarding", "Component", "Controller",
			" source", "").Replace(event),
		"nodes":                          "spec.unschedulable",
		"namespaces":                     "status.phase",
		"secrets":                        "type",
		"services":                       "spec.clusterIP spec.type",
		"replicationcontrollers":         "status.replicas",
		"jobs.batch":                     "status.successful",
		"resourceslices.resource.k8s.io": "spec.nodeName spec.driver",
		"certificatesigningrequests.certificates.k8s.io": "spec.signerName",
		"clustertrustbundles.certificates.k8s.io":        "spec.signerName",
		"podcertificaterequests.certificates.k8s.io":     "spec.signerName spec.nodeName",
	}
}

// SelectableFields returns the fields that select objects of a type at a version; "" for any.
func SelectableFields(t *inspect.Type, version string) []string {
	out := []string{"metadata.name", "metadata.namespace"}
	if t.CRD == nil {
		return append(out, strings.Fields(builtinFields()[t.Name()])...)
	}
	for _, v := range t.CRD.Object().Spec.Versions {
		for _, f := range v.SelectableFields {
			if name := strings.TrimPrefix(f.JSONPath, "."); (version == "" || v.Name == version) &&
				!slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// FieldValues returns the values of an object for the fields of a selector.
func FieldValues(selector fields.Selector, content map[string]any) fields.Set {
	set := fields.Set{}
	for _, r := range selector.Requirements() {
		path := strings.Split(r.Field, ".")
		switch r.Field {
		case "source": // of an Event: the component
			path = []string{"source", "component"}
		case "status.successful": // of a Job: its older name
			path = []string{"status", "succeeded"}
		}
		value, has, _ := unstructured.NestedFieldNoCopy(content, path...)
		switch {
		case has && value != nil:
			set[r.Field] = fmt.Sprint(value)
		case r.Field == "spec.unschedulable" || r.Field == "spec.hostNetwork":
			set[r.Field] = "false" // a server does not encode false
		case r.Field == "status.successful" || r.Field == "status.replicas":
			set[r.Field] = "0"
		}
	}
	return set
}

// Word is a TYPE of a command line, or several with commas between, and the following names of
// objects; nil for all.
type Word struct {
	Type  string
	Names []string
}

// ParseWords parses TYPE [NAME...] or TYPE/NAME..., like kubectl.
func ParseWords(words []string) (out []Word, err error) {
	slashed := 0
	for _, w := range words {
		if strings.Contains(w, "/") {
			slashed++
		}
	}
	var names []string
	switch slashed {
	case len(words):
	case 0:
		words, names = words[:1], words[1:]
	default:
		return nil, fmt.Errorf("give either TYPE/NAME for all, or one TYPE and names: %q", words)
	}
	for _, word := range words {
		kind, name, named := strings.Cut(word, "/")
		if kind == "" || named && name == "" {
			return nil, fmt.Errorf("%q is neither TYPE nor TYPE/NAME", word)
		}
		one := Word{Type: kind}
		if named {
			one.Names = []string{name}
		} else if len(names) > 0 {
			one.Names = names
		}
		out = append(out, one)
	}
	return out, nil
}

// Namesakes lists the namespaces with an object of a name, the first five in order, for a message
// about a missing object; "" for none.
func Namesakes(spaces []string) string {
	if len(spaces) == 0 {
		return ""
	}
	return "; it is in namespace " + phrase.List(slices.Compact(slices.Sorted(slices.Values(spaces))), 5)
}

// Condition is a compiled expression of CEL over the variable object.
type Condition struct{ program cel.Program }

// maxExpression bounds an expression, in bytes.
const maxExpression = 64 << 10

// Compile compiles an expression with the functions and cost limits of an API server. An error
// names the position.
func Compile(text string) (*Condition, error) {
	if len(text) > maxExpression {
		return nil, fmt.Errorf("the expression has %d bytes; it may have %d", len(text), maxExpression)
	}
	set, err := bounded.Environment().Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	env := set.StoredExpressionsEnv()
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		var all []string
		for _, e := range issues.Errors() {
			message, _, _ := strings.Cut(e.Message, "\n")
			all = append(all, fmt.Sprintf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, message))
		}
		return nil, errors.New(strings.Join(all, "; "))
	}
	if is := ast.OutputType(); !is.IsExactType(cel.BoolType) && !is.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression is of type %s, not bool", is)
	}
	program, err := env.Program(ast)
	return &Condition{program}, err
}

// Chooses evaluates the expression for a decoded object. The finding is the reason for a missing
// result; it quotes no value of a Secret.
func (c *Condition) Chooses(ctx context.Context, o *inspect.Object) (bool, *finding.Finding) {
	if o.Partial {
		return false, metadataAlone(o)
	}
	chosen, err := c.holds(ctx, o.Content)
	switch {
	case err == nil:
		return chosen, nil
	case o.Type.Resource == (schema.GroupResource{Resource: string(
		corev1.ResourceSecrets)}): // an error may quote a value
		return false, codeWhereFailed.Because("it is a Secret, of which no more is said")
	}
	return false, codeWhereFailed.Because("%v", err)
}

// metadataAlone returns the finding for an object of a kind unknown to this build.
func metadataAlone(o *inspect.Object) *finding.Finding {
	return finding.Undecodable.Because("this build knows only the metadata of a %s", o.Type.Kind)
}

// holds evaluates the expression for an object.
func (c *Condition) holds(ctx context.Context, object map[string]any) (bool, error) {
	result, _, err := c.program.ContextEval(ctx, map[string]any{"object": object})
	if err != nil {
		return false, err
	}
	is, isBool := result.Value().(bool)
	if !isBool {
		return false, fmt.Errorf("its result is a %s, neither true nor false", result.Type().TypeName())
	}
	return is, nil
}
