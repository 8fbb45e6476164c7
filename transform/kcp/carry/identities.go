package carry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/transform"
)

// needs are the types that are stored under identities, by those.
type needs map[string]map[string]bool

// add notes a type that is stored under an identity, "" for none.
func (n needs) add(identity, resource string) {
	if identity == "" {
		return
	}
	if n[identity] == nil {
		n[identity] = map[string]bool{}
	}
	n[identity][resource] = true
}

// judge reports the identities that nothing of the destination vouches for: its kcp would have another for the same APIExport, and
// not find the objects.
func (n needs) judge(v *transform.View, d *destination) {
	for _, identity := range slices.Sorted(maps.Keys(n)) {
		if d.knows(identity) {
			continue
		}
		types := strings.Join(slices.Sorted(maps.Keys(n[identity])), ", ")
		v.GoOn("", codeUnknownIdentity,
			fmt.Sprintf("identity %s, of %s, is that of no APIExport and no APIBinding that the shard or a cache knows", identity, types))
	}
}
