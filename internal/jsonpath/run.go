package jsonpath

import (
	"errors"
	"fmt"

	"k8s.io/client-go/third_party/forked/golang/template"
	parser "k8s.io/client-go/util/jsonpath"
)

// run is one evaluation of a template.
type run struct {
	work  *Work
	nodes []parser.Node

	begun, depth, ended int // ranges: begun at this node, open, ended at this node
	end                 int // the node that ended a range last
}

// from evaluates the nodes from one on, up to the end of the range that it is in.
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

// loop evaluates a range for each value. Without a value it only looks for the end of the range.
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

// walk returns what a node finds. Its result beside an error is that of client-go: filters such as
// [?(@.a[5])] count it as found.
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
		return constant(input, node.Value), nil
	case *parser.BoolNode:
		return constant(input, node.Value), nil
	case *parser.FloatNode:
		return constant(input, node.Value), nil
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

func constant(input []any, value any) (out []any) {
	for range input {
		out = append(out, value)
	}
	return out
}

func (r *run) wildcard(input []any) (out []any, err error) {
	for _, value := range input {
		if err := r.work.find(count(value)); err != nil {
			return nil, err
		}
		out = append(out, children(value)...)
	}
	return out, nil
}

// recursive appends the values that hold others, and those below them.
func (r *run) recursive(out, input []any) (_ []any, err error) {
	for _, value := range input {
		if count(value) == 0 {
			continue
		}
		out = append(out, value)
		if _, isText := value.(string); isText {
			continue
		}
		if err := r.work.find(count(value)); err != nil {
			return nil, err
		}
		if out, err = r.recursive(out, children(value)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// errSeveral is the error of a condition on several values.
var errSeveral = errors.New("can only compare one element at a time")

// filter returns the elements of lists that meet a condition.
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
	of := []any{element}
	left, err := r.list(of, node.Left)
	switch {
	case r.work.err != nil:
		return false, r.work.err
	case node.Operator == "exists":
		return len(left) > 0, nil
	case err != nil || len(left) == 0:
		return false, err
	case len(left) > 1:
		return false, errSeveral
	}
	right, err := r.list(of, node.Right)
	switch {
	case err != nil || len(right) == 0:
		return false, err
	case len(right) > 1:
		return false, errSeveral
	}
	return compare(left[0], right[0], node.Operator)
}

func compare(left, right any, operator string) (bool, error) {
	switch operator {
	case "<":
		return template.Less(left, right)
	case ">":
		return template.Greater(left, right)
	case "==":
		return template.Equal(left, right)
	case "!=":
		return template.NotEqual(left, right)
	case "<=":
		return template.LessEqual(left, right)
	case ">=":
		return template.GreaterEqual(left, right)
	}
	return false, fmt.Errorf("unrecognized filter operator %s", operator)
}
