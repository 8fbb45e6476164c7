package logicalcluster

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/archive"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// CheckArchive opens an archive and checks all of it: that it is as it was made (archive.Check), and that its manifest says of each
// record what the key says, which is what proves whose it is. Errors are those of archive.Open and archive.Check; the manifest is
// nil where it could not be read.
func CheckArchive(ctx context.Context, s *snapshot.Snapshot) (*archive.Manifest, error) {
	m, err := archive.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := archive.Check(ctx, s, m); err != nil {
		return m, err
	}
	known := newOwnership(m)
	for rec, err := range s.Live(ctx, nil) {
		if err == nil {
			err = s.Guard(func() error { return known.check(rec.Key) })
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", s.Path(), err)
		}
	}
	return m, nil
}

// ownership is what a manifest says of keys.
type ownership struct {
	layout      keys.KCPShard
	resources   map[string]archive.Resource // by Dir, without sums
	clusters    map[string]string           // by Dir
	definitions map[string]string           // UIDs by key behind the prefix
}

func newOwnership(m *archive.Manifest) *ownership {
	o := &ownership{
		layout: keys.KCPShard{Prefix: m.Origin.Prefix}, resources: map[string]archive.Resource{},
		clusters: map[string]string{}, definitions: map[string]string{},
	}
	for _, c := range m.Clusters {
		for _, r := range c.Resources {
			r.Sum = archive.Sum{}
			o.resources[r.Dir], o.clusters[r.Dir] = r, c.Name
		}
	}
	for _, d := range m.Definitions {
		o.definitions[d.Key] = d.UID
	}
	return o
}

func (o *ownership) check(key []byte) error {
	k, err := o.layout.Parse(key)
	if err != nil {
		return fmt.Errorf("%w: %w", archive.ErrDamaged, err)
	}
	if uid, ok := o.definitions[string(key[len(o.layout.Prefix):])]; ok {
		if k.Cluster != clusterBound || k.Resource != definitionType() || k.Custom || k.Identity != "" || k.Name != uid {
			return fmt.Errorf("%w: key %.200q is not that of bound definition %q", archive.ErrDamaged, key, uid)
		}
		return nil
	}
	of := resourceOf(k, key)
	if o.resources[of.Dir] != of || o.clusters[of.Dir] != k.Cluster {
		return fmt.Errorf("%w: key %.200q is of %s in logical cluster %q, and the manifest says otherwise",
			archive.ErrDamaged, key, of.Resource, k.Cluster)
	}
	return nil
}
