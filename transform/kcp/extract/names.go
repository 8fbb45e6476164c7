package extract

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// maxName is the length of the longest name that an API server takes (k8s.io/apimachinery
// validation, DNS subdomain).
const maxName = 253

// isName tells whether a manifest can list s as a name.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.Contains(s, "/") && archive.IsText(s)
}

// text returns s, a text of the record under key, or "" where a manifest cannot have it.
func (e *extraction) text(key, what, s string) string {
	return strings.Join(e.texts(key, what, []string{s}), "")
}

// texts returns those texts that a manifest can have.
func (e *extraction) texts(key, what string, all []string) []string {
	out := []string{} // a list is never null
	for _, s := range all {
		if archive.IsText(s) {
			out = append(out, s)
		} else {
			e.leaveOut(key, what)
		}
	}
	return out
}

// leaveOut remembers a text of the record under key that the manifest does not have.
func (e *extraction) leaveOut(key, what string) { e.odd[key] = append(e.odd[key], what) }

// checkOdd reports texts that the manifest does not have, once a record.
func (e *extraction) checkOdd() {
	for _, key := range slices.Sorted(maps.Keys(e.odd)) {
		what := e.odd[key]
		slices.Sort(what)
		what = slices.Compact(what)
		e.note(key, codeOddName, "the manifest leaves out %s: too long, not to be printed, or not what it should be; "+
			"the record itself is taken as it is stored", strings.Join(what, ", "))
	}
}

func (e *extraction) describe(c *clusters.Cluster) archive.Cluster {
	key := e.keyOf(c.Name)
	out := archive.Cluster{
		Name: c.Name, Path: e.text(key, "its path", c.Path), UID: e.text(key, "its UID", c.UID), Shard: e.text(key, "its shard", c.ShardName),
	}
	if o := c.Owner; o != nil {
		out.Owner = archive.Owner{
			Cluster: e.text(key, "its owner's logical cluster", o.Cluster),
			Name:    e.text(key, "its owner's name", o.Name), UID: e.text(key, "its owner's UID", o.UID),
		}
	}
	return out
}

func (e *extraction) apiKey(gr schema.GroupResource, cluster, name string) string {
	return string(keys.KCPShard{Prefix: e.shard.Prefix}.Format(keys.Key{Resource: gr, Custom: true, Cluster: cluster, Name: name}))
}
