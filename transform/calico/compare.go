package calico

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// specDifferences lists the paths at which two v3 specs differ, in order. Both are pruned and defaulted. What Calico's own
// types make of a value does not count: the live controller writes specs through them, and they drop empty fields, add
// empty ones, and print numbers, durations and times their own way.
func specDifferences(k kind, a, b map[string]any) []string {
	d := differ{kind: k}
	d.maps("spec", objectAt(a, "spec"), objectAt(b, "spec"))
	return d.paths
}

// sameValue compares two values of unstructured objects.
func sameValue(a, b any) bool {
	var d differ
	d.values("", a, b)
	return len(d.paths) == 0
}

// objectAt is the object at name, nil when there is none.
func objectAt(m map[string]any, name string) map[string]any {
	o, _ := m[name].(map[string]any)
	return o
}

type differ struct {
	kind  kind
	paths []string
}

func (d *differ) maps(path string, a, b map[string]any) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := path + "." + name
		x, y := d.asRead(at, a[name]), d.asRead(at, b[name])
		if d.empty(at, x) && d.empty(at, y) {
			continue
		}
		d.values(at, x, y)
	}
}

func (d *differ) values(path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			d.maps(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				d.values(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])
			}
			return
		}
	default:
		if sameScalar(a, b) {
			return
		}
	}
	d.paths = append(d.paths, path)
}

// asRead is a value as Calico reads it, where an absent one stands for another.
func (d *differ) asRead(path string, v any) any {
	if d.kind.Kind == "BlockAffinity" && path == "spec.type" && (v == nil || v == "") {
		return "host"
	}
	return v
}

// empty says whether a field is as good as absent: null, an empty list, and what Calico's types write for a struct or a
// string that has nothing in it. Elsewhere an empty object means something (select all, switch on), and so does an empty
// list of failsafe ports (none, where absent means the default ones).
func (d *differ) empty(path string, v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0 && !strings.HasPrefix(path, "spec.failsafe")
	case map[string]any:
		return len(v) == 0 && d.alwaysWritten(path)
	case string:
		return v == "" && path == "spec.bpfLogLevel"
	case bool:
		return !v && path == "spec.deleted"
	default:
		return false
	}
}

// alwaysWritten says whether Calico's type has a plain struct at path, which is written whether or not anything is in it,
// or dropped where the writer was not Go.
func (d *differ) alwaysWritten(path string) bool {
	switch d.kind.Kind {
	case "StagedKubernetesNetworkPolicy":
		return path == "spec.podSelector"
	case "KubeControllersConfiguration":
		return path == "spec.controllers"
	case "IPAMBlock":
		return path == "spec.sequenceNumberForAllocation" || strings.HasPrefix(path, "spec.attributes[")
	}
	rule := strings.HasPrefix(path, "spec.ingress[") || strings.HasPrefix(path, "spec.egress[")
	return d.kind.Name == namePolicy && rule && (strings.HasSuffix(path, "].source") || strings.HasSuffix(path, "].destination"))
}

// sameScalar compares numbers by value, and texts also as what they may stand for.
func sameScalar(a, b any) bool {
	if a == b {
		return true
	}
	_, exactA := a.(int64)
	_, exactB := b.(int64)
	if exactA && exactB {
		return false // sequence numbers do not fit a float64
	}
	x, xIsNumber := numeric(a)
	y, yIsNumber := numeric(b)
	if xIsNumber && yIsNumber {
		return x == y
	}
	s, sIsText := a.(string)
	t, tIsText := b.(string)
	switch {
	case sIsText && yIsNumber:
		return textNumber(s, y)
	case xIsNumber && tIsText:
		return textNumber(t, x)
	case sIsText && tIsText:
		return sameDuration(s, t) || sameTime(s, t)
	default:
		return false
	}
}

func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// textNumber says whether s spells n: "80", or an AS number with a dot, "1.10".
func textNumber(s string, n float64) bool {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return float64(i) == n
	}
	high, low, ok := strings.Cut(s, ".")
	if !ok {
		return false
	}
	h, err1 := strconv.ParseUint(high, 10, 16)
	l, err2 := strconv.ParseUint(low, 10, 16)
	return err1 == nil && err2 == nil && float64(h<<16|l) == n
}

func sameDuration(s, t string) bool {
	x, err1 := time.ParseDuration(s)
	y, err2 := time.ParseDuration(t)
	return err1 == nil && err2 == nil && x == y
}

func sameTime(s, t string) bool {
	x, err1 := time.Parse(time.RFC3339, s)
	y, err2 := time.Parse(time.RFC3339, t)
	return err1 == nil && err2 == nil && x.Equal(y)
}
