package keys

import (
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// table is a closed list of resources with two indexes. A table is read-only after newTable.
type table struct {
	byDir      map[string]builtin
	byResource map[schema.GroupResource]string
}

// newTable indexes a list. alias has the dirs of resources listed under another name.
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

// find returns the resource whose dir is the first n segments, n at most depth.
func (t *table) find(segments []string, depth int) (at builtin, n int, ok bool) {
	var buf [128]byte // on the stack
	dir := buf[:0]
	for n := 1; n <= min(depth, len(segments)); n++ {
		if n > 1 {
			dir = append(dir, '/')
		}
		dir = append(dir, segments[n-1]...)
		if at, ok := t.byDir[string(dir)]; ok {
			return at, n, true
		}
	}
	return builtin{}, 0, false
}

// cut appends the segments of a key below prefix to the empty buf, up to its capacity; the last
// segment keeps the rest of the key. Keys that no API server writes are an error.
func cut(prefix string, key []byte, buf []string) ([]string, error) {
	if !utf8.Valid(key) {
		return nil, unknown(key, "not UTF-8")
	}
	rest, ok := strings.CutPrefix(string(key), prefix)
	if !ok || !strings.HasPrefix(rest, "/") {
		return nil, unknown(key, "not under %q", prefix+"/")
	}
	for rest = rest[1:]; ; {
		s, end := rest, -1
		if len(buf) < cap(buf)-1 {
			end = strings.IndexByte(rest, '/')
		}
		if end >= 0 {
			s, rest = rest[:end], rest[end+1:]
		}
		if s == "" || s[0] == '.' && (s == "." || s == "..") {
			return nil, unknown(key, "a segment is %q", s)
		}
		if buf = append(buf, s); end < 0 {
			return buf, nil
		}
	}
}

// setName sets namespace and name of an object from the segments behind the dir of its resource.
func (k *Key) setName(key []byte, names []string, scope scope) error {
	switch {
	case len(names) == 1 && scope != namespaced:
		k.Name = names[0]
	case len(names) == 2 && scope != clusterScoped:
		k.Namespace, k.Name = names[0], names[1]
	default:
		return unknown(key, "wrong number of segments for %s, which is %s", k.Resource.String(), scope)
	}
	return nil
}

// appendName is the inverse of setName. to ends with a slash.
func (k *Key) appendName(to []byte) []byte {
	if k.Namespace != "" {
		to = append(to, k.Namespace...)
		to = append(to, '/')
	}
	return append(to, k.Name...)
}

// bootstrap is the prefix of the certificate authorities of k3s and RKE2, stored with their private
// keys and encrypted with the server token (k3s pkg/cluster/storage.go). The key is "/bootstrap/"
// with a hash of the token; in early versions "/bootstrap" alone.
const bootstrap = "/bootstrap"

// IsBootstrap reports whether key holds the private keys of a k3s or RKE2 cluster. Such keys are
// not API objects and have no storage prefix.
func IsBootstrap(key []byte) bool {
	return string(key) == bootstrap || strings.HasPrefix(string(key), bootstrap+"/")
}

// HoldsCredentials reports whether any layout stores Secrets, or OpenShift's OAuth clients and
// tokens, under key. The value does not matter: a damaged Secret is a Secret. A folder is followed
// by a namespace or cluster and a name, so a namespace called "secrets" is no folder.
func HoldsCredentials(key []byte) bool {
	segments := strings.Split(strings.Trim(string(key), "/"), "/")
	for i, s := range segments[:len(segments)-1] {
		after := len(segments) - 1 - i
		switch s {
		case "secrets":
			if i <= 1 || after >= 2 {
				return true
			}
		case "oauthclients", "oauthaccesstokens", "oauthauthorizetokens":
			return true
		case "clients", "accesstokens", "authorizetokens":
			if i > 0 && segments[i-1] == "oauth" {
				return true
			}
		}
	}
	return false
}
