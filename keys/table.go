package keys

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// table is a closed list of resources with two indexes. It is never written after newTable.
type table struct {
	byDir      map[string]builtin
	byResource map[schema.GroupResource]string
}

// newTable indexes a list. alias holds second names of what is in it, with the place of the first.
func newTable(list []builtin, alias map[schema.GroupResource]string) *table {
	t := &table{make(map[string]builtin, len(list)), make(map[schema.GroupResource]string, len(list)+len(alias))}
	for gr, dir := range alias {
		t.byResource[gr] = dir
	}
	for _, b := range list {
		t.byDir[b.dir] = b
		t.byResource[b.GroupResource] = b.dir
	}
	return t
}

// find looks for the resource whose place is the first segments, up to depth of them.
func (t *table) find(segments []string, depth int) (at builtin, n int, ok bool) {
	for n := 1; n <= min(depth, len(segments)); n++ {
		dir := segments[0]
		if n > 1 {
			dir = strings.Join(segments[:n], "/")
		}
		if at, ok := t.byDir[dir]; ok {
			return at, n, true
		}
	}
	return builtin{}, 0, false
}

// cut appends the segments of a key below prefix to the empty buf, and no more than buf has room for. It refuses what no
// API server writes.
func cut(prefix string, key []byte, buf []string) ([]string, error) {
	if !utf8.Valid(key) {
		return nil, unknown(key, "not UTF-8")
	}
	rest, ok := strings.CutPrefix(string(key), prefix)
	if !ok || !strings.HasPrefix(rest, "/") {
		return nil, unknown(key, "not under %q", prefix+"/")
	}
	segments := split(rest[1:], buf)
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return nil, unknown(key, "a segment is %q", s)
		}
	}
	return segments, nil
}

// setName takes what follows a resource's place as the namespace and name of one of its objects.
func (k *Key) setName(names []string, scope scope) (ok bool) {
	switch {
	case len(names) == 1 && scope != namespaced:
		k.Name = names[0]
	case len(names) == 2 && scope != clusterScoped:
		k.Namespace, k.Name = names[0], names[1]
	default:
		return false
	}
	return true
}

// appendName is the inverse of setName, behind a slash.
func (k *Key) appendName(to []byte) []byte {
	if k.Namespace != "" {
		to = append(to, k.Namespace...)
		to = append(to, '/')
	}
	return append(to, k.Name...)
}
