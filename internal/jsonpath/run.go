// Package jsonpath runs the JSONPath templates of kubectl on JSON content, within bounds.
//
// It parses with k8s.io/client-go/util/jsonpath, whose evaluation can be neither bounded nor
// stopped: a path such as ..a..a..a..a finds millions of values in an object of a kilobyte.
//
// Invariants:
//
//   - A path finds the values that client-go finds, in the same order, but maps are visited by key
//     instead of in random order. A missing field is no error.
//   - Work bounds the values found and the bytes printed before their memory is allocated.
//   - Errors quote no values.
//   - A Path never changes and may be shared between goroutines; a Work may not.
package jsonpath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/third_party/forked/golang/template"
	parser "k8s.io/client-go/util/jsonpath"
)

// run evaluates a template once.
type run struct {
	work  *Work
	nodes []parser.Node

	begun, depth, ended int // ranges: begun at this node, current, ended at this node
	end                 int // the node that ended a range last
}

// from evaluates nodes up to the end of the current range.
func (r *run) from(content any, first int) (found [][]any, err error) {
	input := []any{content}
	for i := first; i < len(r.nodes); i++ {
		values, err := r.walk(input, r.nodes[i])
		switch {
		case err != nil:
			return nil, err
		case r.ended > 0 && r.ended <= r.depth:
			r.ended--
			r.end = i
			return found, nil
		case r.begun == 0:
			found = append(found, values)
			continue
		}
		r.begun--
		inside, err := r.loop(values, i+1)
		if err != nil {
			return nil, err
		}
		found = append(found, inside...)
		i = max(i, r.end)
	}
	return found, nil
}

// loop evaluates a range for each value. Without values it only finds the end of the range.
func (r *run) loop(values []any, first int) (found [][]any, err error) {
	r.depth++
	defer func() { r.depth-- }()
	for _, value := range values {
		if value == nil {
			value = noValue{}
		}
		inside, err := r.from(value, first)
		if err != nil {
			return nil, err
		}
		if err := r.work.find(len(inside) + 1); err != nil {
			return nil, err
		}
		found = append(found, inside...)
	}
	if len(values) == 0 {
		_, err = r.from(noValue{}, first)
	}
	return found, err
}

// walk returns the values that a node finds in input. Values returned with an error are those of
// client-go: a filter such as [?(@.a[5])] counts them as found.
func (r *run) walk(input []any, node parser.Node) ([]any, error) {
	if err := r.work.find(len(input) + 1); err != nil {
		return nil, err
	}
	switch node := node.(type) {
	case *parser.ListNode:
		return r.list(input, node)
	case *parser.TextNode:
		return []any{node.Text}, nil
	case *parser.FieldNode:
		return field(input, node.Value), nil
	case *parser.ArrayNode:
		return r.array(input, node)
	case *parser.FilterNode:
		return r.filter(input, node)
	case *parser.IntNode:
		return slices.Repeat([]any{node.Value}, len(input)), nil
	case *parser.BoolNode:
		return slices.Repeat([]any{node.Value}, len(input)), nil
	case *parser.FloatNode:
		return slices.Repeat([]any{node.Value}, len(input)), nil
	case *parser.WildcardNode:
		return r.wildcard(input)
	case *parser.RecursiveNode:
		return r.recursive(nil, input)
	case *parser.UnionNode:
		return r.union(input, node)
	case *parser.IdentifierNode:
		return r.identifier(input, node.Name)
	}
	return nil, fmt.Errorf("unexpected node %v", node)
}

func (r *run) list(values []any, node *parser.ListNode) (_ []any, err error) {
	for _, part := range node.Nodes {
		if values, err = r.walk(values, part); err != nil {
			return values, err
		}
	}
	return values, nil
}

func (r *run) union(input []any, node *parser.UnionNode) (out []any, err error) {
	for _, part := range node.Nodes {
		values, err := r.list(input, part)
		if err != nil {
			return input, err
		}
		out = append(out, values...)
	}
	return out, nil
}

func (r *run) identifier(input []any, name string) ([]any, error) {
	switch {
	case name == "range":
		r.begun++
		return input, nil
	case name == "end" && r.depth > 0:
		r.ended++
		return nil, nil
	case name == "end":
		return nil, errors.New("not in range, nothing to end")
	}
	return nil, fmt.Errorf("unrecognized identifier %v", name)
}

func field(input []any, name string) (out []any) {
	for _, value := range input {
		if fields, isMap := value.(map[string]any); isMap {
			if element, found := fields[name]; found {
				out = append(out, element)
			}
		}
	}
	return out
}

func (r *run) wildcard(input []any) (out []any, err error) {
	for _, value := range input {
		below, err := r.children(value)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// recursive appends all values with children, at any depth.
func (r *run) recursive(out, input []any) (_ []any, err error) {
	for _, value := range input {
		if text, isText := value.(string); isText {
			if text != "" {
				out = append(out, value)
			}
			continue
		}
		below, err := r.children(value)
		if err == nil && len(below) > 0 {
			out, err = r.recursive(append(out, value), below)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// children returns the elements of a map, by key, or of a list, or the bytes of a string.
func (r *run) children(value any) (out []any, err error) {
	fields, _ := value.(map[string]any)
	list, _ := value.([]any)
	text, _ := value.(string)
	if err := r.work.find(len(fields) + len(list) + len(text)); err != nil || list != nil {
		return list, err
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, fields[key])
	}
	for i := range len(text) {
		out = append(out, text[i])
	}
	return out, nil
}

// filter returns the list elements that meet a condition.
func (r *run) filter(input []any, node *parser.FilterNode) (out []any, err error) {
	for _, value := range input {
		elements, isList := value.([]any)
		if !isList {
			return input, fmt.Errorf("%T is not array or slice and cannot be filtered", value)
		}
		for _, element := range elements {
			pass, err := r.meets(element, node)
			if err != nil {
				return input, err
			}
			if pass {
				out = append(out, element)
			}
		}
	}
	return out, nil
}

func (r *run) meets(element any, node *parser.FilterNode) (bool, error) {
	var sides [2]any
	for i, side := range []*parser.ListNode{node.Left, node.Right} {
		found, err := r.list([]any{element}, side)
		switch {
		case r.work.err != nil:
			return false, r.work.err
		case node.Operator == "exists":
			return len(found) > 0, nil
		case err != nil || len(found) == 0:
			return false, err
		case len(found) > 1:
			return false, errors.New("can only compare one element at a time")
		}
		sides[i] = found[0]
	}
	return compare(sides[0], sides[1], node.Operator)
}

func compare(left, right any, operator string) (bool, error) {
	test := map[string]func(left, right any) (bool, error){
		"<": template.Less, ">": template.Greater, "<=": template.LessEqual, ">=": template.GreaterEqual,
		"!=": template.NotEqual,
		"==": func(left, right any) (bool, error) { return template.Equal(left, right) },
	}[operator]
	if test == nil {
		return false, fmt.Errorf("unrecognized filter operator %s", operator)
	}
	return test(left, right)
}

// array returns elements of lists: [2], [-1], [1:3], [::2]. An empty slice ends the search, as in
// client-go.
func (r *run) array(input []any, node *parser.ArrayNode) (out []any, err error) {
	for _, value := range input {
		if value == nil || value == (any)(noValue{}) {
			continue
		}
		list, isList := value.([]any)
		if !isList {
			return input, fmt.Errorf("%T is not array or slice", value)
		}
		first, end, step, err := bounds(node.Params, len(list))
		switch {
		case err != nil:
			return input, err
		case first == end:
			return out, nil
		}
		if err := r.work.find((end - first) / step); err != nil {
			return nil, err
		}
		for i := first; i < end; i += step {
			out = append(out, list[i])
		}
	}
	return out, nil
}

// bounds returns the first element, the end and the step in a list of n.
func bounds(params [3]parser.ParamsEntry, n int) (first, end, step int, err error) {
	first, end, step = 0, n, 1
	for i, value := range []*int{&first, &end, &step} {
		if params[i].Known {
			*value = params[i].Value
		}
	}
	if first < 0 {
		first += n
	}
	if end < 0 || end == 0 && params[1].Derived {
		end += n
	}
	switch {
	case first == end:
	case first < 0 || end > n || first > end:
		err = fmt.Errorf("array index out of bounds: index %d to %d, length %d", first, end-1, n)
	case step <= 0:
		err = errors.New("step must be > 0")
	}
	return first, end, step, err
}
