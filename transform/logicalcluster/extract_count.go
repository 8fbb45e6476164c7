package logicalcluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/archive"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// need is a bound definition that a logical cluster cannot do without.
type need struct {
	bound      clusters.Bound
	definition *clusters.Definition // nil where the shard does not have it
}

// count makes the manifest: what is needed from what the logical clusters bind, and all sums from one pass over the records.
func (e *extraction) count(ctx context.Context) error {
	in := e.report.Input
	m := &archive.Manifest{
		APIVersion: archive.APIVersion, Kind: archive.Kind, Format: archive.Format, Name: e.Name,
		Origin:     archive.Origin{Shard: e.shardName, Prefix: e.shard.Prefix, SHA256: in.SHA256, Revision: in.Revision},
		Identities: e.identities(),
	}
	m.Definitions, m.Missing = e.definitions()
	for _, name := range slices.Sorted(maps.Keys(e.chosen)) {
		m.Clusters = append(m.Clusters, describe(e.chosen[name]))
	}
	tally, rest := archive.NewTally(e.shard.Prefix, e.leases), archive.NewRest()
	for rec, err := range e.src.Live(ctx, nil) {
		if err != nil {
			return err
		}
		e.countRecord(rec, tally, rest)
	}
	tally.Fill(m)
	m.Origin.Rest = rest.Sum()
	e.report.Manifest = m
	for _, c := range m.Clusters {
		e.report.Clusters = append(e.report.Clusters, clusterReceipt(c))
	}
	return nil
}

// countRecord counts a record for the archive, for the rest that stays, or for both: what the logical clusters need of others stays
// where it is.
func (e *extraction) countRecord(rec *snapshot.Record, tally *archive.Tally, rest *archive.Rest) {
	k, _, err := e.taken.layouts.Parse(rec.Key)
	switch n, needed := e.needs[string(rec.Key)]; {
	case err == nil && e.taken.places[place{k.Prefix, k.Shard, k.Cluster}]:
		if k.Shard == "" { // else it is a copy in a cache
			tally.Add(rec, k.Cluster, resourceOf(k, rec.Key))
		}
		return
	case needed:
		tally.AddDefinition(rec, n.definition.Name)
	}
	rest.Add(rec)
}

// takes tells whether the archive has the record of a key.
func (e *extraction) takes(key []byte) bool {
	if _, needed := e.needs[string(key)]; needed {
		return true
	}
	p, selected := e.taken.of(key)
	return selected && p.shard == ""
}

// resourceOf is what a record is of, but for its sum. Behind the folder stand namespace and name.
func resourceOf(k keys.Key, key []byte) archive.Resource {
	tail := k.Name
	if k.Namespace != "" {
		tail = k.Namespace + "/" + k.Name
	}
	return archive.Resource{
		Resource: k.Resource.String(), Identity: k.Identity, Custom: k.Custom, Dir: string(key[len(k.Prefix) : len(key)-len(tail)]),
	}
}

func describe(c *clusters.Cluster) archive.Cluster {
	out := archive.Cluster{Name: c.Name, Path: c.Path, UID: c.UID, Shard: c.ShardName}
	if o := c.Owner; o != nil {
		out.Owner = archive.Owner{Cluster: o.Cluster, Name: o.Name, UID: o.UID}
	}
	return out
}

// definitions are those that the logical clusters need, each once, and those of them that the shard does not have.
func (e *extraction) definitions() (there, missing []archive.Definition) {
	there, missing, e.needs = []archive.Definition{}, []archive.Definition{}, map[string]need{}
	needs := map[string]need{}
	for _, name := range e.order {
		for _, b := range e.chosen[name].Bindings {
			for _, bound := range b.Bound {
				if _, known := needs[bound.UID]; !known && !bound.Virtual {
					needs[bound.UID] = need{bound, e.shard.Definition(bound.UID)}
				}
			}
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(needs)) {
		n := needs[uid]
		d := archive.Definition{UID: uid, Resource: n.bound.Resource.String(), Schema: n.bound.Schema}
		d.StoredVersions = slices.Concat([]string{}, n.bound.StorageVersions) // a list is never null
		if n.definition == nil {
			missing = append(missing, d)
			e.report.Warn("", codeMissingDefinition, fmt.Sprintf("%s is bound, and this shard has no bound definition %q of it", d.Resource, uid))
			continue
		}
		if e.taken.has([]byte(n.definition.Key)) {
			continue // as a record of a logical cluster
		}
		if n.definition.Problem != "" {
			e.report.Warn(n.definition.Key, clusters.CodeUndecodable, "it is taken as it is stored: "+n.definition.Problem)
		} else {
			d.StoredVersions = slices.Concat([]string{}, n.definition.StoredVersions)
		}
		e.needs[n.definition.Key] = n
		d.Key = strings.TrimPrefix(n.definition.Key, e.shard.Prefix)
		there = append(there, d)
	}
	return there, missing
}

// identities are those that the logical clusters bind, that their records are stored under, and that they export.
func (e *extraction) identities() []archive.Identity {
	all := map[string]*archive.Identity{}
	of := func(hash string) *archive.Identity {
		if all[hash] == nil {
			all[hash] = &archive.Identity{Hash: hash, Resources: []string{}, Exports: []archive.Export{}}
		}
		return all[hash]
	}
	for _, name := range e.order {
		c := e.chosen[name]
		for _, b := range c.Bindings {
			for _, bound := range b.Bound {
				i := of(bound.Identity)
				i.Resources = append(i.Resources, bound.Resource.String())
				i.Exports = append(i.Exports, archive.Export{Cluster: b.Export.Cluster, Path: b.Export.Path, Name: b.Export.Name})
			}
		}
		for _, r := range c.Resources {
			i := of(r.Identity)
			i.Resources = append(i.Resources, r.Resource.String())
		}
		for _, x := range c.Exports {
			i := of(x.Identity)
			i.Own = true
			i.Exports = append(i.Exports, archive.Export{Cluster: x.Cluster, Path: c.Path, Name: x.Name})
		}
	}
	delete(all, "") // of what has none
	out := []archive.Identity{}
	for _, hash := range slices.Sorted(maps.Keys(all)) {
		i := *all[hash]
		slices.Sort(i.Resources)
		i.Resources = slices.Compact(i.Resources)
		slices.SortFunc(i.Exports, func(a, b archive.Export) int {
			return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name), strings.Compare(a.Path, b.Path))
		})
		i.Exports = slices.Compact(i.Exports)
		out = append(out, i)
	}
	return out
}
