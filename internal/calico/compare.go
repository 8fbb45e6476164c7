package calico

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// specDifferences returns the differing paths of two v3 specs, in order. Both are pruned and
// defaulted. Changes made by Calico's own types do not count, since the live controller writes
// specs through Calico's types, which drop or add empty fields and print numbers, durations and
// times in another form.
func specDifferences(k *kind, a, b map[string]any) []string {
	d := differ{kind: k}
	d.maps("spec", objectAt(a, "spec"), objectAt(b, "spec"))
	return d.paths
}

// sameValue compares two values of unstructured objects.
func sameValue(a, b any) bool {
	d := differ{kind: &kind{}}
	d.values("", a, b)
	return len(d.paths) == 0
}

// objectAt returns the object at name, nil for none.
func objectAt(m map[string]any, name string) map[string]any {
	o, _ := m[name].(map[string]any)
	return o
}

type differ struct {
	kind  *kind
	paths []string
}

func (d *differ) maps(path string, a, b map[string]any) {
	names := sets.KeySet(a).Union(sets.KeySet(b))
	for _, name := range sets.List(names) {
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

// asRead returns a value as read by Calico: some absent values have a default.
func (d *differ) asRead(path string, v any) any {
	if d.kind.Kind == "BlockAffinity" && path == "spec.type" && (v == nil || v == "") {
		return "host"
	}
	return v
}

// empty reports whether a field counts as absent: null, an empty list, or an empty struct or string
// written by Calico's types. Other empty objects have a meaning (select all, switch on), and so
// does an empty list of failsafe ports (none; absent means the default ports).
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

// alwaysWritten reports whether Calico's type has a plain struct at path, written by Go even when
// empty.
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
	return d.kind.Name == namePolicy && rule && (strings.HasSuffix(path, "].source") ||
		strings.HasSuffix(path, "].destination"))
}

// sameScalar compares numbers by value, and strings also as numbers, durations and times.
func sameScalar(a, b any) bool {
	_, exactA := a.(int64)
	_, exactB := b.(int64)
	if a == b || exactA && exactB { // sequence numbers do not fit a float64
		return a == b
	}
	x, xIsNumber := numeric(a)
	y, yIsNumber := numeric(b)
	s, sIsText := a.(string)
	t, tIsText := b.(string)
	switch {
	case xIsNumber && yIsNumber:
		return x == y
	case sIsText && yIsNumber:
		return textNumber(s, y)
	case xIsNumber && tIsText:
		return textNumber(t, x)
	}
	return sIsText && tIsText && (sameDuration(s, t) || sameTime(s, t))
}

func numeric(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// textNumber reports whether s spells n: "80", or an AS number with a dot, "1.10".
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
