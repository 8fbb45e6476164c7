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

// trackers add the size of large results to the cost of the calls that make them, and the steps of
// searches.
func (g *guard) trackers() []interpreter.CostTrackerOption {
	var all []interpreter.CostTrackerOption
	calls := map[string][]string{
		operators.Add: {overloads.AddString, overloads.AddBytes},
		"replace":     {"string_replace_string_string", "string_replace_string_string_int"},
		"join":        {"list_join", "list_join_string"}, "format": {"string_format"},
		"split":   {"string_split_string", "string_split_string_int"},
		"findAll": {"string_find_all_string", "string_find_all_string_int"}, "strings.quote": {"strings_quote"},
		"matches": {overloads.Matches, overloads.MatchesString}, "find": {"string_find_string"},
		"indexOf":     {"string_index_of_string", "string_index_of_string_int"},
		"lastIndexOf": {"string_last_index_of_string", "string_last_index_of_string_int"},
	}
	for function, ids := range calls {
		for _, id := range append(ids, dynamicID(function)) {
			tracker := costOf(function, id)
			switch {
			case isRegexp(function):
				tracker = first(searchCost, tracker)
			case function == "indexOf" || function == "lastIndexOf":
				tracker = indexCost
			}
			all = append(all, interpreter.OverloadCostTracker(id, tracker))
		}
	}
	return all
}

// first is the cost of the first tracker that has one.
func first(trackers ...interpreter.FunctionTracker) interpreter.FunctionTracker {
	return func(args []ref.Val, result ref.Val) *uint64 {
		for _, t := range trackers {
			if cost := t(args, result); cost != nil {
				return cost
			}
		}
		return nil
	}
}

// indexCost is the cost of a call that compares many letters.
func indexCost(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(letterPairs(args) / 1024)
	if cost <= uint64(size(args[0])/10) {
		return nil
	}
	return &cost
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
