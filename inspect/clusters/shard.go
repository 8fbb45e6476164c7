package clusters

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// LogicalClusterKey is the key of the LogicalCluster of name on a shard that stores below prefix: what is there or not tells
// whether the logical cluster lives there.
func LogicalClusterKey(prefix, name string) []byte {
	return keys.KCPShard{Prefix: prefix}.Format(keys.Key{Resource: LogicalClusterType(), Custom: true, Cluster: name, Name: logicalCluster})
}

// shardPass is what a pass keeps of one shard.
type shardPass struct {
	*pass
	shard   *Shard
	lives   map[string]*Cluster // by name
	orphans map[string]*Orphan
	tallies map[string]tally
}

func newShardPass(p *pass, s keys.Storage) *shardPass {
	return &shardPass{p, &Shard{Prefix: s.Prefix, children: map[string][]*Cluster{}}, map[string]*Cluster{}, map[string]*Orphan{}, map[string]tally{}}
}

func (s *shardPass) add(key keys.Key, e *inspect.Entry) error {
	if err := s.meet(key.Cluster); err != nil {
		return err
	}
	s.tallies[key.Cluster].add(key, e, s.names)
	if o := s.orphans[key.Cluster]; o != nil {
		o.add(e)
		o.Keys = append(o.Keys, string(e.Key))
		return note(s.pass, key, e, nil, &o.Problems, &o.Sealed)
	}
	c := s.lives[key.Cluster]
	c.add(e)
	return note(s.pass, key, e, s.reads(c, key, string(e.Key)), &c.Problems, &c.Sealed)
}

// note examines a value and notes what is wrong with it.
func note(p *pass, key keys.Key, e *inspect.Entry, read reading, problems *[]Problem, sealed *int) error {
	problem, opened, err := p.examine(key, e, read)
	if problem != nil {
		*problems = append(*problems, *problem)
	}
	if !opened && err == nil {
		*sealed++
	}
	return err
}

// meet decides, when the first key of a logical cluster is met, whether it lives here.
func (s *shardPass) meet(name string) error {
	if s.tallies[name] != nil {
		return nil
	}
	lives := strings.HasPrefix(name, "system:")
	if !lives {
		var err error
		if lives, err = s.reader.Has(s.ctx, LogicalClusterKey(s.shard.Prefix, name)); err != nil {
			return err
		}
	}
	name = strings.Clone(name) // else the whole of the key is kept
	s.tallies[name] = tally{}
	if lives {
		s.lives[name] = &Cluster{Name: name, System: IsSystem(name)}
	} else {
		s.orphans[name] = &Orphan{Name: name}
	}
	return nil
}

// reads returns what reads the value under key into what is known of c; nil for a value that tells nothing.
func (s *shardPass) reads(c *Cluster, key keys.Key, stored string) reading {
	builtin := !key.Custom && key.Identity == ""
	switch gr := key.Resource; {
	case builtin && gr == DefinitionType() && (c.Name == BoundCRDs || c.Name == SystemCRDs):
		d := &Definition{Key: stored, Name: key.Name, Problem: "it is encrypted and no key opens it"}
		into := &s.shard.System
		if c.Name == BoundCRDs {
			into = &s.shard.Definitions
		}
		*into = append(*into, d)
		return d.read
	case key.Custom && gr == LogicalClusterType() && key.Namespace == "" && key.Name == logicalCluster:
		return c.read
	case key.Custom && gr == BindingType():
		return c.readBinding(key, s.names)
	case key.Custom && gr == ExportType():
		return readExport(key, &c.Exports)
	case key.Identity != "" && gr == WorkspaceType():
		c.Workspaces = append(c.Workspaces, Workspace{Key: stored, Name: key.Name, Identity: s.names.of(key.Identity)})
		return c.Workspaces[len(c.Workspaces)-1].read
	case key.Identity != "" && gr == shards() && c.Name == rootCluster:
		return readShard(key, &s.shard.Registered)
	}
	return nil
}

func (s *shardPass) finish() *Shard {
	out := s.shard
	for _, name := range slices.Sorted(maps.Keys(s.lives)) {
		c := s.lives[name]
		c.Resources = s.tallies[name].resources()
		slices.SortStableFunc(c.Bindings, func(a, b Binding) int { return strings.Compare(a.Name, b.Name) })
		slices.SortStableFunc(c.Exports, func(a, b Export) int { return strings.Compare(a.Name, b.Name) })
		out.Clusters = append(out.Clusters, c)
		if c.Owner != nil {
			out.children[c.Owner.Cluster] = append(out.children[c.Owner.Cluster], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.orphans)) {
		o := s.orphans[name]
		o.Resources = s.tallies[name].resources()
		out.Orphans = append(out.Orphans, o)
	}
	if c := s.lives[SystemShard]; c != nil {
		out.Name = c.ShardName
	}
	out.Partial = s.tallies[SystemShard][resource{LogicalClusterType(), "", true}] == nil
	s.workspaces()
	slices.SortStableFunc(out.Definitions, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(out.System, func(a, b *Definition) int {
		return cmp.Or(compareResources(a.Resource, b.Resource), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(out.Registered, compareRegistered)
	return out
}

// workspaces puts those of each logical cluster in order, and leaves out what only bears the name: anyone may export a type called
// workspaces. Which APIExport is the root's own, the binding tells that each shard has of it in system:shard.
func (s *shardPass) workspaces() {
	own := ""
	if c := s.lives[SystemShard]; c != nil {
		for _, b := range c.Bindings {
			for _, bound := range b.Bound {
				if b.Export.Cluster == rootCluster && bound.Resource == WorkspaceType() {
					own = bound.Identity
				}
			}
		}
	}
	for _, c := range s.shard.Clusters {
		if own != "" {
			c.Workspaces = slices.DeleteFunc(c.Workspaces, func(w Workspace) bool { return w.Identity != own })
		}
		slices.SortStableFunc(c.Workspaces, func(a, b Workspace) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
		})
	}
}

// resources lists a tally in the order of names.
func (t tally) resources() []Resource {
	out := make([]Resource, 0, len(t))
	for of, a := range t {
		out = append(out, Resource{of.GroupResource, of.identity, of.custom, *a})
	}
	slices.SortFunc(out, func(a, b Resource) int {
		custom := 0
		if a.Custom != b.Custom {
			custom = -1
			if a.Custom {
				custom = 1
			}
		}
		return cmp.Or(compareResources(a.Resource, b.Resource), strings.Compare(a.Identity, b.Identity), custom)
	})
	return out
}

func compareResources(a, b schema.GroupResource) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
}

func compareRegistered(a, b RegisteredShard) int { return strings.Compare(a.Name, b.Name) }
