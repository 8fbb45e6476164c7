package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// CheckArchive opens an archive and checks all of it: that it is as it was made (Check), and that its manifest says of each
// record what the key says, which is what proves whose it is. Errors are those of Open and Check; the manifest is
// nil where it could not be read.
func OpenChecked(ctx context.Context, s *snapshot.Snapshot) (*Manifest, error) {
	m, err := Open(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := Check(ctx, s, m); err != nil {
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
	resources   map[string]Resource // by Dir, without sums
	clusters    map[string]string   // by Dir
	definitions map[string]string   // UIDs by key behind the prefix
}

func newOwnership(m *Manifest) *ownership {
	o := &ownership{
		layout: keys.KCPShard{Prefix: m.Origin.Prefix}, resources: map[string]Resource{},
		clusters: map[string]string{}, definitions: map[string]string{},
	}
	for _, c := range m.Clusters {
		for _, r := range c.Resources {
			r.Sum = Sum{}
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
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if uid, ok := o.definitions[string(key[len(o.layout.Prefix):])]; ok {
		if k.Cluster != clusters.BoundCRDs || k.Resource != clusters.DefinitionType() || k.Custom || k.Identity != "" || k.Name != uid {
			return fmt.Errorf("%w: key %.200q is not that of bound definition %q", ErrDamaged, key, uid)
		}
		return nil
	}
	of := ResourceOf(k, key)
	if o.resources[of.Dir] != of || o.clusters[of.Dir] != k.Cluster {
		return fmt.Errorf("%w: key %.200q is of %s in logical cluster %q, and the manifest says otherwise",
			ErrDamaged, key, of.Resource, k.Cluster)
	}
	return nil
}

// ResourceOf is what a record is of, but for its sum. Behind the folder stand namespace and name.
func ResourceOf(k keys.Key, key []byte) Resource {
	tail := k.Name
	if k.Namespace != "" {
		tail = k.Namespace + "/" + k.Name
	}
	return Resource{
		Resource: k.Resource.String(), Identity: k.Identity, Custom: k.Custom, Dir: string(key[len(k.Prefix) : len(key)-len(tail)]),
	}
}

// ErrArchive is returned for a file that is to be changed, and is an archive: what that says of itself would not be true any more.
var ErrIsArchive = errors.New("the file is an archive of a logical cluster, and not the snapshot of a shard")

// Refuse returns ErrArchive for an archive, sound or not.
func Refuse(ctx context.Context, s *snapshot.Snapshot) error {
	_, err := Open(ctx, s)
	switch {
	case errors.Is(err, ErrNotArchive):
		return nil
	case err == nil, errors.Is(err, ErrFormat), errors.Is(err, ErrDamaged):
		return ErrIsArchive
	}
	return err
}
