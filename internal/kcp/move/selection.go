package move

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Place is a location of records of one logical cluster: the prefix of a shard, or the prefix of a
// cache and the shard that wrote the copies.
type Place struct{ Prefix, Shard, Cluster string }

// placeOf returns the place of a key.
func placeOf(k keys.Key) Place { return Place{k.Prefix, k.Shard, k.Cluster} }

// placeOfCopy returns the place of the records of a copy.
func placeOfCopy(c *kcp.Copy) Place { return Place{c.Prefix, c.Shard, c.Cluster} }

// Compare orders places by prefix, logical cluster and shard.
func (p Place) Compare(q Place) int {
	return cmp.Or(strings.Compare(p.Prefix, q.Prefix), strings.Compare(p.Cluster, q.Cluster),
		strings.Compare(p.Shard, q.Shard))
}

// Selection selects the keys of some logical clusters in a file, from the keys only.
type Selection struct {
	Layouts keys.Layouts
	Places  map[Place]bool  // of the selected keys
	Created map[string]bool // keys created by the run, neither selected nor in the rest
}

// newSelection returns an empty Selection.
func newSelection(layouts keys.Layouts) *Selection {
	return &Selection{Layouts: layouts, Places: map[Place]bool{}, Created: map[string]bool{}}
}

// Of returns the place of a key and whether the key is selected.
func (s *Selection) Of(key []byte) (p Place, selected bool) {
	k, _, err := s.Layouts.Parse(key)
	if err != nil {
		return Place{}, false
	}
	p = placeOf(k)
	return p, s.Places[p]
}

// Has reports whether a key is selected.
func (s *Selection) Has(key []byte) bool {
	_, selected := s.Of(key)
	return selected
}

// Purged reports whether a purge deletes or creates a key.
func (s *Selection) Purged(key []byte) bool { return s.Has(key) || s.Created[string(key)] }

// Split holds the live records of a file in two parts: the selected records and the rest.
type Split struct {
	Keys    []Selected // in revision order
	digests map[Place]*archive.Digest
	Rest    *archive.Rest
}

// Selected is a selected key and its place.
type Selected struct {
	Place
	Key string
}

// Split reads every live record of a file.
func (s *Selection) Split(ctx context.Context, r *inspect.Reader) (*Split, error) {
	file := r.Snapshot()
	leases, err := file.Leases(ctx)
	if err != nil {
		return nil, err
	}
	out := &Split{digests: map[Place]*archive.Digest{}, Rest: archive.NewRest()}
	for rec, err := range file.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		switch p, selected := s.Of(rec.Key); {
		case s.Created[string(rec.Key)]:
		case !selected:
			out.Rest.Add(rec)
		default:
			if out.digests[p] == nil {
				out.digests[p] = archive.NewDigest()
			}
			out.digests[p].Add(rec.Key[len(p.Prefix):], rec.Value, leases[rec.Lease])
			out.Keys = append(out.Keys, Selected{p, string(rec.Key)})
		}
	}
	return out, nil
}

// Past returns the places with records of any revision in a file, including tombstones.
func (s *Selection) Past(ctx context.Context, r *inspect.Reader) (map[Place]bool, error) {
	all := map[Place]bool{}
	for rec, err := range r.Snapshot().Records(ctx) {
		if err != nil {
			return nil, err
		}
		if k, _, err := s.Layouts.Parse(rec.Key); err == nil &&
			!all[placeOf(k)] { // a substring would keep the whole key in memory
			all[Place{strings.Clone(k.Prefix), strings.Clone(k.Shard), strings.Clone(k.Cluster)}] = true
		}
	}
	return all, nil
}

// Sum returns the sum of the records in one place.
func (s *Split) Sum(p Place) archive.Sum {
	if d := s.digests[p]; d != nil {
		return d.Sum()
	}
	return archive.Sum{}
}

// Index looks up Workspaces and copies by logical cluster: a purge needs thousands of lookups.
type Index struct {
	Leading map[string][]Link      // Workspaces, by the logical cluster that they name
	lying   map[location][]Link    // Workspaces, by their own place
	Copies  map[string][]*kcp.Copy // by logical cluster, of all caches
	Caches  map[string]bool        // their prefixes
}

// Link is a Workspace and its place in the tree.
type Link struct {
	*kcp.Workspace
	Shard  *kcp.Shard
	Parent *kcp.Cluster
}

type location struct{ parent, name string }

// newIndex returns the Index of a file.
func newIndex(f *kcp.File) *Index {
	x := &Index{Leading: map[string][]Link{}, lying: map[location][]Link{}, Copies: map[string][]*kcp.Copy{},
		Caches: map[string]bool{}}
	for _, shard := range f.Shards {
		for _, parent := range shard.Clusters {
			for i := range parent.Workspaces {
				w := Link{&parent.Workspaces[i], shard, parent}
				at := location{parent.Name, w.Name}
				x.lying[at] = append(x.lying[at], w)
				if w.Cluster != "" {
					x.Leading[w.Cluster] = append(x.Leading[w.Cluster], w)
				}
			}
		}
	}
	for _, cache := range f.Caches {
		x.Caches[cache.Prefix] = true
	}
	for _, copied := range f.Copies() {
		x.Copies[copied.Cluster] = append(x.Copies[copied.Cluster], copied)
	}
	return x
}

// ErrShardUnknown is returned for a file with copies of the logical cluster if the name of the
// shard, and so the writer of the copies, is unknown.
var ErrShardUnknown = finding.WithHint(errors.New("the file does not say what this shard is called"),
	"--as-shard S names this shard")

// ShardUnknown returns ErrShardUnknown for a place in a cache.
func (p Place) ShardUnknown() error {
	return fmt.Errorf("%w: the cache below %q has records of %q, from shard %q among others; name this one with "+
		"--as-shard", ErrShardUnknown, p.Prefix, p.Cluster, p.Shard)
}

// AddCopies selects the copies of a logical cluster that a shard wrote; shard is "" if unknown.
func (x *Index) AddCopies(to *Selection, cluster, shard string) (copies []*kcp.Copy, err error) {
	for _, copied := range x.Copies[cluster] {
		switch {
		case shard == "":
			return nil, placeOfCopy(copied).ShardUnknown()
		case copied.Shard == shard:
			copies = append(copies, copied)
			to.Places[placeOfCopy(copied)] = true
		}
	}
	return copies, nil
}

// WorkspacesAt returns the Workspaces with a name in a logical cluster, one for each shard of the
// file.
func (x *Index) WorkspacesAt(parent, name string) []Link { return x.lying[location{parent, name}] }

// warnUnknown reports the keys below storage prefixes that belong to no logical cluster: these keys
// stay.
func warnUnknown(v *transform.View, f *kcp.File, prefixes map[string]bool) {
	for _, u := range f.Unknown {
		if s, ok := f.Layouts.Of([]byte(u.Key)); ok && prefixes[s.Prefix] && !u.Expected {
			v.Raise(u.Key, finding.UnknownKey.Because("it is of no logical cluster, and stays: %s", u.Reason))
		}
	}
}

// workspacesIn returns the names of the Workspaces in a logical cluster.
func workspacesIn(parent *kcp.Cluster) map[string]bool {
	names := map[string]bool{}
	for _, w := range parent.Workspaces {
		names[w.Name] = true
	}
	return names
}

// staysWithout describes a child whose owner is gone.
func staysWithout(child *kcp.Cluster) string {
	return fmt.Sprintf("%q stays, and says that it belongs to %q in %q, which is not there", child.Name,
		child.Owner.Name, child.Owner.Cluster)
}

// elsewhere describes where a logical cluster lives that is not on the shard of its Workspace.
func elsewhere(w kcp.Workspace) string {
	if w.ShardName == "" {
		return "does not live on this shard"
	}
	return fmt.Sprintf("does not live on this shard; the Workspace says that it lives on %q", w.ShardName)
}

// shardHash returns the value of kcp.AnnotationShardHash: 8 digits of the SHA-224 of the name in
// base 36 (kcp pkg/reconciler/tenancy/workspace/workspace_reconcile_scheduling.go). A leading zero
// byte is a digit, as in github.com/martinlindhe/base36, the library of kcp.
func shardHash(name string) string {
	sum := sha256.Sum224([]byte(name))
	digits := new(big.Int).SetBytes(sum[:]).Text(36)
	for _, b := range sum {
		if b != 0 {
			break
		}
		digits = "0" + digits
	}
	return digits[:8]
}

// dropMigrating removes the annotation of a live migration from a stored LogicalCluster: kcp
// answers no request to a logical cluster with the annotation.
func dropMigrating(logicalCluster []byte) ([]byte, error) {
	return encoding.Set(logicalCluster, nil, "metadata", "annotations", kcp.AnnotationMigrating)
}

// moveLogicalCluster changes the shard in a stored LogicalCluster.
func moveLogicalCluster(logicalCluster []byte, shard string) ([]byte, error) {
	return encoding.Set(logicalCluster, shard, "metadata", "annotations", kcp.AnnotationShard)
}

// moveWorkspace changes shard and region of the logical cluster in a stored Workspace; region ""
// keeps the label.
func moveWorkspace(workspace []byte, shard, region string) ([]byte, error) {
	out, err := encoding.Set(workspace, shard, "metadata", "annotations", kcp.AnnotationShard)
	if err == nil {
		out, err = encoding.Set(out, shardHash(shard), "metadata", "annotations", kcp.AnnotationShardHash)
	}
	if err == nil && region != "" {
		out, err = encoding.Set(out, region, "metadata", "labels", kcp.LabelRegion)
	}
	return out, err
}

// copyFor returns a decrypted copy for another shard: only its annotation changes.
func copyFor(value []byte, shard string) ([]byte, error) {
	if _, err := encoding.ReadMeta(value); err != nil { // an edit checks only the edited part
		return nil, err
	}
	from, err := encoding.Get(value, "metadata", "annotations", kcp.AnnotationCopied)
	if err != nil || from == nil {
		return value, err
	}
	return encoding.Set(value, shard, "metadata", "annotations", kcp.AnnotationCopied)
}

// isEncrypted reports whether a stored value is encrypted.
func isEncrypted(stored []byte) bool { return encoding.Detect(stored) == encoding.FormatEncrypted }
