package jsonpath

import (
	"fmt"

	parser "k8s.io/client-go/util/jsonpath"
)

// array returns elements of lists: [2], [-1], [1:3]. An empty slice ends the search, as in
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

// bounds are the first element, the one behind the last, and the step, of a list of n.
func bounds(params [3]parser.ParamsEntry, n int) (first, end, step int, err error) {
	first, end, step = 0, n, 1
	if params[0].Known {
		if first = params[0].Value; first < 0 {
			first += n
		}
	}
	if params[1].Known {
		end = params[1].Value
	}
	if end < 0 || end == 0 && params[1].Derived {
		end += n
	}
	switch {
	case first == end:
		return first, end, step, nil
	case first >= n || first < 0:
		return 0, 0, 0, fmt.Errorf("array index out of bounds: index %d, length %d", first, n)
	case end > n || end < 0:
		return 0, 0, 0, fmt.Errorf("array index out of bounds: index %d, length %d", end-1, n)
	case first > end:
		return 0, 0, 0, fmt.Errorf("starting index %d is greater than ending index %d", first, end)
	}
	if params[2].Known {
		if step = params[2].Value; step <= 0 {
			return 0, 0, 0, fmt.Errorf("step must be > 0")
		}
	}
	return first, end, step, nil
}
