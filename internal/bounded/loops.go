package bounded

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// The library counts the cost of an expression with a stack of values. A loop leaves two values per
// step on the stack until the loop ends, and each use of a name searches the whole stack: a list of
// 500,000 items takes ten minutes at a cost accepted by servers. Therefore the parts of a loop
// remove their values. The cost stays the same, because no lookup needs the values.

// mendLoop makes the condition and the step of a loop leave no values on the cost stack, and sorts
// the keys of maps. The library has no public access to these parts.
func mendLoop(i interpreter.InterpretableV2) {
	loop := reflect.ValueOf(i)
	if loop.Kind() != reflect.Pointer || loop.Type().Elem().Name() != "evalFold" {
		return
	}
	for _, name := range []string{"cond", "step"} {
		part := (*interpreter.InterpretableV2)(loop.Elem().FieldByName(name).Addr().UnsafePointer())
		*part = loopPart{*part}
	}
	over := (*interpreter.InterpretableV2)(loop.Elem().FieldByName("iterRange").Addr().UnsafePointer())
	*over = loopRange{*over}
}

// loopRange is the range of a loop.
type loopRange struct{ interpreter.InterpretableV2 }

// Exec evaluates the range. Map keys are sorted: in Go's random order, the resulting messages,
// lists and patches would differ from run to run.
func (r loopRange) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	over := r.InterpretableV2.Exec(frame)
	m, is := over.(traits.Mapper)
	if !is {
		return over
	}
	if n := size(over) / partSize; n > freeKeys {
		charge(frame, uint64(n/8)) // the loop may end early
	}
	return sorted{m}
}

// freeKeys is the number of keys sorted without cost beyond the loop's.
const freeKeys = 100

// sorted is a map with sorted keys.
type sorted struct{ traits.Mapper }

// Iterator returns the keys.
func (m sorted) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int {
		if x, comparable := a.(traits.Comparer); comparable {
			if order, is := x.Compare(b).(types.Int); is {
				return int(order)
			}
		}
		kind := func(v ref.Val) string { return strings.TrimPrefix(v.Type().TypeName(), "u") } // compare uint as int
		return cmp.Compare(kind(a), kind(b))
	})
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
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

// stackValue has the memory layout of the library's type.
type stackValue struct {
	ref.Val
	ID int64
}

// costFields returns the indexes of the fields on the path from a frame to the costs.
var costFields = sync.OnceValue(func() (at struct{ shared, costs, stack, cost int }) {
	number := func(of reflect.Type, name string) int {
		f, _ := of.FieldByName(name)
		return f.Index[0]
	}
	frame := reflect.TypeFor[interpreter.ExecutionFrame]()
	at.shared = number(frame, "ctx")
	at.costs = number(frame.Field(at.shared).Type.Elem(), "costs")
	at.stack, at.cost = number(reflect.TypeFor[interpreter.CostTracker](), "stack"),
		number(reflect.TypeFor[interpreter.CostTracker](), "cost")
	return at
})

// costs returns the costs of an evaluation; false if they are not counted.
func costs(frame *interpreter.ExecutionFrame) (reflect.Value, bool) {
	at := costFields()
	shared := reflect.ValueOf(frame).Elem().Field(at.shared)
	if shared.IsNil() {
		return reflect.Value{}, false
	}
	costs := shared.Elem().Field(at.costs)
	return costs.Elem(), !costs.IsNil()
}

// costStack returns the cost stack of an evaluation, or nil if costs are not counted.
func costStack(frame *interpreter.ExecutionFrame) *[]stackValue {
	costs, counted := costs(frame)
	if !counted {
		return nil
	}
	return (*[]stackValue)(costs.Field(costFields().stack).Addr().UnsafePointer())
}

// charge adds to the cost of an evaluation.
func charge(frame *interpreter.ExecutionFrame, units uint64) {
	if costs, counted := costs(frame); counted {
		*(*uint64)(costs.Field(costFields().cost).Addr().UnsafePointer()) += units
	}
}
