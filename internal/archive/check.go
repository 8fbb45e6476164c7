package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// OpenChecked is Open and Check, and also compares the manifest with each key. The manifest is nil
// if unreadable.
func OpenChecked(ctx context.Context, s *snapshot.Snapshot) (*Manifest, error) {
	m, err := Open(ctx, s)
	if err == nil {
		err = check(ctx, s, m, true)
	}
	return m, err
}

// Check recomputes every count and digest of a manifest from the records of its file. The error
// wraps ErrDamaged and names the first difference, the smallest part first, or is a read error.
// Check does not wait for the file's own digest (snapshot.Snapshot.Digest).
func Check(ctx context.Context, s *snapshot.Snapshot, m *Manifest) error {
	return check(ctx, s, m, false)
}

func check(ctx context.Context, s *snapshot.Snapshot, m *Manifest, byKeys bool) error {
	leases, err := s.Leases(ctx)
	if err != nil {
		return err
	}
	c := newChecker(m, leases)
	err = scan(ctx, s, func(rec *snapshot.Record) error { return c.add(rec, byKeys) })
	if err != nil {
		return err
	}
	err = cmp.Or(c.compare(len(leases)), checkRevision(ctx, s, m.Origin.Revision), c.mismatch)
	if errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%s: %w", s.Path(), err)
	}
	return err
}

// scan calls add for each record of an archive, whose records all are live. The record that holds
// the revision of the store has no key.
func scan(ctx context.Context, s *snapshot.Snapshot, add func(*snapshot.Record) error) error {
	return stream.Each(s.Scan(ctx), func(rec snapshot.Scanned) error {
		err := s.Guard(func() error {
			switch {
			case len(rec.Key) == 0 && !rec.Tombstone:
				return nil
			case !rec.Live:
				return fmt.Errorf("%w: revision %s is no live record, and an archive holds no others", ErrDamaged,
					rec.Revision)
			}
			return add(rec.Record)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Path(), err)
		}
		return nil
	})
}

func checkRevision(ctx context.Context, s *snapshot.Snapshot, says int64) error {
	revision, err := s.Revision(ctx)
	if err == nil && revision != says {
		err = fmt.Errorf("%w: it is at revision %d, the manifest says %d", ErrDamaged, revision, says)
	}
	return err
}

// checker counts records by their folder in the manifest.
type checker struct {
	m           *Manifest
	tally       *ClusterTally
	folders     map[string]folder
	definitions map[string]string // UIDs by key
	mismatch    error             // error of the first record whose key contradicts the manifest
}

type folder struct {
	cluster  string
	resource Resource // without its Sum
}

func newChecker(m *Manifest, leases map[int64]int64) *checker {
	c := &checker{m: m, tally: NewClusterTally(m.Origin.Prefix, leases), folders: map[string]folder{},
		definitions: map[string]string{}}
	for _, of := range m.Clusters {
		for _, r := range of.Resources {
			r.Sum = Sum{}
			c.folders[r.Dir] = folder{of.Name, r}
		}
	}
	for _, d := range m.Definitions {
		c.definitions[d.Key] = d.UID
	}
	return c
}

func (c *checker) add(rec *snapshot.Record, byKeys bool) error {
	prefix := c.m.Origin.Prefix
	if len(rec.Key) <= len(prefix) || string(rec.Key[:len(prefix)]) != prefix {
		return fmt.Errorf("%w: key %.200q is not below %q", ErrDamaged, rec.Key, prefix)
	}
	key := rec.Key[len(prefix):]
	uid, isDefinition := c.definitions[string(key)]
	in, ok := c.folderOf(key)
	switch {
	case isDefinition:
		c.tally.AddDefinition(rec, uid)
	case ok:
		c.tally.Add(rec, in.cluster, in.resource)
	default:
		return fmt.Errorf("%w: key %.200q belongs to nothing that the manifest lists", ErrDamaged, rec.Key)
	}
	if byKeys && c.mismatch == nil {
		c.mismatch = c.checkKey(rec.Key, in, uid, isDefinition)
	}
	return nil
}

// folderOf returns the longest folder of a key.
func (c *checker) folderOf(key []byte) (folder, bool) {
	for end := len(key) - 1; end > 0; end-- { // a name follows the folder
		if key[end-1] != '/' {
			continue
		}
		if in, ok := c.folders[string(key[:end])]; ok {
			return in, true
		}
	}
	return folder{}, false
}

// checkKey compares the manifest with the key of a record.
func (c *checker) checkKey(key []byte, in folder, uid string, isDefinition bool) error {
	k, err := keys.KCPShard{Prefix: c.m.Origin.Prefix}.Parse(key)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case isDefinition && k != (keys.Key{Prefix: k.Prefix, Resource: keys.DefinitionType(),
		Cluster: kcp.BoundCRDs, Name: uid}):
		return fmt.Errorf("%w: key %.200q is not that of bound definition %q", ErrDamaged, key, uid)
	case !isDefinition && in != (folder{k.Cluster, ResourceOf(k, key)}):
		return fmt.Errorf("%w: key %.200q is of %s in logical cluster %q, and the manifest says otherwise", ErrDamaged,
			key, k.Resource, k.Cluster)
	}
	return nil
}

// ResourceOf returns the resource of a record, without its sum. The folder is the key without
// namespace and name.
func ResourceOf(k keys.Key, key []byte) Resource {
	tail := k.Name
	if k.Namespace != "" {
		tail = k.Namespace + "/" + k.Name
	}
	return Resource{
		Resource: k.Resource.String(), Identity: k.Identity, Custom: k.Custom,
		Dir: string(key[len(k.Prefix) : len(key)-len(tail)]),
	}
}

// compare compares the smallest parts first: the first difference is the most specific.
func (c *checker) compare(leases int) error {
	got := &Manifest{Definitions: slices.Clone(c.m.Definitions)}
	for _, of := range c.m.Clusters {
		got.Clusters = append(got.Clusters, Cluster{Name: of.Name})
	}
	c.tally.Fill(got)
	for i, of := range got.Clusters {
		if err := differentCluster(&c.m.Clusters[i], &of); err != nil {
			return err
		}
	}
	for i, d := range got.Definitions {
		switch d.SHA256 {
		case c.m.Definitions[i].SHA256:
		case "":
			return fmt.Errorf("%w: definition %q (%s) is not there", ErrDamaged, d.UID, d.Resource)
		default:
			return fmt.Errorf("%w: definition %q (%s): its value has another SHA-256", ErrDamaged, d.UID, d.Resource)
		}
	}
	return differentCounts(&c.m.Counts, &got.Counts, leases)
}

// differentCounts compares the counts of all records; leases is the number of leases of the file.
func differentCounts(says, has *Counts, leases int) error {
	return cmp.Or(differentLists(says, has, leases), different("all records", says.Total, has.Total),
		different("all records with their revisions, versions and leases", says.AsStored, has.AsStored))
}

func differentCluster(says, has *Cluster) error {
	found := map[string]Sum{}
	for _, r := range has.Resources {
		found[r.Dir] = r.Sum
	}
	for _, r := range says.Resources {
		if err := different(fmt.Sprintf("cluster %q: %s", says.Name, r.Resource), r.Sum, found[r.Dir]); err != nil {
			return err
		}
	}
	return different(fmt.Sprintf("cluster %q", says.Name), says.Sum, has.Sum)
}

func different(what string, says, has Sum) error {
	switch {
	case says == has:
		return nil
	case says.Keys != has.Keys:
		return fmt.Errorf("%w: %s: %d keys, the manifest says %d", ErrDamaged, what, has.Keys, says.Keys)
	case says.Bytes != has.Bytes:
		return fmt.Errorf("%w: %s: %d bytes, the manifest says %d", ErrDamaged, what, has.Bytes, says.Bytes)
	default:
		return fmt.Errorf("%w: %s: digest %s, the manifest says %s", ErrDamaged, what, has.SHA256, says.SHA256)
	}
}

func differentLists(says, has *Counts, leases int) error {
	there := 0
	for i, l := range has.Leases {
		if i >= len(says.Leases) || says.Leases[i] != l {
			return fmt.Errorf("%w: lease %s: TTL %d s and %d keys, the manifest says otherwise", ErrDamaged,
				l.ID, l.TTL, l.Keys)
		}
		if l.TTL != 0 {
			there++
		}
	}
	if len(says.Leases) != len(has.Leases) || there != leases {
		return fmt.Errorf("%w: %d leases and %d of them held, the manifest lists %d", ErrDamaged, leases,
			len(has.Leases), len(says.Leases))
	}
	for i, e := range has.Encryption {
		if i >= len(says.Encryption) || says.Encryption[i] != e {
			return fmt.Errorf("%w: %d values encrypted by %.64q, the manifest says otherwise",
				ErrDamaged, e.Keys, e.Name)
		}
	}
	if len(says.Encryption) != len(has.Encryption) {
		return fmt.Errorf("%w: %d encryption keys are in use, the manifest lists %d", ErrDamaged, len(has.Encryption),
			len(says.Encryption))
	}
	return nil
}
