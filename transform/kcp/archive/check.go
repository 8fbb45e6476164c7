package archive

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/snapshot"
)

// Check recomputes every count and every digest of a manifest from the records of its file. The error wraps ErrDamaged and names the
// first thing that differs, the smallest of those that do, or is that of reading the file; the file's own digest is not waited
// for (snapshot.Snapshot.Digest).
func Check(ctx context.Context, s *snapshot.Snapshot, m *Manifest) error {
	leases, err := s.Leases(ctx)
	if err != nil {
		return err
	}
	c := newChecker(m, leases)
	for rec, err := range s.Scan(ctx) {
		if err != nil {
			return err
		}
		if err := s.Guard(func() error { return c.add(rec) }); err != nil {
			return fmt.Errorf("%s: %w", s.Path(), err)
		}
	}
	if err := c.judge(len(leases)); err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	revision, err := s.Revision(ctx)
	if err == nil && revision != m.Origin.Revision {
		err = fmt.Errorf("%s: %w: it is at revision %d, the manifest says %d", s.Path(), ErrDamaged, revision, m.Origin.Revision)
	}
	return err
}

// checker counts records by where the manifest says that they belong.
type checker struct {
	m           *Manifest
	tally       *Tally
	dirs        map[string]int // of resources: the cluster's place in the manifest
	resources   map[string]Resource
	definitions map[string]string // UIDs by key
}

func newChecker(m *Manifest, leases map[int64]int64) *checker {
	c := &checker{
		m: m, tally: NewTally(m.Origin.Prefix, leases),
		dirs: map[string]int{}, resources: map[string]Resource{}, definitions: map[string]string{},
	}
	for i := range m.Clusters {
		for _, r := range m.Clusters[i].Resources {
			c.dirs[r.Dir], c.resources[r.Dir] = i, r
		}
	}
	for _, d := range m.Definitions {
		c.definitions[d.Key] = d.UID
	}
	return c
}

func (c *checker) add(rec snapshot.Scanned) error {
	if !rec.Live {
		return fmt.Errorf("%w: revision %s is no live record, and an archive holds no others", ErrDamaged, rec.Revision)
	}
	prefix := c.m.Origin.Prefix
	if len(rec.Key) <= len(prefix) || string(rec.Key[:len(prefix)]) != prefix {
		return fmt.Errorf("%w: key %.200q is not below %q", ErrDamaged, rec.Key, prefix)
	}
	key := rec.Key[len(prefix):]
	if uid, ok := c.definitions[string(key)]; ok {
		c.tally.AddDefinition(rec.Record, uid)
		return nil
	}
	for end := len(key) - 1; end > 0; end-- { // the longest folder counts, and a name follows it
		if key[end-1] != '/' {
			continue
		}
		if r, ok := c.resources[string(key[:end])]; ok {
			c.tally.Add(rec.Record, c.m.Clusters[c.dirs[r.Dir]].Name, r)
			return nil
		}
	}
	return fmt.Errorf("%w: key %.200q belongs to nothing that the manifest lists", ErrDamaged, rec.Key)
}

// judge compares what was counted with what the manifest says, from the small to the whole, so that the first difference says most.
func (c *checker) judge(leases int) error {
	got := &Manifest{Clusters: make([]Cluster, len(c.m.Clusters)), Definitions: make([]Definition, len(c.m.Definitions))}
	for i := range c.m.Clusters {
		got.Clusters[i].Name = c.m.Clusters[i].Name
	}
	copy(got.Definitions, c.m.Definitions)
	c.tally.Fill(got)
	for i := range got.Clusters {
		if err := differentCluster(&c.m.Clusters[i], &got.Clusters[i]); err != nil {
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
	if err := differentLists(c.m, got, leases); err != nil {
		return err
	}
	if err := different("all records", c.m.Total, got.Total); err != nil {
		return err
	}
	return different("all records with their revisions, versions and leases", c.m.AsStored, got.AsStored)
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

// differentLists compares leases and encryption. The file may have no lease that nothing holds.
func differentLists(says, has *Manifest, leases int) error {
	there := 0
	for i, l := range has.Leases {
		if i >= len(says.Leases) || says.Leases[i] != l {
			return fmt.Errorf("%w: lease %s: TTL %d s and %d keys, the manifest says otherwise", ErrDamaged, l.ID, l.TTL, l.Keys)
		}
		if l.TTL != 0 {
			there++
		}
	}
	if len(says.Leases) != len(has.Leases) || there != leases {
		return fmt.Errorf("%w: %d leases and %d of them held, the manifest lists %d", ErrDamaged, leases, len(has.Leases), len(says.Leases))
	}
	for i, e := range has.Encryption {
		if i >= len(says.Encryption) || says.Encryption[i] != e {
			return fmt.Errorf("%w: %d values encrypted by %.64q, the manifest says otherwise", ErrDamaged, e.Keys, e.Name)
		}
	}
	if len(says.Encryption) != len(has.Encryption) {
		return fmt.Errorf("%w: %d encryption keys are in use, the manifest lists %d", ErrDamaged, len(has.Encryption), len(says.Encryption))
	}
	return nil
}
