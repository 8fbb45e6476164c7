package bounded

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// The maximum number of steps of a match is the size of the text times the number of instructions
// of the pattern. An API server counts only the letters of the pattern, and a{0,900} is short.
const (
	maxSteps     = 1 << 26 // per uninterruptible call: about a second
	stepsPerUnit = 64

	maxInstructions  = 1 << 17
	freeInstructions = 64 // of a pattern compiled for each call
)

// Instructions estimates the number of instructions of a compiled pattern; 0 for an invalid
// pattern.
func Instructions(pattern string) int64 {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return instructions(parsed)
}

func instructions(re *syntax.Regexp) int64 {
	n := int64(1) // a class, a repetition, an assertion
	switch re.Op {
	case syntax.OpLiteral:
		n = int64(len(re.Rune))
	case syntax.OpCapture:
		n = 2
	case syntax.OpConcat, syntax.OpAlternate:
		n = int64(len(re.Sub))
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat { // the parser limits nested repetitions to 1,000
		n *= int64(max(1, re.Min, re.Max))
	}
	return n
}

// isRegexp reports whether the second argument of a function is a pattern.
func isRegexp(function string) bool {
	return function == "matches" || function == "find" || function == "findAll"
}

// steps returns the maximum number of steps per match.
func steps(text ref.Val, instructions int64) int64 { return (1 + size(text)) * instructions }

func searches(args []ref.Val) bool {
	pattern, _ := args[1].(types.String)
	return steps(args[0], Instructions(string(pattern))) <= maxSteps
}

// guardPattern wraps the arguments of a call so that a constant pattern is checked too: the library
// replaces such calls with calls of compiled patterns, without the guard. Large patterns stay
// uncompiled: a few bytes may compile to a megabyte.
func guardPattern(function string, args []interpreter.InterpretableV2) ([]interpreter.InterpretableV2, error) {
	if constant, is := args[1].(interpreter.InterpretableConst); is {
		pattern, _ := constant.Value().(types.String)
		if _, err := syntax.Parse(string(pattern), syntax.Perl); err != nil {
			return nil, err
		}
		if n := Instructions(string(pattern)); function != "findAll" && n <= int64(256+8*len(pattern)) {
			return []interpreter.InterpretableV2{searched{args[0], n}, args[1]}, nil
		}
	}
	return append([]interpreter.InterpretableV2{args[0], compiled{args[1]}}, args[2:]...), nil
}

// compiled is a pattern compiled at each call. The library does not recognize the constant.
type compiled struct{ interpreter.InterpretableV2 }

// Exec returns the pattern, if it is not too large.
func (c compiled) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := c.InterpretableV2.Exec(frame)
	pattern, _ := value.(types.String)
	n := Instructions(string(pattern))
	if n > maxInstructions {
		stop()
	}
	charge(frame, uint64(max(0, n-freeInstructions)/4))
	return value
}

// searched is a text to be searched with a pattern of a number of instructions.
type searched struct {
	interpreter.InterpretableV2
	instructions int64
}

// Exec returns the text, unless the search would take too long.
func (s searched) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	text := s.InterpretableV2.Exec(frame)
	if steps(text, s.instructions) > maxSteps {
		stop()
	}
	return text
}

// findAll is the library's findAll with a limit for all matches together: each match may scan the
// whole text.
func findAll(args ...ref.Val) ref.Val {
	text, isText := args[0].(types.String)
	pattern, isPattern := args[1].(types.String)
	if !isText || !isPattern {
		return types.NoSuchOverloadErr()
	}
	most := int64(-1)
	if len(args) > 2 {
		n, is := args[2].(types.Int)
		if !is {
			return types.NoSuchOverloadErr()
		}
		most = int64(n)
	}
	re, err := regexp.Compile(string(pattern))
	if err != nil {
		return types.NewErr("Illegal regex: %v", err.Error())
	}
	fits := maxSteps / max(1, steps(text, Instructions(string(pattern))))
	if most < 0 || most > fits {
		most = fits + 1
	}
	found := re.FindAllString(string(text), int(most))
	if int64(len(found)) > fits {
		stop()
	}
	return types.NewStringList(types.DefaultTypeAdapter, found)
}

// lengthy is a call that may be stopped late.
type lengthy struct{ interpreter.InterpretableCall }

// Exec charges the steps of a stopped call.
func (l lengthy) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	stopped := true
	defer func() {
		if stopped {
			charge(frame, maxSteps/stepsPerUnit)
		}
	}()
	result := l.InterpretableCall.Exec(frame)
	stopped = false
	return result
}

// searchCost returns the cost of a call with a pattern, or nil if the library's cost is sufficient.
func searchCost(args []ref.Val, result ref.Val) *uint64 {
	pattern, _ := args[1].(types.String)
	matches := int64(1)
	if _, all := result.(traits.Lister); all {
		matches = max(1, size(result)/partSize)
	}
	if matches == 1 && !strings.Contains(string(pattern), "{") { // about as many instructions as letters
		return nil
	}
	units := steps(args[0], Instructions(string(pattern))) * matches / stepsPerUnit
	if units <= (1+(1+size(args[0]))/10)*(1+size(pattern)/4) {
		return nil
	}
	cost := uint64(units)
	return &cost
}
