package compare

import (
	"fmt"
	"slices"
	"strings"
)

// matching pairs the items of two lists.
type matching struct {
	old  []int    // for each new item the index of the old one, -1 for none
	keys []string // the naming fields of an item, nil for its index
}

// itemKeys returns the fields that name an item, the most specific first. An item must have the
// first field of a set. They are the list map keys of k8s.io/api (+listMapKey, patchMergeKey),
// applied to lists of any type, also of custom resources.
func itemKeys() [][]string {
	return [][]string{
		{"uid"}, // ownerReferences
		{"manager", "operation", "apiVersion", "subresource"}, // managedFields
		{"mountPath"}, {"devicePath"}, // volumeMounts, volumeDevices
		{"name"},                                // containers, env, volumes, versions of a CRD, webhooks
		{"name", "kind", "namespace"},           // subjects
		{"type"},                                // conditions
		{"type", "address"},                     // addresses of a node
		{"containerPort", "protocol", "hostIP"}, // ports of a container
		{"port", "protocol"},                    // ports of a Service
		{"topologyKey", "whenUnsatisfiable"},    // topologySpreadConstraints
		{"key"},                                 // items of a volume, matchExpressions
		{"key", "effect", "operator", "value"},  // taints, tolerations
		{"ip"}, {"id"}, {"host"},                // hostAliases, podIPs; rules of an Ingress
	}
}

func match(a, b []any) matching {
	if len(a) > 0 && len(b) > 0 {
		for _, keys := range itemKeys() {
			if m, ok := matchByKeys(a, b, keys); ok {
				return m
			}
		}
	}
	m := matching{old: slices.Repeat([]int{-1}, len(b))}
	// Items between two common ones are paired by position.
	i, j := 0, 0
	for _, pair := range append(common(len(a), len(b), func(i, j int) bool { return Equal(a[i], b[j]) }),
		[2]int{len(a), len(b)}) {
		for i < pair[0] && j < pair[1] {
			m.old[j] = i
			i, j = i+1, j+1
		}
		if i, j = pair[0]+1, pair[1]+1; pair[1] < len(b) {
			m.old[pair[1]] = pair[0]
		}
	}
	return m
}

// matchByKeys pairs items by name. ok is false if an item has no name.
func matchByKeys(a, b []any, keys []string) (m matching, ok bool) {
	old, ok := named(a, keys)
	if !ok {
		return matching{}, false
	}
	new, ok := named(b, keys)
	m = matching{old: slices.Repeat([]int{-1}, len(b)), keys: keys}
	for name, j := range new {
		if i, both := old[name]; both {
			m.old[j] = i
		}
	}
	return m, ok
}

// named returns the index of each item by name. ok is false if a name is missing or repeated.
func named(list []any, keys []string) (index map[string]int, ok bool) {
	index = make(map[string]int, len(list))
	for i, item := range list {
		name, ok := nameOf(item, keys)
		if _, twice := index[name]; twice || !ok {
			return nil, false
		}
		index[name] = i
	}
	return index, true
}

func nameOf(item any, keys []string) (name string, ok bool) {
	object, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	var parts []string
	for i, key := range keys {
		switch value := object[key].(type) {
		case string:
			parts = append(parts, key+"="+quoted(value))
		case int64, bool:
			parts = append(parts, fmt.Sprintf("%s=%v", key, value))
		case nil:
			if i == 0 {
				return "", false
			}
		default:
			return "", false
		}
	}
	return strings.Join(parts, ","), true
}

// quoted quotes a value with delimiters of a path.
func quoted(s string) string {
	if s == "" || strings.ContainsAny(s, `,]"=`) {
		return fmt.Sprintf("%q", s)
	}
	return s
}

// name returns the name of an item in paths: its printable name, or its index.
func (m matching) name(v view, index int) string {
	if m.keys != nil {
		if name, ok := nameOf(v.Shown, m.keys); ok {
			return name
		}
	}
	return fmt.Sprint(index)
}

// mostCompared bounds the table of a comparison, 4 bytes each.
const mostCompared = 1 << 20

// common returns the pairs of a longest common subsequence of two lists, in order. For long lists,
// only the common beginning and end are found.
func common(n, m int, equal func(i, j int) bool) (pairs [][2]int) {
	start := 0
	for start < n && start < m && equal(start, start) {
		pairs = append(pairs, [2]int{start, start})
		start++
	}
	tail := 0
	for start < n-tail && start < m-tail && equal(n-1-tail, m-1-tail) {
		tail++
	}
	if rows, columns := n-tail-start, m-tail-start; rows > 0 && columns > 0 && rows <= mostCompared/columns {
		for _, p := range longest(rows, columns, func(i, j int) bool { return equal(start+i, start+j) }) {
			pairs = append(pairs, [2]int{start + p[0], start + p[1]})
		}
	}
	for ; tail > 0; tail-- {
		pairs = append(pairs, [2]int{n - tail, m - tail})
	}
	return pairs
}

func longest(n, m int, equal func(i, j int) bool) (pairs [][2]int) {
	width := m + 1
	table := make([]int32, (n+1)*width)
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if equal(i, j) {
				table[i*width+j] = table[(i+1)*width+j+1] + 1
			} else {
				table[i*width+j] = max(table[(i+1)*width+j], table[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case table[i*width+j] == table[(i+1)*width+j]:
			i++
		case table[i*width+j] == table[i*width+j+1]:
			j++
		default:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		}
	}
	return pairs
}

// Line is a line of a comparison: ' ' if common, '-' if old, '+' if new. '@' replaces omitted
// common lines.
type Line struct {
	Op   byte
	Text string // without the line end
}

// Lines compares two texts and keeps some lines around each difference.
func Lines(old, new string, around int) []Line {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	var all []Line
	i, j := 0, 0
	for _, p := range append(common(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }),
		[2]int{len(a), len(b)}) {
		for ; i < p[0]; i++ {
			all = append(all, Line{'-', a[i]})
		}
		for ; j < p[1]; j++ {
			all = append(all, Line{'+', b[j]})
		}
		if i < len(a) && j < len(b) {
			all = append(all, Line{' ', a[i]})
			i, j = i+1, j+1
		}
	}
	return near(all, around)
}

// near omits lines far from any difference.
func near(all []Line, around int) (out []Line) {
	keep := make([]bool, len(all))
	for i, line := range all {
		if line.Op != ' ' {
			for k := max(0, i-around); k <= min(len(all)-1, i+around); k++ {
				keep[k] = true
			}
		}
	}
	for i, line := range all {
		switch {
		case keep[i]:
			out = append(out, line)
		case len(out) > 0 && out[len(out)-1].Op != '@' || i == 0:
			out = append(out, Line{Op: '@'})
		}
	}
	return out
}
