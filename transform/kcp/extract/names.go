package extract

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// maxName is how many bytes a name may have that an API server takes (k8s.io/apimachinery validation, DNS subdomain).
const maxName = 253

// isName tells whether s can be the name of something that a manifest lists by it.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.Contains(s, "/") && archive.IsText(s)
}

// text is what the manifest says of what the record under key tells: s, or "" where that is nothing that a manifest says.
func (e *extraction) text(key, what, s string) string {
	if archive.IsText(s) {
		return s
	}
	e.leaveOut(key, what)
	return ""
}

// texts are those of all that a manifest can say.
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

// leaveOut notes that the manifest does not say what the record under key tells.
func (e *extraction) leaveOut(key, what string) { e.odd[key] = append(e.odd[key], what) }

// checkOdd reports what the manifest does not say, once a record.
func (e *extraction) checkOdd() {
	for _, key := range slices.Sorted(maps.Keys(e.odd)) {
		what := e.odd[key]
		slices.Sort(what)
		what = slices.Compact(what)
		e.report.Raise(key, codeOddName.Because("the manifest leaves out %s: too long, not to be printed, or not what it should be; "+
			"the record itself is taken as it is stored", strings.Join(what, ", ")).Decided(finding.Noted))
	}
}

// checkNames refuses names that an archive cannot be about: those of logical clusters.
func (e *extraction) checkNames() {
	for _, name := range e.order {
		if !isName(name) {
			e.report.Raise(e.keyOf(name), codeOddName.Because("%.100q is no name of a logical cluster that a manifest can list", name))
		}
	}
}

// describe is what a manifest says of a logical cluster.
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

// bindingKey is the key of an APIBinding.
func (e *extraction) bindingKey(cluster, name string) string {
	return e.apiKey("apibindings", cluster, name)
}

// apiKey is the key of an object of group apis.kcp.io.
func (e *extraction) apiKey(resource, cluster, name string) string {
	return string(keys.KCPShard{Prefix: e.shard.Prefix}.Format(keys.Key{
		Resource: schema.GroupResource{Group: "apis.kcp.io", Resource: resource}, Custom: true, Cluster: cluster, Name: name,
	}))
}
