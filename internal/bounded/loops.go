package bounded

import (
	"reflect"
	"sync"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// The library counts the cost of an expression with a stack of values. A loop leaves two values a
// step there until it ends, and each use of a name searches the whole stack: a list of 500,000
// items takes ten minutes at a cost that servers accept. So the parts of a loop take their values
// away. The cost stays the same: nothing looks for the values.

// trimLoop lets the condition and the step of a loop leave nothing on the stack of costs. The
// library has no other way to reach them.
func trimLoop(i interpreter.InterpretableV2) {
	loop := reflect.ValueOf(i)
	if loop.Kind() != reflect.Pointer || loop.Type().Elem().Name() != "evalFold" {
		return
	}
	for _, name := range []string{"cond", "step"} {
		part := (*interpreter.InterpretableV2)(loop.Elem().FieldByName(name).Addr().UnsafePointer())
		*part = loopPart{*part}
	}
}

// loopPart is the condition or the step of a loop.
type loopPart struct{ interpreter.InterpretableV2 }

// Exec evaluates the part.
func (p loopPart) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	stack := costStack(frame)
	if stack == nil {
		return p.InterpretableV2.Exec(frame)
	}
	before := len(*stack)
	result := p.InterpretableV2.Exec(frame)
	*stack = (*stack)[:min(before, len(*stack))]
	return result
}

// stackValue is laid out as the library's.
type stackValue struct {
	ref.Val
	ID int64
}

// costFields are the fields that lead from a frame to the stack of costs, by number.
var costFields = sync.OnceValue(func() (at struct{ shared, costs, stack int }) {
	number := func(of reflect.Type, name string) int {
		f, _ := of.FieldByName(name)
		return f.Index[0]
	}
	frame := reflect.TypeFor[interpreter.ExecutionFrame]()
	at.shared = number(frame, "ctx")
	at.costs = number(frame.Field(at.shared).Type.Elem(), "costs")
	at.stack = number(reflect.TypeFor[interpreter.CostTracker](), "stack")
	return at
})

// costStack is the stack of costs of an evaluation, nil where costs are not counted.
func costStack(frame *interpreter.ExecutionFrame) *[]stackValue {
	at := costFields()
	shared := reflect.ValueOf(frame).Elem().Field(at.shared)
	if shared.IsNil() {
		return nil
	}
	costs := shared.Elem().Field(at.costs)
	if costs.IsNil() {
		return nil
	}
	return (*[]stackValue)(costs.Elem().Field(at.stack).Addr().UnsafePointer())
}
