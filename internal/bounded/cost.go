package bounded

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// freeSize is the size up to which a result costs the same as on an API server, in bytes.
const freeSize = 1 << 10

// trackers returns options that add the size of large results to the cost of the producing calls,
// and the steps of searches.
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

// first returns a tracker with the first non-nil cost.
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

// indexCost returns the cost of a call that compares many letters.
func indexCost(args []ref.Val, _ ref.Val) *uint64 {
	cost := uint64(letterPairs(args) / 1024)
	if cost <= uint64(size(args[0])/10) {
		return nil
	}
	return &cost
}

// costOf returns the cost of a call that produces a text or a list; small results have no extra
// cost.
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
