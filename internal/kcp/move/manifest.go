package move

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

type need struct {
	bound      kcp.Bound
	binding    string          // key of an APIBinding of the definition
	definition *kcp.Definition // nil if the shard lacks the definition
}

// count makes the manifest, with all sums from one pass over the records.
func (e *extraction) count(ctx context.Context, origin snapshot.FileInfo) (*archive.Manifest, error) {
	m := &archive.Manifest{
		APIVersion: archive.APIVersion, Kind: archive.KindClusters, Format: archive.Format, Name: e.Name,
		Origin: archive.Origin{
			Shard:  e.text(e.keyOf(kcp.SystemShard), "the name of the shard", e.shardName),
			Prefix: e.shard.Prefix, SHA256: origin.SHA256, Revision: origin.Revision,
		},
		Identities: e.identities(),
	}
	m.Definitions, m.Missing = e.definitions()
	for _, name := range slices.Sorted(maps.Keys(e.chosen)) {
		m.Clusters = append(m.Clusters, e.describe(e.chosen[name]))
	}
	tally, rest := archive.NewClusterTally(e.shard.Prefix, e.leases), archive.NewRest()
	for rec, err := range e.src.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		e.countRecord(rec, tally, rest)
	}
	e.checkOdd()
	tally.Fill(m)
	m.Origin.Rest = rest.Sum()
	return m, nil
}

// countRecord counts a record for the archive, the rest, or both: needed definitions are in both.
func (e *extraction) countRecord(rec *snapshot.Record, tally *archive.ClusterTally, rest *archive.Rest) {
	switch n, needed := e.needs[string(rec.Key)]; {
	case e.mayTake(rec.Key) && e.taken.Has(rec.Key):
		k, _, _ := e.taken.Layouts.Parse(rec.Key)
		of := archive.ResourceOf(k, rec.Key)
		switch {
		case k.Shard != "": // a copy in a cache
		case !archive.IsText(of.Dir):
			e.raise(string(rec.Key), codeOddName, "its folder is longer than a manifest can say")
		default:
			tally.Add(rec, k.Cluster, of)
			e.keys = append(e.keys, rec.Key)
		}
		return
	case needed:
		tally.AddDefinition(rec, n.definition.Name)
		e.keys = append(e.keys, rec.Key)
	}
	rest.Add(rec)
}

// mayTake reports whether a segment of a key names a logical cluster of the archive: most keys need
// no parsing.
func (e *extraction) mayTake(key []byte) bool {
	for segment := range bytes.SplitSeq(key, []byte("/")) {
		if e.chosen[string(segment)] != nil {
			return true
		}
	}
	return false
}

// definitions returns the needed definitions that the shard has, and the missing definitions.
func (e *extraction) definitions() (there, missing []archive.Definition) {
	there, missing, e.needs = []archive.Definition{}, []archive.Definition{}, map[string]need{}
	needs := e.bound()
	for _, uid := range slices.Sorted(maps.Keys(needs)) {
		n := needs[uid]
		d := archive.Definition{
			UID: uid, Resource: e.text(n.binding, "a type", n.bound.Resource.String()),
			Schema:         e.text(n.binding, "a schema", n.bound.Schema),
			StoredVersions: e.texts(n.binding, "a version", n.bound.StorageVersions),
		}
		if n.definition == nil {
			missing = append(missing, d)
			e.raise("", codeDefinitionMissing, "%s is bound, and this shard has no bound definition %q of it",
				d.Resource, uid)
			continue
		}
		if e.taken.Has([]byte(n.definition.Key)) {
			continue // included as a record of a logical cluster
		}
		if n.definition.Problem != "" {
			e.note(n.definition.Key, codeUndecodable, "it is taken as it is stored: %s", n.definition.Problem)
		} else {
			d.StoredVersions = e.texts(n.definition.Key, "a version", n.definition.StoredVersions)
		}
		e.needs[n.definition.Key] = n
		d.Key = strings.TrimPrefix(n.definition.Key, e.shard.Prefix)
		there = append(there, d)
	}
	return there, missing
}

// bound returns the definitions that the logical clusters bind, by UID.
func (e *extraction) bound() map[string]need {
	needs := map[string]need{}
	for _, c := range e.order {
		for b, bound := range c.Bound() {
			key := e.apiKey(kcp.BindingType, c.Name, b.Name)
			switch _, twice := needs[bound.UID]; {
			case twice || bound.Virtual:
			case !isName(bound.UID):
				e.leaveOut(key, "the UID of a schema")
			default:
				needs[bound.UID] = need{bound, key, e.shard.Definition(bound.UID)}
			}
		}
	}
	return needs
}

// identities returns the identities that the logical clusters bind, store records under, or export.
func (e *extraction) identities() []archive.Identity {
	g := relied{e, map[string]*archive.Identity{}}
	for _, c := range e.order {
		for b, bound := range c.Bound() {
			key := e.apiKey(kcp.BindingType, c.Name, b.Name)
			i := g.of(key, bound.Identity)
			i.Resources = append(i.Resources, e.texts(key, "a type", []string{bound.Resource.String()})...)
			g.exported(key, i, archive.Export{Cluster: b.Export.Cluster, Path: b.Export.Path, Name: b.Export.Name})
		}
		for _, r := range c.Resources {
			i := g.of(e.keyOf(c.Name), r.Identity)
			i.Resources = append(i.Resources, r.Resource.String())
		}
		for _, x := range c.Exports {
			key := e.apiKey(kcp.ExportType, c.Name, x.Name)
			i := g.of(key, x.Identity)
			i.Own = true
			g.exported(key, i, archive.Export{Cluster: x.Cluster, Path: c.Path, Name: x.Name})
		}
	}
	return g.list()
}

type relied struct {
	*extraction
	all map[string]*archive.Identity // by hash
}

// of returns the identity of a hash; without a hash, an identity that is not listed.
func (g relied) of(key, hash string) *archive.Identity {
	if hash != "" && !archive.IsHash(hash) {
		g.leaveOut(key, "an identity")
		hash = ""
	}
	if hash == "" {
		return &archive.Identity{}
	}
	if g.all[hash] == nil {
		g.all[hash] = &archive.Identity{Hash: hash, Resources: []string{}, Exports: []archive.Export{}}
	}
	return g.all[hash]
}

// exported adds an APIExport of an identity, with its path if that is text.
func (g relied) exported(key string, i *archive.Identity, x archive.Export) {
	if !archive.IsText(x.Cluster) || !archive.IsText(x.Name) {
		g.leaveOut(key, "an APIExport")
		return
	}
	x.Path = g.text(key, "the path of an APIExport", x.Path)
	i.Exports = append(i.Exports, x)
}

func (g relied) list() []archive.Identity {
	out := []archive.Identity{}
	for _, hash := range slices.Sorted(maps.Keys(g.all)) {
		i := *g.all[hash]
		slices.Sort(i.Resources)
		i.Resources = slices.Compact(i.Resources)
		slices.SortFunc(i.Exports, func(a, b archive.Export) int {
			return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name),
				strings.Compare(a.Path, b.Path))
		})
		i.Exports = slices.Compact(i.Exports)
		out = append(out, i)
	}
	return out
}

// maxName is the length limit of a name in an API server (k8s.io/apimachinery validation, DNS
// subdomain).
const maxName = 253

// isName reports whether a manifest can list s as a name.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.Contains(s, "/") && archive.IsText(s)
}

// text returns s, a text of the record under key, or "" if a manifest cannot have s.
func (e *extraction) text(key, what, s string) string {
	return strings.Join(e.texts(key, what, []string{s}), "")
}

// texts returns the texts that a manifest can have.
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

// leaveOut remembers a text of the record under key that the manifest omits.
func (e *extraction) leaveOut(key, what string) { e.odd[key] = append(e.odd[key], what) }

// checkOdd reports texts that the manifest omits, once for each record.
func (e *extraction) checkOdd() {
	for _, key := range slices.Sorted(maps.Keys(e.odd)) {
		what := e.odd[key]
		slices.Sort(what)
		what = slices.Compact(what)
		e.note(key, codeOddName, "the manifest leaves out %s: too long, not to be printed, or not what it should be; "+
			"the record itself is taken as it is stored", strings.Join(what, ", "))
	}
}

func (e *extraction) describe(c *kcp.Cluster) archive.Cluster {
	key := e.keyOf(c.Name)
	out := archive.Cluster{
		Name: c.Name, Path: e.text(key, "its path", c.Path), UID: e.text(key, "its UID", c.UID),
		Shard: e.text(key, "its shard", c.ShardName),
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
	return string(keys.KCPShard{Prefix: e.shard.Prefix}.Format(keys.Key{Resource: gr, Custom: true, Cluster: cluster,
		Name: name}))
}

// Manifest is the section of a report with the manifest of the archive, even for a dry run.
type Manifest struct {
	*archive.Manifest `json:"manifest,omitempty"`
}

// Tables shows the content of the archive and its requirements.
func (m *Manifest) Tables(transform.Outcome) (tables []transform.Table) {
	for _, c := range m.Clusters {
		t := transform.Table{
			Title:  fmt.Sprintf("logical cluster %s (%s)", c.Name, c.Path),
			Header: []any{"RESOURCE", "KEYS", "BYTES", "SHA256"},
			Totals: [][]any{{"all of it", c.Keys, c.Bytes, c.SHA256}},
		}
		for _, r := range c.Resources {
			name := r.Resource
			if r.Identity != "" {
				name += " of " + r.Identity[:8]
			}
			t.Rows = append(t.Rows, []any{name, r.Keys, r.Bytes, r.SHA256})
		}
		tables = append(tables, t)
	}
	sum := func(what string, s archive.Sum) []any {
		return []any{what, fmt.Sprintf("%s, %d bytes", phrase.Count(s.Keys, "key"), s.Bytes), s.SHA256}
	}
	return append(tables,
		transform.Table{Rows: [][]any{sum("whole archive", m.Total), sum("rest of the shard", m.Origin.Rest)}},
		transform.Table{Rows: m.reliance()})
}

// reliance lists the definitions and identities that the destination of the archive must have.
func (m *Manifest) reliance() (rows [][]any) {
	row := func(cells ...any) { rows = append(rows, cells) }
	for _, d := range m.Definitions {
		row("definition", d.Resource, d.UID, "in the archive")
	}
	for _, d := range m.Missing {
		row("definition", d.Resource, d.UID, "missing")
	}
	for _, i := range m.Identities {
		what := "relied on"
		if i.Own {
			what = "its own"
		}
		for _, e := range i.Exports {
			row("identity", e.Name+" of "+cmp.Or(e.Path, e.Cluster), i.Hash, what)
		}
		if len(i.Exports) == 0 {
			row("identity", "owner unknown", i.Hash, what)
		}
	}
	for _, l := range m.Leases {
		row("lease", fmt.Sprintf("%d s", l.TTL), l.ID, "of "+phrase.Count(l.Keys, "key"))
	}
	for _, e := range m.Encryption {
		row("encrypted by", e.Name, phrase.Count(e.Keys, "value"))
	}
	return rows
}
