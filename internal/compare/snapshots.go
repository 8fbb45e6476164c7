package compare

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/differ"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Options say what is compared, and how it is shown.
type Options struct {
	Want        func(keys.Key) bool // the objects asked for; nil for all keys, those that are no object's included
	Labels      labels.Selector     // those with these labels, in one of the snapshots; nil for all
	All         bool                // nothing is noise
	ShowSecrets bool
	CountOnly   bool // Changes are left empty, which is faster
}

// Op is what became of an object.
type Op string

// What may become of an object.
const (
	Added     Op = "added"
	Removed   Op = "removed"
	Changed   Op = "changed"
	Recreated Op = "recreated" // deleted and created again under the same name: the uid is another
)

// Object is what became of the value of a key.
type Object struct {
	Op Op `json:"op"`
	Subject
	Old     *Version        `json:"old,omitempty"`
	New     *Version        `json:"new,omitempty"`
	Changes []differ.Change `json:"changes,omitempty"`
	Folded  int             `json:"folded,omitempty"` // changes that are noise
	// Noise: there is nothing but noise. Changes is empty, and of an Event nothing was read.
	Noise bool `json:"-"`
	// Notes say what could not be compared as an object, and that an object is the same but stored otherwise.
	Notes []string `json:"notes,omitempty"`
}

// Subject is a key and what it names; only Key is set where that is no object.
type Subject struct {
	Key       string `json:"key"`
	Resource  string `json:"resource,omitempty"`
	Cluster   string `json:"cluster,omitempty"` // kcp's
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// NewSubject returns the subject of a key in the layout of place.
func NewSubject(key []byte, place keys.Key) Subject {
	s := Subject{Key: string(key), Cluster: place.Cluster, Namespace: place.Namespace, Name: place.Name}
	if place.Resource.Resource != "" {
		s.Resource = place.Resource.String()
	}
	return s
}

// String names the object, as in "deployments.apps shop/web", with the logical cluster first where there is one, or else the key.
func (s Subject) String() string {
	if s.Resource == "" {
		return s.Key
	}
	name := s.Name
	if s.Namespace != "" {
		name = s.Namespace + "/" + name
	}
	if s.Cluster != "" {
		name = s.Cluster + "|" + name
	}
	return s.Resource + " " + name
}

// Version is an object as one of the snapshots has it.
type Version struct {
	Revision   int64  `json:"revision"`
	Bytes      int    `json:"bytes"`           // as stored
	Lease      string `json:"lease,omitempty"` // in hexadecimal
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// compactKey is where API servers agree on compactions (k8s.io/apiserver pkg/storage/etcd3/compact.go). It is renewed every few
// minutes.
const compactKey = "compact_rev_key"

// isNoise tells whether whatever becomes of a key is noise: Events, the endpoint reconcilers' records, which are renewed every
// few seconds, and the record of compactions.
func isNoise(key []byte, place keys.Key) bool {
	switch place.Resource.Resource {
	case "events":
		return place.Resource.Group == "" || place.Resource.Group == "events.k8s.io"
	case "masterleases", "peerserverleases":
		return place.Resource.Group == ""
	}
	return string(key) == compactKey
}

// Snapshots yields what became of each key that differs, in the order of the keys. An error ends the sequence.
//
// Values are told apart by their stored bytes; the keys of those that differ are kept, 24 bytes each, and then looked at one by
// one.
func Snapshots(ctx context.Context, old, new *inspect.Reader, o Options) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		c := comparison{old: old, new: new, options: o}
		found, err := c.differing(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for i, key := range found {
			if i%256 == 0 {
				err = ctx.Err()
			}
			var object *Object
			if err == nil {
				object, err = c.look(ctx, key)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if object != nil && !yield(object, nil) {
				return
			}
		}
	}
}

type comparison struct {
	old, new   *inspect.Reader
	options    Options
	layoutsOld keys.Layouts
	layoutsNew keys.Layouts
	leasesOld  map[int64]int64 // seconds to live by id
	leasesNew  map[int64]int64
}

// prepare reads what is asked of each record.
func (c *comparison) prepare(ctx context.Context) (err error) {
	for _, side := range []struct {
		of      *inspect.Reader
		layouts *keys.Layouts
		leases  *map[int64]int64
	}{{c.old, &c.layoutsOld, &c.leasesOld}, {c.new, &c.layoutsNew, &c.leasesNew}} {
		if *side.layouts, err = side.of.Layouts(ctx); err != nil {
			return err
		}
		if *side.leases, err = side.of.Snapshot().Leases(ctx); err != nil {
			return err
		}
	}
	return nil
}

// differing returns the keys whose values or leases differ, sorted. They alias the mapped files.
func (c *comparison) differing(ctx context.Context) (found [][]byte, err error) {
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	for rec, err := range c.old.Snapshot().Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		other, err := c.new.Snapshot().Get(ctx, rec.Key)
		if err != nil {
			return nil, err
		}
		if other != nil && bytes.Equal(rec.Value, other.Value) && !c.leaseDiffers(rec, other) {
			continue
		}
		sides := []*inspect.Reader{c.old}
		if other != nil {
			sides = append(sides, c.new)
		}
		if found, err = c.take(ctx, found, rec.Key, sides...); err != nil {
			return nil, err
		}
	}
	for rec, err := range c.new.Snapshot().Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		other, err := c.old.Snapshot().Get(ctx, rec.Key)
		if err != nil {
			return nil, err
		}
		if other != nil {
			continue
		}
		if found, err = c.take(ctx, found, rec.Key, c.new); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, bytes.Compare)
	return found, nil
}

// take adds a key that differs to found, where it is asked for and the readers of the sides that have it see it.
func (c *comparison) take(ctx context.Context, found [][]byte, key []byte, sides ...*inspect.Reader) ([][]byte, error) {
	for _, s := range sides {
		if sees, err := s.Sees(ctx, key); !sees {
			return found, err
		}
	}
	if !c.wants(key) {
		return found, nil
	}
	return append(found, key), nil
}

// place takes a key apart as the new snapshot's keys are laid out, or else the old one's. It is empty where the key is no object's.
func (c *comparison) place(key []byte) keys.Key {
	place, _, err := c.layoutsNew.Parse(key)
	if err != nil {
		place, _, err = c.layoutsOld.Parse(key)
	}
	if err != nil {
		return keys.Key{}
	}
	return place
}

func (c *comparison) wants(key []byte) bool {
	if c.options.Want == nil {
		return true
	}
	place := c.place(key)
	return place.Resource.Resource != "" && c.options.Want(place)
}

// look compares what the snapshots have under a key; nil where its labels are not those asked for.
func (c *comparison) look(ctx context.Context, key []byte) (*Object, error) {
	place := c.place(key)
	out := &Object{Subject: NewSubject(key, place)}
	old, err := c.old.Snapshot().Get(ctx, key)
	if err != nil {
		return nil, err
	}
	new, err := c.new.Snapshot().Get(ctx, key)
	if err != nil {
		return nil, err
	}
	switch {
	case old == nil:
		out.Op = Added
	case new == nil:
		out.Op = Removed
	default:
		out.Op = Changed
	}
	out.Old, out.New = versionOf(old), versionOf(new)
	if out.Noise = !c.options.All && isNoise(key, place); out.Noise && c.options.Labels == nil {
		return out, nil
	}
	return c.compare(ctx, out, old, new)
}

func versionOf(rec *snapshot.Record) *Version {
	if rec == nil {
		return nil
	}
	v := &Version{Revision: rec.ModRevision, Bytes: len(rec.Value)}
	if rec.Lease != 0 {
		v.Lease = leaseID(rec.Lease)
	}
	return v
}

func (c *comparison) compare(ctx context.Context, out *Object, old, new *snapshot.Record) (*Object, error) {
	a, err := c.read(ctx, c.old, old, out.Old)
	if err != nil {
		return nil, err
	}
	b, err := c.read(ctx, c.new, new, out.New)
	if err != nil {
		return nil, err
	}
	if s := c.options.Labels; s != nil && !s.Matches(labels.Set(a.Object().GetLabels())) && !s.Matches(labels.Set(b.Object().GetLabels())) {
		return nil, nil
	}
	for _, note := range []string{a.Note, b.Note} {
		if note != "" && !slices.Contains(out.Notes, note) {
			out.Notes = append(out.Notes, note)
		}
	}
	if out.Op != Changed || out.Noise {
		return out, nil
	}
	if out.Old.UID != "" && out.New.UID != "" && out.Old.UID != out.New.UID {
		out.Op = Recreated
	}
	diff := a.Diff
	if c.options.CountOnly {
		diff = a.diff
	}
	out.Changes, out.Folded = diff(b, c.options.All)
	if len(out.Changes)+out.Folded == 0 && !bytes.Equal(old.Value, new.Value) {
		out.Notes = append(out.Notes, "the same, but stored otherwise")
	}
	switch differs := c.leaseDiffers(old, new); {
	case differs && c.options.All:
		out.Changes = append(out.Changes, c.leaseChange(old, new))
	case differs:
		out.Folded++
	}
	out.Noise = len(out.Changes) == 0 && !c.options.All
	if c.options.CountOnly {
		out.Changes = nil // with secrets in them
	}
	return out, nil
}

// read reads a record of a side and fills in its version; of none it is the zero Value.
func (c *comparison) read(ctx context.Context, side *inspect.Reader, rec *snapshot.Record, version *Version) (Value, error) {
	if rec == nil {
		return Value{}, nil
	}
	e, err := side.Entry(ctx, rec)
	if err != nil {
		return Value{}, err
	}
	v := Read(e, c.options.ShowSecrets)
	version.APIVersion, version.Kind = v.Object().GetAPIVersion(), v.Object().GetKind()
	version.UID = string(v.Object().GetUID())
	return v, nil
}
