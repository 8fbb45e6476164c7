package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Object is a stored object as JSON content, at its stored version.
type Object struct {
	*Entry
	Type   *Type
	Parsed keys.Key // the parts of Entry.Key

	Content map[string]any // with metadata.resourceVersion as a server sets it; nil if Err is set
	Partial bool           // the kind is unknown to this build: Content is apiVersion, kind and metadata
	Err     error          // why the value cannot be decrypted or decoded
}

// Selection selects objects of a type.
type Selection struct {
	Namespace string   // "" for all
	Names     []string // nil for all
	Cluster   string   // a kcp logical cluster; "" for all
}

// Objects yields the objects of a type in the order of their keys, as a server lists them. Only the
// keys are kept in memory. An unreadable object is yielded with its Err.
func (r *Reader) Objects(ctx context.Context, t *Type, in Selection) iter.Seq2[*Object, error] {
	return stream.Of(func(yield func(*Object) error) error {
		return stream.Each(r.Entries(ctx, t, in), func(e *Entry) error { return yield(NewObject(t, e)) })
	})
}

// Entries yields the entries of Objects.
func (r *Reader) Entries(ctx context.Context, t *Type, in Selection) iter.Seq2[*Entry, error] {
	if r.at != nil {
		return entriesAt(ctx, r, t, in)
	}
	return stream.Of(func(yield func(*Entry) error) error {
		found, err := keysOf(ctx, r, t, in)
		for _, key := range found {
			var e *Entry
			if e, err = r.Get(ctx, key); err == nil && e != nil {
				err = yield(e)
			}
			if err != nil {
				break
			}
		}
		return err
	})
}

// entriesAt yields the entries at a revision. The records are kept, since GetAt reads all writes
// since the compaction to find the record of one key.
func entriesAt(ctx context.Context, r *Reader, t *Type, in Selection) iter.Seq2[*Entry, error] {
	return stream.Of(func(yield func(*Entry) error) error {
		found := map[string]snapshot.Record{}
		err := eachOf(ctx, r, t, in, func(rec *snapshot.Record) { found[string(rec.Key)] = *rec })
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			rec := found[key]
			e, err := r.Entry(ctx, &rec)
			if err == nil {
				err = yield(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func keysOf(ctx context.Context, r *Reader, t *Type, in Selection) (found [][]byte, err error) {
	if err := eachOf(ctx, r, t, in, func(rec *snapshot.Record) { found = append(found, rec.Key) }); err != nil {
		return nil, err
	}
	slices.SortFunc(found, bytes.Compare)
	return slices.CompactFunc(found, bytes.Equal), nil // two storages of a file may share folders
}

func eachOf(ctx context.Context, r *Reader, t *Type, in Selection, fn func(*snapshot.Record)) error {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return err
	}
	for _, dir := range layouts.Dirs(t.Resource) {
		for rec, err := range liveOf(ctx, r, dir, in.Names) {
			if err != nil {
				return err
			}
			if key, _, err := layouts.Parse(rec.Key); err == nil && key.Resource == t.Resource && in.Holds(key) {
				fn(rec)
			}
		}
	}
	return nil
}

// Holds reports whether a selection includes the object of a key.
func (in Selection) Holds(key keys.Key) bool {
	return (in.Namespace == "" || key.Namespace == in.Namespace) && (in.Cluster == "" || key.Cluster == in.Cluster) &&
		(in.Names == nil || slices.Contains(in.Names, key.Name))
}

// Undecoded returns an object of the given type without Content. The key must parse.
func Undecoded(t *Type, e *Entry) *Object {
	o := &Object{Entry: e, Type: t}
	o.Parsed, _ = e.ParseKey()
	return o
}

// nameClaims adds apiVersion and kind to the claims of a StatefulSet. Protobuf omits both fields; a
// server adds them.
func nameClaims(t *Type, content map[string]any) {
	if !hasClaims(t) {
		return
	}
	spec, _ := content["spec"].(map[string]any)
	claims, _ := spec["volumeClaimTemplates"].([]any)
	for _, claim := range claims {
		if claim, is := claim.(map[string]any); is {
			claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
		}
	}
}

func hasClaims(t *Type) bool { return t.Name() == "statefulsets.apps" }

// Visit shows a visitor the content of NewObject, without metadata.managedFields. It returns false,
// perhaps after a part of the content, if NewObject must decide.
func (o *Object) Visit(to native.Visitor) bool {
	v, is := o.Protobuf()
	if !is || o.Type.CRD != nil || hasClaims(o.Type) {
		return false
	}
	version := ""
	if o.ModRevision > 0 {
		version = strconv.FormatInt(o.ModRevision, 10)
	}
	return native.Visit(v, version, to)
}

// Protobuf returns the parsed value if the value is protobuf and of the kind of its key.
func (o *Object) Protobuf() (v encoding.Value, is bool) {
	v, err := o.ParseValue()
	return v, err == nil && v.Format == encoding.FormatProtobuf && checkKind(o.Parsed, v.GVK) == nil
}

// NewObject decodes an entry of the given type. The key must parse.
func NewObject(t *Type, e *Entry) *Object { return newObject(t, e, native.DecodeParsed) }

// NewUnmanaged is NewObject, but Content may lack metadata.managedFields: that takes less time.
func NewUnmanaged(t *Type, e *Entry) *Object { return newObject(t, e, native.DecodeUnmanaged) }

func newObject(t *Type, e *Entry, decode func(encoding.Value) (map[string]any, error)) *Object {
	o := Undecoded(t, e)
	v, err := e.ParseValue()
	if o.Err = err; err != nil {
		return o
	}
	o.Content, o.Err = decode(v)
	nameClaims(t, o.Content)
	if errors.Is(o.Err, native.ErrUnknownKind) {
		o.Partial = true
		o.Content, o.Err = native.Metadata(e.Value)
	}
	if o.Err == nil {
		o.Err = checkDecoded(o.Parsed, v)
	}
	if o.Err == nil && t.CRD != nil && v.GVK.Kind != t.CRD.GroupKind().Kind {
		o.Err = fmt.Errorf("a %s, under the key of a %s of %s", v.GVK.Kind, t.CRD.GroupKind().Kind, t.Resource.Group)
	}
	if o.Err != nil {
		o.Content = nil
		return o
	}
	meta, isMap := o.Content["metadata"].(map[string]any)
	if !isMap {
		meta = map[string]any{}
		o.Content["metadata"] = meta
	}
	if e.ModRevision > 0 {
		meta["resourceVersion"] = strconv.FormatInt(e.ModRevision, 10)
	}
	return o
}

// CheckServed returns native.ErrUnknownKind for a partial object, and for an object of a kind that
// is or was built in, at a version that API servers of native.LinkedRelease do not decode.
func (o *Object) CheckServed() error {
	v, err := o.ParseValue()
	if err != nil {
		return nil
	}
	_, last := native.Releases(v.GVK)
	if o.Partial || o.Type.Builtin || last > 0 && o.Type.CRD == nil {
		return native.CheckServed(v.GVK)
	}
	return nil
}

// AsServed converts a CustomResourceDefinition to v1. Servers store v1beta1, but no server serves
// v1beta1.
func (o *Object) AsServed() {
	if o.Content == nil || o.Type.Resource != keys.DefinitionType() {
		return
	}
	crd, err := schema.ParseCRD(o.Value)
	if err != nil {
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd.Object())
	if err != nil {
		return
	}
	content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", o.Type.Kind
	if meta, isMap := content["metadata"].(map[string]any); isMap {
		meta["resourceVersion"] = strconv.FormatInt(o.ModRevision, 10)
	}
	o.Content = content
}

// Unparsed counts the live keys in the folders of a type that no layout parses and Objects omits. A
// selection limits the count to keys with a segment equal to its namespace and its cluster.
func Unparsed(ctx context.Context, r *Reader, t *Type, in Selection) (n int, err error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return 0, err
	}
	for _, dir := range layouts.Dirs(t.Resource) {
		has := func(key []byte, name string) bool {
			return name == "" || bytes.Contains(key[len(dir)-1:], []byte("/"+name+"/"))
		}
		for rec, err := range liveOf(ctx, r, dir, nil) {
			if err != nil {
				return n, err
			}
			if _, _, err := layouts.Parse(rec.Key); err != nil && has(rec.Key, in.Namespace) &&
				has(rec.Key, in.Cluster) {
				n++
			}
		}
	}
	return n, nil
}

// ErrCompactedAway is the Err of a deleted object whose last value was removed by a compaction.
var ErrCompactedAway = errors.New("deleted, and a compaction has removed its last value")

// Deletion is a key that was deleted and not created again.
type Deletion struct {
	Key      []byte
	Revision int64  // of the deletion; 0 if unknown: only free pages have the key
	Last     *Entry // the last value; nil if a compaction removed the value
	FreePage bool   // see snapshot.Deletion
}

// Deleted yields the keys that begin with prefix and are deleted at the last revision of the
// snapshot, in the order of the deletions, as far back as the snapshot keeps them. See
// snapshot.Deleted.
func (r *Reader) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return stream.Of(func(yield func(*Deletion) error) error {
		return stream.Each(deleted(ctx, r, prefix), func(d *snapshot.Deletion) (err error) {
			out := &Deletion{Key: d.Key, Revision: d.Revision.Main, FreePage: d.FreePage}
			if d.Last != nil {
				if out.Last, err = r.Entry(ctx, d.Last); err != nil {
					return err
				}
			}
			return yield(out)
		})
	})
}

func deleted(ctx context.Context, r *Reader, prefix []byte) iter.Seq2[*snapshot.Deletion, error] {
	return visible(ctx, r, r.snapshot.Deleted(ctx, prefix), func(d *snapshot.Deletion) []byte { return d.Key })
}

// DeletedObject is an object at its state before the deletion.
type DeletedObject struct {
	*Object
	Revision int64 // of the deletion; 0 if unknown
	FreePage bool  // see Deletion
}

// DeletedObjects yields the deleted objects of a type: see Deleted. An object that is unreadable,
// or has no last value, is yielded with its Err.
func (r *Reader) DeletedObjects(ctx context.Context, t *Type, in Selection) iter.Seq2[*DeletedObject, error] {
	return stream.Of(func(yield func(*DeletedObject) error) error {
		layouts, err := r.Layouts(ctx)
		if err != nil {
			return err
		}
		for _, dir := range layouts.Dirs(t.Resource) {
			err := stream.Each(r.Deleted(ctx, dir), func(d *Deletion) error {
				key, _, err := layouts.Parse(d.Key)
				if err != nil || key.Resource != t.Resource || !in.Holds(key) {
					return nil
				}
				o := &Object{Entry: &Entry{Key: d.Key}, Type: t, Parsed: key, Err: ErrCompactedAway}
				if d.Last != nil {
					o = NewObject(t, d.Last)
				}
				return yield(&DeletedObject{o, d.Revision, d.FreePage})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
