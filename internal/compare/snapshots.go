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

// Options choose objects, and how they are shown.
type Options struct {
	Want        func(keys.Key) bool // chooses objects; nil for all keys, also of no object
	Labels      labels.Selector     // those with these labels, in one of the snapshots; nil for all
	All         bool                // nothing is noise
	ShowSecrets bool
	CountOnly   bool   // Changes are left empty, which is faster
	Clock       *Clock // for a history: it has read the snapshots; nil for no times
}

// Op is the kind of a difference.
type Op string

// The kinds of differences.
const (
	Added     Op = "added"
	Removed   Op = "removed"
	Changed   Op = "changed"
	Recreated Op = "recreated" // deleted and created again under the same name: the uid is another
)

// Object is a key whose value differs.
type Object struct {
	Op Op `json:"op"`
	Subject
	Old     *Version        `json:"old,omitempty"`
	New     *Version        `json:"new,omitempty"`
	Changes []differ.Change `json:"changes,omitempty"`
	Folded  int             `json:"folded,omitempty"` // changes that are noise
	// Noise is set if all changes are noise. Then Changes is empty, and an Event was not read.
	Noise bool `json:"-"`
	// Notes tell why values were compared by bytes, or that an object is only stored otherwise.
	Notes []string `json:"notes,omitempty"`
}

// Subject is a key and the object it names. Only Key is set if it names none.
type Subject struct {
	Key       string `json:"key"`
	Resource  string `json:"resource,omitempty"`
	Cluster   string `json:"cluster,omitempty"` // kcp's
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// NewSubject returns the subject of a key that was parsed.
func NewSubject(key []byte, k keys.Key) Subject {
	s := Subject{Key: string(key), Cluster: k.Cluster, Namespace: k.Namespace, Name: k.Name}
	if k.Resource.Resource != "" {
		s.Resource = k.Resource.String()
	}
	return s
}

// String names the object, as in "deployments.apps cluster|shop/web"; else the key.
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
// by their stored bytes; the keys that differ are kept, 24 bytes each, and then read one by one.
func Snapshots(ctx context.Context, old, new *inspect.Reader, o Options) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		c := comparison{old: side{Reader: old}, new: side{Reader: new}, options: o}
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

// side is one of the snapshots.
type side struct {
	*inspect.Reader
	layouts keys.Layouts
	leases  map[int64]int64 // seconds to live by id
}

type comparison struct {
	old, new side
	options  Options
}

// differing returns the keys whose values or leases differ, sorted. They alias the mapped files.
func (c *comparison) differing(ctx context.Context) (found [][]byte, err error) {
	for _, s := range []*side{&c.old, &c.new} {
		if s.layouts, err = s.Layouts(ctx); err != nil {
			return nil, err
		}
		if s.leases, err = s.Snapshot().Leases(ctx); err != nil {
			return nil, err
		}
	}
	for _, sides := range [][]side{{c.old, c.new}, {c.new, c.old}} {
		second := sides[0].Reader == c.new.Reader
		for rec, err := range sides[0].Snapshot().Live(ctx, nil) {
			if err != nil {
				return nil, err
			}
			other, err := sides[1].Snapshot().Get(ctx, rec.Key)
			if err != nil {
				return nil, err
			}
			holders := sides[:1]
			if other != nil {
				if second || bytes.Equal(rec.Value, other.Value) && !c.leaseDiffers(rec, other) {
					continue
				}
				holders = sides
			}
			if found, err = c.take(ctx, found, rec.Key, holders); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(found, bytes.Compare)
	return found, nil
}

// take adds a key to found if it is asked for and the readers of all its holders see it.
func (c *comparison) take(ctx context.Context, found [][]byte, key []byte, holders []side) ([][]byte, error) {
	for _, s := range holders {
		if sees, err := s.Sees(ctx, key); !sees {
			return found, err
		}
	}
	if want := c.options.Want; want != nil {
		if k := c.parse(key); k.Resource.Resource == "" || !want(k) {
			return found, nil
		}
	}
	return append(found, key), nil
}

// parse parses a key by the layouts of the new snapshot, else of the old one.
func (c *comparison) parse(key []byte) keys.Key {
	for _, s := range []side{c.new, c.old} {
		if k, _, err := s.layouts.Parse(key); err == nil {
			return k
		}
	}
	return keys.Key{}
}

// look compares the records of a key. It returns nil if the labels do not fit.
func (c *comparison) look(ctx context.Context, key []byte) (*Object, error) {
	parsed := c.parse(key)
	out := &Object{Subject: NewSubject(key, parsed)}
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
	if out.Noise = !c.options.All && isNoise(key, parsed); out.Noise && c.options.Labels == nil {
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
	a, err := c.read(ctx, c.old.Reader, old, out.Old)
	if err != nil {
		return nil, err
	}
	b, err := c.read(ctx, c.new.Reader, new, out.New)
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

// read reads a record and fills in its version. A nil record has the zero Value.
func (c *comparison) read(ctx context.Context, r *inspect.Reader, rec *snapshot.Record, version *Version) (Value, error) {
	if rec == nil {
		return Value{}, nil
	}
	e, err := r.Entry(ctx, rec)
	if err != nil {
		return Value{}, err
	}
	v := Read(e, c.options.ShowSecrets)
	version.APIVersion, version.Kind = v.Object().GetAPIVersion(), v.Object().GetKind()
	version.UID = string(v.Object().GetUID())
	return v, nil
}
