package bounded

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// freeSize is up to how many bytes a result costs what it costs on an API server.
const freeSize = 1 << 10

// trackers add the size of large results to the cost of the calls that make them.
func (g *guard) trackers() []interpreter.CostTrackerOption {
	var all []interpreter.CostTrackerOption
	made := map[string][]string{
		operators.Add: {overloads.AddString, overloads.AddBytes}, "replace": {"string_replace_string_string", "string_replace_string_string_int"},
		"join": {"list_join", "list_join_string"}, "format": {"string_format"}, "split": {"string_split_string", "string_split_string_int"},
		"findAll": {"string_find_all_string", "string_find_all_string_int"}, "strings.quote": {"strings_quote"},
	}
	for function, ids := range made {
		for _, id := range append(ids, dynamicID(function)) {
			all = append(all, interpreter.OverloadCostTracker(id, costOf(function, id)))
		}
	}
	return all
}

// costOf is the cost of a call that makes a text or a list: none of its own for small results.
func costOf(function, overload string) interpreter.FunctionTracker {
	server := &library.CostEstimator{}
	return func(args []ref.Val, result ref.Val) *uint64 {
		made := uint64(size(result))
		if made < freeSize {
			return nil
		}
		cost := uint64(1)
		if known := server.CallCost(function, overload, args, result); known != nil {
			cost = *known
		} else if overload == overloads.AddString || overload == overloads.AddBytes {
			cost = made / 10
		} else {
			cost += uint64(size(args[0])) / 10
		}
		cost += made / 10
		return &cost
	}
}
