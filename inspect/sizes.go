package inspect

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Sizes has the sizes of the parts of a snapshot, in bytes. A record counts with its entry in
// etcd's key bucket, key and numbers included.
type Sizes struct {
	Image      int64  `json:"image"` // the database without digest, as on a member after a restore
	PageSize   int    `json:"pageSize"`
	Live       Amount `json:"live"`       // latest values
	Superseded Amount `json:"superseded"` // overwritten and deleted values
	Tombstones Amount `json:"tombstones"`
	FreePages  int64  `json:"freePages"` // unused pages
	Overhead   int64  `json:"overhead"`  // the rest: page headers, room in pages, branches, the other buckets

	Savings Savings `json:"savings"`

	// Each list is by live bytes, the largest first, then history, then name.
	Resources  []Share   `json:"resources"`  // null where --by names another list
	Namespaces []Share   `json:"namespaces"` // null where --by names another list; "" for no namespace
	Owners     []Share   `json:"owners"`     // null where --by names another list; by kind of the controller, else the first owner
	Fields     []Share   `json:"fields"`     // null where --by names another list
	Largest    []Largest `json:"largest"`    // the largest first, then by key
}

// Amount is the number and size of some records.
type Amount struct {
	Records int   `json:"records"`
	Bytes   int64 `json:"bytes"`
}

func (a *Amount) add(size int) { a.Records, a.Bytes = a.Records+1, a.Bytes+int64(size) }

// Savings are estimates of upkeep on a server that runs on the file.
type Savings struct {
	// Compaction is the history that a compaction at the current revision removes. The file does
	// not shrink: its pages become free.
	Compaction Amount `json:"compaction"`
	// Defragmented is the size of the image after a defragmentation, Compacted after a compaction
	// and a defragmentation.
	Defragmented int64 `json:"defragmented"`
	Compacted    int64 `json:"compacted"`
}

// Share is the size of objects that have a name in common.
type Share struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
	Live    int64  `json:"live"`
	History int64  `json:"history"` // superseded values and tombstones; only of resources and namespaces
}

// Largest is one of the largest values.
type Largest struct {
	Key      string `json:"key"`
	Resource string `json:"resource,omitempty"`
	Bytes    int64  `json:"bytes"` // of the stored value alone, as in a request
}

// Measure reads every record of the snapshot once. The lists are about the keys that r sees, the
// rest about the file. top is the length of Largest.
func Measure(ctx context.Context, r *Reader, top int) (*Sizes, error) {
	s := r.snapshot
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	leases, err := s.Leases(ctx)
	if err != nil {
		return nil, err
	}
	space := s.Space()
	m := &measure{
		Sizes: Sizes{
			Image: int64(space.Pages) * int64(space.PageSize), PageSize: space.PageSize,
			FreePages: int64(space.FreePages) * int64(space.PageSize), Largest: []Largest{},
		},
		r: r, layouts: layouts, top: top, all: newPacking(space.PageSize), live: newPacking(space.PageSize),
		resources: shares{}, byResource: map[schema.GroupResource]*Share{}, namespaces: shares{}, owners: shares{}, fields: newFieldSizes(),
	}
	for rec, err := range s.Scan(ctx) {
		if err == nil {
			err = m.add(ctx, rec)
		}
		if err != nil {
			return nil, err
		}
	}
	m.finish(len(leases))
	return &m.Sizes, nil
}

type measure struct {
	Sizes
	r                             *Reader
	layouts                       keys.Layouts
	top                           int
	all, live                     *packing
	resources, namespaces, owners shares
	byResource                    map[schema.GroupResource]*Share // of resources
	fields                        *fieldSizes
}

func (m *measure) add(ctx context.Context, rec snapshot.Scanned) error {
	m.all.add(rec.Stored)
	switch {
	case rec.Live:
		m.live.add(rec.Stored)
		m.Live.add(rec.Stored)
	case rec.Tombstone:
		m.Tombstones.add(rec.Stored)
	default:
		m.Superseded.add(rec.Stored)
	}
	if sees, err := m.r.Sees(ctx, rec.Key); !sees {
		return err
	}
	key, _, err := m.layouts.Parse(rec.Key)
	var in *Share
	if err != nil {
		in = m.resources.of("(other keys)")
	} else {
		in = m.resource(key.Resource)
	}
	within := m.namespaces.of(key.Namespace)
	if !rec.Live {
		in.History += int64(rec.Stored)
		within.History += int64(rec.Stored)
		return nil
	}
	in.count(rec.Stored)
	within.count(rec.Stored)
	m.rank(rec, in.Name)
	e := m.r.raw(rec.Record)
	if err := m.r.Decrypt(ctx, &e); err != nil {
		return err
	}
	m.owners.of(ownerKind(e.Value)).count(rec.Stored)
	m.fields.add(&e, rec.Stored)
	return nil
}

// resource returns the share of a resource.
func (m *measure) resource(gr schema.GroupResource) *Share {
	if m.byResource[gr] == nil {
		m.byResource[gr] = m.resources.of(gr.String())
	}
	return m.byResource[gr]
}

// ownerKind returns the kind of the owner of an object, as KIND.GROUP; "" for none.
func ownerKind(value []byte) string {
	apiVersion, kind := encoding.ControllerKind(value)
	if group := (encoding.Meta{APIVersion: apiVersion, Kind: kind}).GVK().Group; group != "" {
		return kind + "." + group
	}
	return kind
}

// rank keeps the largest values; of equal ones the first by key.
func (m *measure) rank(rec snapshot.Scanned, resource string) {
	if m.top <= 0 || len(m.Largest) == m.top && int64(len(rec.Value)) < m.Largest[m.top-1].Bytes {
		return
	}
	one := Largest{Key: string(rec.Key), Resource: resource, Bytes: int64(len(rec.Value))}
	order := func(a, b Largest) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key)) }
	i, _ := slices.BinarySearchFunc(m.Largest, one, order)
	m.Largest = slices.Insert(m.Largest, i, one)
	m.Largest = m.Largest[:min(len(m.Largest), m.top)]
}

func (m *measure) finish(leases int) {
	records := m.Live.Bytes + m.Superseded.Bytes + m.Tombstones.Bytes
	m.Overhead = m.Image - m.FreePages - records
	m.Savings = Savings{
		Compaction:   Amount{m.Superseded.Records + m.Tombstones.Records, m.Superseded.Bytes + m.Tombstones.Bytes},
		Defragmented: m.all.image(leases), Compacted: m.live.image(leases),
	}
	m.Resources, m.Namespaces = m.resources.sorted(), m.namespaces.sorted()
	m.Owners, m.Fields = m.owners.sorted(), m.fields.named().sorted()
}
