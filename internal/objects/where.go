package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
)

// Condition is a compiled expression of CEL over the variable object.
type Condition struct{ program cel.Program }

// maxExpression is how many bytes an expression may have.
const maxExpression = 64 << 10

// Compile compiles an expression with the functions and cost limits of an API server. An error
// names the place.
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

// Chooses evaluates the expression for a decoded object. The finding tells why there is no result;
// it has no value of a Secret.
func (c *Condition) Chooses(ctx context.Context, o *inspect.Object) (bool, *finding.Finding) {
	if o.Partial {
		return false, metadataAlone(o)
	}
	chosen, err := c.holds(ctx, o.Content)
	switch {
	case err == nil:
		return chosen, nil
	case o.Type.Resource == (schema.GroupResource{Resource: string(corev1.ResourceSecrets)}): // an error may quote a value
		return false, codeWhereFailed.Because("it is a Secret, of which no more is said")
	}
	return false, codeWhereFailed.Because("%v", err)
}

// metadataAlone is for an object of a kind that this build does not know.
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
