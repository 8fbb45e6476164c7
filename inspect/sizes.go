package inspect

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Sizes has the sizes of the parts of a snapshot, in bytes. The size of a record is the size of its
// entry in etcd's key bucket, including key and numbers.
type Sizes struct {
	Image      int64  `json:"image"` // the database without the digest, as on a member after a restore
	PageSize   int    `json:"pageSize"`
	Live       Amount `json:"live"`       // latest values
	Superseded Amount `json:"superseded"` // overwritten and deleted values
	Tombstones Amount `json:"tombstones"`
	FreePages  int64  `json:"freePages"` // unused pages
	Overhead   int64  `json:"overhead"`  // page headers, unused space in pages, branches, the other buckets

	Savings Savings `json:"savings"`

	// Each list is sorted by live bytes, largest first, then by history, then by name.
	Resources  []Share `json:"resources"`  // null if --by names another list
	Namespaces []Share `json:"namespaces"` // null if --by names another list; "" for no namespace
	// null if --by names another list; by kind of the controller, else of the first owner
	Owners  []Share   `json:"owners"`
	Fields  []Share   `json:"fields"`  // null if --by names another list
	Largest []Largest `json:"largest"` // the largest first, then by key
}

// Amount is the number and size of some records.
type Amount struct {
	Records int   `json:"records"`
	Bytes   int64 `json:"bytes"`
}

func (a *Amount) add(size int) { a.Records, a.Bytes = a.Records+1, a.Bytes+int64(size) }

// Savings has estimates for compaction and defragmentation on a server with this file.
type Savings struct {
	// Compaction is the history that a compaction at the current revision removes. The file does
	// not shrink: the pages of the history become free.
	Compaction Amount `json:"compaction"`
	// Defragmented is the size of the image after a defragmentation; Compacted is the size after a
	// compaction and a defragmentation.
	Defragmented int64 `json:"defragmented"`
	Compacted    int64 `json:"compacted"`
}

// Share is the size of the objects with a common name.
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
	Bytes    int64  `json:"bytes"` // of the stored value only, as in a request
}

// Measure reads every record of the snapshot once. The lists cover the keys that r sees, the other
// fields cover the file. top is the length of Largest.
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
		resources: shares{}, byResource: map[schema.GroupResource]*Share{}, namespaces: shares{}, owners: shares{},
		fields: newFieldSizes(),
	}
	for one, err := range stream.Ahead(s.Guard, s.Scan(ctx),
		func(rec snapshot.Scanned) (weighed, int) { return m.decrypt(ctx, rec), len(rec.Value) }, m.parse) {
		if err = cmp.Or(err, one.failed()); err != nil {
			return nil, err
		}
		m.add(one)
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

// weighed is a record with the parts that add counts.
type weighed struct {
	Entry
	record       snapshot.Record
	live, sees   bool
	stored       int
	key          keys.Key
	unparsed     error
	value        encoding.Value
	parts        encoding.Parts
	unmeasurable error
	owner        string
	err          error
}

func (one *weighed) failed() error {
	if one == nil {
		return nil
	}
	return one.err
}

// decrypt returns a record, decrypted. Calls are sequential, since a decrypter may be a plugin.
func (m *measure) decrypt(ctx context.Context, rec snapshot.Scanned) weighed {
	one := weighed{record: *rec.Record, live: rec.Live, stored: rec.Stored}
	one.sees, one.err = m.r.Sees(ctx, rec.Key)
	if one.sees && one.live {
		one.Entry = raw(m.r, rec.Record)
		one.err = m.r.Decrypt(ctx, &one.Entry)
	}
	return one
}

// parse sets the parts of key and value. Calls may run concurrently.
func (m *measure) parse(one *weighed) {
	if !one.sees || one.err != nil {
		return
	}
	one.key, _, one.unparsed = m.layouts.Parse(one.record.Key)
	if !one.live {
		return
	}
	one.value, one.parts, one.unmeasurable = encoding.Measure(one.Value)
	if one.parts.Owned || one.unmeasurable != nil {
		one.owner = ownerKind(one.Value)
	}
}

func (m *measure) add(one *weighed) {
	m.all.add(one.stored)
	switch {
	case one.live:
		m.live.add(one.stored)
		m.Live.add(one.stored)
	case one.record.Tombstone:
		m.Tombstones.add(one.stored)
	default:
		m.Superseded.add(one.stored)
	}
	if !one.sees {
		return
	}
	var in *Share
	if one.unparsed != nil {
		in = m.resources.of("(other keys)")
	} else {
		in = m.resource(one.key.Resource)
	}
	within := m.namespaces.of(one.key.Namespace)
	if !one.live {
		in.History += int64(one.stored)
		within.History += int64(one.stored)
		return
	}
	in.count(one.stored)
	within.count(one.stored)
	m.rank(one, in.Name)
	m.owners.of(one.owner).count(one.stored)
	m.fields.add(one)
}

func (m *measure) resource(gr schema.GroupResource) *Share {
	if m.byResource[gr] == nil {
		m.byResource[gr] = m.resources.of(gr.String())
	}
	return m.byResource[gr]
}

// ownerKind returns the kind of the controller, or else of the first owner, of an object as
// KIND.GROUP; "" for no owner or unreadable metadata.
func ownerKind(value []byte) string {
	var look encoding.Glance
	if !look.Glance(value) {
		look.Owners = nil
		meta, err := encoding.ReadMeta(value)
		if err != nil {
			return ""
		}
		for _, o := range meta.OwnerReferences {
			look.Owners = append(look.Owners, encoding.Owner{APIVersion: []byte(o.APIVersion), Kind: []byte(o.Kind),
				Controller: o.Controller != nil && *o.Controller})
		}
	}
	if len(look.Owners) == 0 {
		return ""
	}
	i := slices.IndexFunc(look.Owners, func(o encoding.Owner) bool { return o.Controller })
	owner := look.Owners[max(i, 0)]
	if group := (encoding.Meta{APIVersion: string(owner.APIVersion)}).GVK().Group; group != "" {
		return string(owner.Kind) + "." + group
	}
	return string(owner.Kind)
}

// rank keeps the largest values; among equal values, the first by key.
func (m *measure) rank(one *weighed, resource string) {
	size := int64(len(one.Stored))
	if m.top <= 0 || len(m.Largest) == m.top && size < m.Largest[m.top-1].Bytes {
		return
	}
	large := Largest{Key: string(one.Key), Resource: resource, Bytes: size}
	order := func(a, b Largest) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key)) }
	i, _ := slices.BinarySearchFunc(m.Largest, large, order)
	m.Largest = slices.Insert(m.Largest, i, large)
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

type shares map[string]*Share

func (s shares) of(name string) *Share {
	share := s[name]
	if share == nil {
		share = &Share{Name: name}
		s[name] = share
	}
	return share
}

func (s *Share) count(size int) { s.Objects, s.Live = s.Objects+1, s.Live+int64(size) }

// sorted lists the shares, the most live bytes first, then the most history, then by name.
func (s shares) sorted() []Share {
	out := make([]Share, 0, len(s))
	for _, share := range s {
		out = append(out, *share)
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(b.History, a.History), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// field is a part of a live record. Every byte belongs to exactly one field.
type field int

const (
	fieldManaged field = iota
	fieldLastApplied
	fieldMetadata
	fieldSpec
	fieldStatus
	fieldData
	fieldOther
	fieldEncrypted
	fieldNoObject
	fieldEnvelope
	fieldCount
)

// fieldNames returns the names of Sizes.Fields.
func fieldNames() [fieldCount]string {
	return [fieldCount]string{"managedFields", "last-applied annotation", "metadata, the rest", "spec", "status",
		"data", "other fields", "encrypted, not opened", "values that are no objects", "keys, numbers, envelopes"}
}

type fieldSizes struct {
	shares [fieldCount]Share
	names  map[schema.GroupVersionKind]map[int]string
}

func newFieldSizes() *fieldSizes {
	return &fieldSizes{names: map[schema.GroupVersionKind]map[int]string{}}
}

// named returns the shares of the fields that at least one object has.
func (f *fieldSizes) named() shares {
	out := shares{}
	for i, name := range fieldNames() {
		if f.shares[i].Objects > 0 {
			f.shares[i].Name = name
			out[name] = &f.shares[i]
		}
	}
	return out
}

func (f *fieldSizes) add(one *weighed) {
	sizes := [fieldCount]int{fieldEnvelope: one.stored}
	give := func(to field, n int) {
		sizes[to] += n
		sizes[fieldEnvelope] -= n
	}
	parts := &one.parts
	switch {
	case one.Undecryptable != nil:
		give(fieldEncrypted, len(one.Stored))
	case one.unmeasurable != nil:
		give(fieldNoObject, len(one.Stored))
	default:
		names := f.namesOf(one.value)
		for _, p := range parts.Fields {
			give(fieldOf(p, names), p.Bytes)
		}
		sizes[fieldMetadata] -= parts.ManagedFields + parts.LastApplied
		sizes[fieldManaged], sizes[fieldLastApplied] = parts.ManagedFields, parts.LastApplied
	}
	for i, n := range sizes {
		if n != 0 {
			f.shares[i].count(n)
		}
	}
}

// fieldOf returns the field of a top-level part; names has the names of protobuf fields.
func fieldOf(p encoding.Part, names map[int]string) field {
	name := p.Name
	if p.Number == encoding.ObjectMetaField {
		name = "metadata"
	} else if p.Number > 0 {
		name = names[p.Number]
	}
	switch name {
	case "metadata":
		return fieldMetadata
	case "spec":
		return fieldSpec
	case "status":
		return fieldStatus
	case "data", "binaryData", "stringData":
		return fieldData
	}
	return fieldOther
}

// namesOf returns the names of the fields of a protobuf value. Unknown kinds have no names and are
// not cached: a hostile file may have masses of unknown kinds.
func (f *fieldSizes) namesOf(v encoding.Value) map[int]string {
	if v.Format != encoding.FormatProtobuf {
		return nil
	}
	names, known := f.names[v.GVK]
	if !known {
		if names = native.FieldNames(v.GVK); names != nil {
			f.names[v.GVK] = names
		}
	}
	return names
}
