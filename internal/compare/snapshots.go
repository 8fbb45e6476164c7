// Package compare compares two snapshots of a cluster, object by object and field by field, and
// returns the history of one key or of all keys, over the revisions in the snapshots.
//
// Items of a list are matched by name, if all items have unique names: uid, mountPath, name (with
// kind and namespace), type, containerPort and protocol, and others (see itemKeys). Other lists are
// matched by their longest common subsequence, and the items between by position.
//
// Invariants:
//
//   - Every key whose value or lease differs is found, by the stored bytes. Only these are decoded.
//     Memory is a few bytes a key that differs.
//   - Each stored record of a key is in its history, once, in the order of writing. Gaps are named,
//     not guessed: updates by the version numbers, revisions by the compactions.
//   - A timeline has each record of its snapshots once, by revision, and names the revisions that
//     no snapshot keeps complete.
//   - No difference is dropped: folded noise is counted.
//   - A value that cannot be decrypted or decoded is compared by its bytes, with a note.
//   - Values that must be hidden (see internal/redact) are compared, and shown redacted.
//   - The changes of an object, applied to the old value, give the new one. Equal values have none.
//   - A change of a redacted value shows only the redacted form (its length), never a digest: a
//     reader could guess short values from digests.
//   - Depth and work are bounded. Below maxDepth, and for long lists without names, the comparison
//     is coarser, never wrong.
//   - The time of a revision is a bracket, from objects with a time. Times are monotonic, and a
//     minority of wrong clocks does not move them. A clock keeps a fixed number of times.
package compare

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Options choose objects, and their presentation.
type Options struct {
	Want        func(keys.Key) bool // chooses objects; nil for all keys, also outside objects
	Labels      labels.Selector     // objects with these labels in either snapshot; nil for all
	All         bool                // nothing is noise
	ShowSecrets bool
	CountOnly   bool   // Changes stays empty, which is faster
	Clock       *Clock // for a history: a clock with the times of the snapshots; nil for no times
}

// Op is the kind of a difference between objects or between fields.
type Op string

// The kinds of differences.
const (
	Added     Op = "added"
	Removed   Op = "removed"
	Changed   Op = "changed"
	Recreated Op = "recreated" // an object, deleted and created again under the same name: the uid differs
	Reordered Op = "reordered" // a list whose remaining items are in another order
)

// Object is a key with a changed value.
type Object struct {
	Op Op `json:"op"`
	Subject
	Old     *Version `json:"old,omitempty"`
	New     *Version `json:"new,omitempty"`
	Changes []Change `json:"changes,omitempty"`
	Folded  int      `json:"folded,omitempty"` // number of noise changes
	// Noise is set if all changes are noise. Then Changes is empty, and Events were not read.
	Noise bool `json:"-"`
	// Notes tell why values were compared by bytes, or that only the encoding of an object differs.
	Notes []string `json:"notes,omitempty"`
}

// Subject is a key and its object. For a key outside objects, only Key is set.
type Subject struct {
	Key       string `json:"key"`
	Resource  string `json:"resource,omitempty"`
	Cluster   string `json:"cluster,omitempty"` // kcp's
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// NewSubject returns the subject of a parsed key.
func NewSubject(key []byte, k keys.Key) Subject {
	s := Subject{Key: string(key), Cluster: k.Cluster, Namespace: k.Namespace, Name: k.Name}
	if k.Resource.Resource != "" {
		s.Resource = k.Resource.String()
	}
	return s
}

// String returns the name of the object, as in "deployments.apps cluster|shop/web", or the key.
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

// Version is an object in one of the snapshots.
type Version struct {
	Revision   int64  `json:"revision"`
	Bytes      int    `json:"bytes"`           // as stored
	Lease      string `json:"lease,omitempty"` // in hexadecimal
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	UID        string `json:"uid,omitempty"`
}

// compactKey holds the last compaction (k8s.io/apiserver pkg/storage/etcd3/compact.go).
const compactKey = "compact_rev_key"

// isNoise reports whether all changes of a key are noise: Events, compactions, and the records of
// endpoint reconcilers, which are renewed every few seconds.
func isNoise(key []byte, parsed keys.Key) bool {
	switch parsed.Resource.Resource {
	case "events":
		return parsed.Resource.Group == "" || parsed.Resource.Group == "events.k8s.io"
	case "masterleases", "peerserverleases":
		return parsed.Resource.Group == ""
	}
	return string(key) == compactKey
}

// Snapshots yields each key that differs, in order. An error ends the sequence. Values are compared
// by their stored bytes; differing keys are kept, 24 bytes each, and then read one by one.
func Snapshots(ctx context.Context, old, new *inspect.Reader, o Options) iter.Seq2[*Object, error] {
	return stream.Of(func(yield func(*Object) error) error {
		c := comparison{sides: [2]side{{Reader: old}, {Reader: new}}, options: o, hide: o.hiding(ctx, old, new)}
		found, err := c.differing(ctx)
		for i, key := range found {
			if i%256 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			object, err := c.compareKey(ctx, key)
			if err == nil && object != nil {
				err = yield(object)
			}
			if err != nil {
				return err
			}
		}
		return err
	})
}

type side struct {
	*inspect.Reader
	layouts keys.Layouts
	leases  map[int64]int64 // seconds to live by ID
}

type comparison struct {
	sides   [2]side
	options Options
	hide    func() (*redact.Shared, error)
}

// differing returns the keys whose values or leases differ, sorted. They alias the mapped files.
func (c *comparison) differing(ctx context.Context) (found [][]byte, err error) {
	for i := range c.sides {
		s := &c.sides[i]
		if s.layouts, err = s.Layouts(ctx); err != nil {
			return nil, err
		}
		if s.leases, err = s.Snapshot().Leases(ctx); err != nil {
			return nil, err
		}
	}
	for i, s := range c.sides {
		for rec, err := range s.Snapshot().Live(ctx, nil) {
			if err != nil {
				return nil, err
			}
			other, err := c.sides[1-i].Snapshot().Get(ctx, rec.Key)
			if err != nil {
				return nil, err
			}
			holders := []side{s}
			if other != nil {
				if i == 1 || c.equal(rec, other) {
					continue
				}
				holders = c.sides[:]
			}
			if wanted, err := c.wants(ctx, rec.Key, holders); err != nil {
				return nil, err
			} else if wanted {
				found = append(found, rec.Key)
			}
		}
	}
	slices.SortFunc(found, bytes.Compare)
	return found, nil
}

// equal reports whether a key has the same value and lease in both snapshots.
func (c *comparison) equal(old, new *snapshot.Record) bool {
	return bytes.Equal(old.Value, new.Value) && !c.leaseDiffers(old, new)
}

// wants reports whether a key is chosen and visible to the readers of all its holders.
func (c *comparison) wants(ctx context.Context, key []byte, holders []side) (bool, error) {
	for _, s := range holders {
		if sees, err := s.Sees(ctx, key); !sees {
			return false, err
		}
	}
	if c.options.Want == nil {
		return true, nil
	}
	k := c.parse(key)
	return k.Resource.Resource != "" && c.options.Want(k), nil
}

// parse parses a key by the layouts of the new snapshot, or else of the old one.
func (c *comparison) parse(key []byte) keys.Key {
	for _, s := range slices.Backward(c.sides[:]) {
		if k, _, err := s.layouts.Parse(key); err == nil {
			return k
		}
	}
	return keys.Key{}
}

// compareKey compares both records of a key. It returns nil if the labels do not match.
func (c *comparison) compareKey(ctx context.Context, key []byte) (*Object, error) {
	var records [2]*snapshot.Record
	for i, s := range c.sides {
		var err error
		if records[i], err = s.Snapshot().Get(ctx, key); err != nil {
			return nil, err
		}
	}
	return c.object(ctx, key, records)
}

// object compares two records of a key, nil for a missing record.
func (c *comparison) object(ctx context.Context, key []byte, records [2]*snapshot.Record) (*Object, error) {
	parsed := c.parse(key)
	out := &Object{Subject: NewSubject(key, parsed), Noise: !c.options.All && isNoise(key, parsed)}
	var values [2]value
	for i, version := range []**Version{&out.Old, &out.New} {
		rec := records[i]
		if rec == nil {
			continue
		}
		v := &Version{Revision: rec.ModRevision, Bytes: len(rec.Value), Lease: leaseID(rec.Lease)}
		*version = v
		if out.Noise && c.options.Labels == nil {
			continue
		}
		hide, err := c.hide()
		if err != nil {
			return nil, err
		}
		if values[i], err = read(ctx, c.sides[i].Reader, rec, hide); err != nil {
			return nil, err
		}
		o := values[i].object()
		v.APIVersion, v.Kind, v.UID = o.GetAPIVersion(), o.GetKind(), string(o.GetUID())
	}
	out.Op = opOf(out.Old != nil, out.New != nil)
	fits := func(v value) bool { return c.options.Labels.Matches(labels.Set(v.object().GetLabels())) }
	if c.options.Labels != nil && !slices.ContainsFunc(values[:], fits) {
		return nil, nil
	}
	for _, v := range values {
		if v.note != "" && !slices.Contains(out.Notes, v.note) {
			out.Notes = append(out.Notes, v.note)
		}
	}
	if out.Op == Changed && !out.Noise {
		c.diff(out, records, values)
	}
	return out, nil
}

func (c *comparison) diff(out *Object, records [2]*snapshot.Record, values [2]value) {
	if out.Old.UID != "" && out.New.UID != "" && out.Old.UID != out.New.UID {
		out.Op = Recreated
	}
	old, new := records[0], records[1]
	out.Changes, out.Folded = values[0].diff(values[1], c.options.All, c.options.CountOnly)
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
		out.Changes = nil // its secrets are not redacted
	}
}

// opOf returns the kind of a difference by the sides that have the key.
func opOf(old, new bool) Op {
	switch {
	case !old:
		return Added
	case !new:
		return Removed
	}
	return Changed
}

// Count holds the differing objects of a resource.
type Count struct {
	Resource  string `json:"resource"` // "" for keys outside objects
	Added     int    `json:"added"`
	Removed   int    `json:"removed"`
	Changed   int    `json:"changed"`
	Recreated int    `json:"recreated"`
	Folded    int    `json:"folded"` // objects with only noise
}

// Found returns the number of differing objects, without noise.
func (c Count) Found() int { return c.Added + c.Removed + c.Changed + c.Recreated }

// Summary counts objects by resource. The zero value is empty.
type Summary struct {
	counts map[string]*Count
	total  Count
}

// Add counts an object.
func (s *Summary) Add(o *Object) {
	if s.counts == nil {
		s.counts = map[string]*Count{}
	}
	if s.counts[o.Resource] == nil {
		s.counts[o.Resource] = &Count{Resource: o.Resource}
	}
	for _, c := range []*Count{s.counts[o.Resource], &s.total} {
		switch {
		case o.Noise:
			c.Folded++
		case o.Op == Added:
			c.Added++
		case o.Op == Removed:
			c.Removed++
		case o.Op == Recreated:
			c.Recreated++
		default:
			c.Changed++
		}
	}
}

// Rows returns the counts, sorted by resource.
func (s *Summary) Rows() []Count {
	rows := []Count{}
	for _, resource := range slices.Sorted(maps.Keys(s.counts)) {
		rows = append(rows, *s.counts[resource])
	}
	return rows
}

// Total returns the sum of all counts.
func (s *Summary) Total() Count { return s.total }
