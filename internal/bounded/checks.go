package bounded

import (
	"reflect"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/mutation"
	"k8s.io/apiserver/pkg/cel/mutation/dynamic"
)

const (
	maxBytes = 8 << 20
	partSize = 16 // bytes counted for each part of a value
	maxPairs = 1 << 24

	maxDigits = 1000 // of a quantity
)

// check reports whether a call may start.
type check func(args []ref.Val) bool

// checks returns checks for functions whose result or work can far exceed the size of the
// arguments. A list may contain another list many times, so a small value can be large when written
// out or compared.
func checks() map[string]check {
	return map[string]check{
		operators.Add: func(args []ref.Val) bool { return size(args[0])+size(args[1]) <= maxBytes },
		"replace":     replaces,
		"join":        joins,
		"format":      formats,
		"split":       func(args []ref.Val) bool { return size(args[0]) <= maxBytes },
		"matches":     searches,
		"find":        searches,
		"findAll":     func(args []ref.Val) bool { return size(args[0]) <= maxBytes && searches(args) },
		"quantity":    quantities,
		"isQuantity":  quantities,
		"strings.quote": func(args []ref.Val) bool {
			return size(args[0]) <= maxBytes/8 // up to \u1234 for a letter
		},
		operators.Equals: whole, operators.NotEquals: whole, operators.In: whole, operators.OldIn: whole, "in": whole,
		"flatten": whole, "sort": whole, "@sortByAssociatedKeys": whole, "includes": whole, "indexOf": indexes,
		"lastIndexOf": indexes,
		"distinct":    pairs, "sets.contains": pairs, "sets.equivalent": pairs, "sets.intersects": pairs,
	}
}

// size returns the size of a text or list without the contents of list elements.
func size(v ref.Val) int64 {
	switch v := v.(type) {
	case types.String:
		return int64(len(v))
	case types.Bytes:
		return int64(len(v))
	case traits.Sizer:
		n, _ := v.Size().(types.Int)
		return int64(n) * partSize
	}
	return 0
}

// Whole reports whether a value is within the bounds when written out.
func Whole(v ref.Val) bool { return whole([]ref.Val{v}) }

func whole(args []ref.Val) bool {
	_, fits := weight(args)
	return fits
}

// weight returns the total size of values, counting shared parts each time.
func weight(all []ref.Val) (weight int64, fits bool) {
	left := int64(maxBytes)
	for _, v := range all {
		if !weigh(v, &left) {
			return maxBytes, false
		}
	}
	return maxBytes - left, true
}

func weigh(v ref.Val, left *int64) bool {
	*left -= partSize
	switch v := v.(type) {
	case types.String, types.Bytes:
		*left -= size(v)
	case *types.Optional:
		return *left >= 0 && (!v.HasValue() || weigh(v.GetValue(), left))
	case *mutation.JSONPatchVal:
		return v.Val == nil || weigh(v.Val, left)
	case *dynamic.ObjectVal:
		for _, field := range fieldsOf(v) {
			if !weigh(field, left) {
				return false
			}
		}
	case traits.Mapper:
		for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			key := it.Next()
			if !weigh(key, left) || !weigh(v.Get(key), left) {
				return false
			}
		}
	case traits.Lister:
		for it := v.Iterator(); *left >= 0 && it.HasNext() == types.True; {
			if !weigh(it.Next(), left) {
				return false
			}
		}
	}
	return *left >= 0
}

// fieldsOf returns the fields of an object of a mutation. The library's only other access is a
// conversion of all fields.
func fieldsOf(v *dynamic.ObjectVal) map[string]ref.Val {
	fields := reflect.ValueOf(v).Elem().FieldByName("fields")
	return *(*map[string]ref.Val)(fields.Addr().UnsafePointer())
}

// pairs limits the number of compared pairs.
func pairs(args []ref.Val) bool {
	heavy, fits := weight(args)
	return fits && heavy/partSize*(1+size(args[len(args)-1])/partSize) <= maxPairs
}

// replaces computes the size of the result.
func replaces(args []ref.Val) bool {
	text, isText := args[0].(types.String)
	old, isOld := args[1].(types.String)
	with, isNew := args[2].(types.String)
	if !isText || !isOld || !isNew {
		return true // the call fails
	}
	times := int64(strings.Count(string(text), string(old)))
	if len(args) > 3 {
		if most, is := args[3].(types.Int); is && most >= 0 {
			times = min(times, int64(most))
		}
	}
	return int64(len(text))+times*int64(len(with)) <= maxBytes
}

// quantities limits the digits of a number: when compared, 1e999999999 has that many digits.
func quantities(args []ref.Val) bool {
	text, _ := args[0].(types.String)
	at := strings.LastIndexAny(string(text), "eE")
	return len(text) <= maxDigits && (at < 0 || len(strings.TrimLeft(string(text)[at+1:], "+-0")) <= 3)
}

// indexes also limits the compared pairs of letters in a text.
func indexes(args []ref.Val) bool { return whole(args) && letterPairs(args) <= maxPairs<<6 }

// letterPairs returns the maximum number of compared letters for two texts, 0 for lists.
func letterPairs(args []ref.Val) int64 {
	text, isText := args[0].(types.String)
	part, isPart := args[1].(types.String)
	if !isText || !isPart {
		return 0
	}
	return size(text) * size(part)
}

func joins(args []ref.Val) bool {
	total, fits := weight(args)
	if len(args) > 1 {
		total += size(args[0]) / partSize * size(args[1])
	}
	return fits && total <= maxBytes
}

// formats also counts the digits requested by a format, as in %.100f.
func formats(args []ref.Val) bool {
	total, fits := weight(args)
	text, _ := args[0].(types.String)
	for _, clause := range strings.Split(string(text), "%.")[1:] {
		digits := int64(0)
		for _, letter := range clause {
			if letter < '0' || letter > '9' || digits > maxBytes {
				break
			}
			digits = digits*10 + int64(letter-'0')
		}
		total += digits
	}
	return fits && total <= maxBytes
}
