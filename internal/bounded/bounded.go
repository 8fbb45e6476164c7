// Package bounded provides the CEL environment of an API server with a memory bound. The cost
// limits of an API server bound the steps of an expression, but not the size of its results: a few
// calls of replace produce gigabytes from a kilobyte.
//
// Invariant: no call of a guarded function starts whose result would exceed the bounds, and the
// cost limit of an evaluation bounds the total size of its results.
package bounded

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// ErrTooLarge reports an expression whose value would be too large or whose evaluation takes too
// long.
var ErrTooLarge = errors.New("the expression makes a value of more than 8 MiB or 500,000 parts, or takes too long " +
	"in one call; " +
	"etcdshift does not evaluate it")

// stop ends an expression with ErrTooLarge. An error value instead would be lost in "error ||
// true".
func stop() {
	panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: ErrTooLarge.Error()})
}

// Is reports whether an error, or a message with its text, is ErrTooLarge.
func Is(err error) bool { return err != nil && strings.Contains(err.Error(), ErrTooLarge.Error()) }

// Environment returns the base environment of an API server, with expressions that stop with
// ErrTooLarge. It also replaces the library's own base environment, so that library code that
// compiles expressions has the bounds too after the first call.
var Environment = sync.OnceValue(func() *environment.EnvSet {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	g := newGuard(base.StoredExpressionsEnv())
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		ProgramOptions: []cel.ProgramOption{cel.CustomDecoratorV2(g.decorate),
			cel.CostTrackerOptions(g.trackers()...)},
	})
	if err != nil {
		panic(err) // depends on no input
	}
	*base = *set
	return base
})

// guard adds a check before the calls of some functions.
type guard struct {
	checks    map[string]check               // by function
	overloads map[string]*functions.Overload // by overload, and by function for functions with several overloads
}

func newGuard(env *cel.Env) *guard {
	g := &guard{checks: checks(), overloads: map[string]*functions.Overload{}}
	for name, f := range env.Functions() {
		all, err := f.Bindings()
		if _, guarded := g.checks[name]; !guarded || err != nil {
			continue
		}
		for _, o := range all {
			g.overloads[o.Operator] = o
		}
	}
	return g
}

// decorate replaces a call of a guarded function with a call that checks its arguments, and mends
// loops.
func (g *guard) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	mendLoop(i)
	call, is := i.(interpreter.InterpretableCall)
	if !is {
		return i, nil
	}
	checked, guarded := g.checks[call.Function()]
	if !guarded {
		return i, nil
	}
	implementation, err := g.implementation(call)
	if err != nil {
		return nil, err
	}
	overload := call.OverloadID()
	if overload == "" {
		overload = dynamicID(call.Function())
	}
	args := call.Args()
	if isRegexp(call.Function()) {
		if args, err = guardPattern(call.Function(), args); err != nil {
			return nil, err
		}
	}
	replaced := interpreter.NewCall(call.ID(), call.Function(), overload, args, func(args ...ref.Val) ref.Val {
		if !checked(args) {
			stop()
		}
		return implementation(args...)
	})
	if call.Function() == "findAll" {
		return lengthy{replaced}, nil
	}
	return replaced, nil
}

// dynamicID is the overload ID for cost tracking of a call resolved at run time.
func dynamicID(function string) string { return "dynamic " + function }

// implementation returns the function of a call.
func (g *guard) implementation(call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	switch call.Function() {
	case "findAll":
		return findAll, nil
	case operators.Equals:
		return func(args ...ref.Val) ref.Val { return types.Equal(args[0], args[1]) }, nil
	case operators.NotEquals:
		return func(args ...ref.Val) ref.Val { return types.Bool(types.Equal(args[0], args[1]) != types.True) }, nil
	}
	o := g.overloads[call.OverloadID()]
	if o == nil {
		o = g.overloads[call.Function()]
	}
	if o == nil {
		return nil, fmt.Errorf("no function %s", call.Function())
	}
	return func(args ...ref.Val) ref.Val {
		switch {
		case o.OperandTrait != 0 && (len(args) == 0 || !args[0].Type().HasTrait(o.OperandTrait)):
			return types.NewErr("no such overload: %s", call.Function())
		case len(args) == 1 && o.Unary != nil:
			return o.Unary(args[0])
		case len(args) == 2 && o.Binary != nil:
			return o.Binary(args[0], args[1])
		case o.Function != nil:
			return o.Function(args...)
		}
		return types.NewErr("no such overload: %s", call.Function())
	}, nil
}
