package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Entry is the latest value of a key. Its bytes are valid until the snapshot is closed and must not
// be changed. The first call that needs the key or the value parses and checks them. Calls of one
// Entry must not run concurrently.
type Entry struct {
	Key           []byte
	Value         []byte // decrypted; as stored if undecryptable
	Stored        []byte
	ModRevision   int64 // 0 for a key that is only staged
	Lease         int64
	Stale         bool  // a server's next write would encrypt it by another provider or key
	Undecryptable error // why an encrypted value could not be decrypted; wraps encoding.ErrEncrypted

	layouts *keys.Layouts // of the reader; nil if the reader did not know the layouts yet
	parsed  bool          // key is that of Key
	key     parsedKey
	value   *parsedValue
	meta    *parsedMeta
	check   *error // result of Check
}

type parsedKey struct {
	keys.Key
	layout keys.Layout
	err    error
}

type parsedValue struct {
	encoding.Value
	err error
}

type parsedMeta struct {
	encoding.Meta
	err error
}

// errNoLayouts is returned by ParseKey if the reader of the entry does not know the layouts yet.
var errNoLayouts = errors.New("the layouts of the snapshot were not read yet")

// ParseKey returns the parts of the key. An error wraps keys.ErrUnknownKey. The reader must know
// the layouts, as after Live, Raw and Objects. Call Layouts before Get.
func (e *Entry) ParseKey() (keys.Key, error) {
	p := e.parsedKey()
	return p.Key, p.err
}

// Layout returns the layout of the storage with the key; nil for a key outside all storages.
func (e *Entry) Layout() keys.Layout { return e.parsedKey().layout }

func (e *Entry) use(layouts *keys.Layouts) {
	if e.layouts != layouts {
		e.layouts, e.parsed, e.check = layouts, false, nil
	}
}

func (e *Entry) parsedKey() *parsedKey {
	if e.layouts == nil {
		return &parsedKey{err: errNoLayouts}
	}
	if !e.parsed {
		k, layout, err := e.layouts.Parse(e.Key)
		e.key, e.parsed = parsedKey{k, layout, err}, true
	}
	return &e.key
}

// ParseValue returns the parts of the value: see encoding.Parse. For an undecryptable value the
// error is Undecryptable.
func (e *Entry) ParseValue() (encoding.Value, error) {
	if e.Undecryptable != nil {
		return encoding.Value{}, e.Undecryptable
	}
	if e.value == nil {
		v, err := encoding.Parse(e.Value)
		e.value = &parsedValue{v, err}
	}
	return e.value.Value, e.value.err
}

// Meta returns the metadata of the value: see encoding.ReadMeta.
func (e *Entry) Meta() (encoding.Meta, error) {
	if e.meta == nil {
		m, err := encoding.ReadMeta(e.Value)
		e.meta = &parsedMeta{m, err}
	}
	return e.meta.Meta, e.meta.err
}

// Entry returns the decrypted entry of a record of r's snapshot.
func (r *Reader) Entry(ctx context.Context, rec *snapshot.Record) (*Entry, error) {
	e := new(Entry)
	return e, r.Read(ctx, rec, e)
}

// Read sets e to the decrypted entry of a record of r's snapshot.
func (r *Reader) Read(ctx context.Context, rec *snapshot.Record, e *Entry) error {
	*e = raw(r, rec)
	return r.Decrypt(ctx, e)
}

func raw(r *Reader, rec *snapshot.Record) Entry {
	return Entry{Key: rec.Key, Value: rec.Value, Stored: rec.Value, ModRevision: rec.ModRevision, Lease: rec.Lease,
		layouts: r.layouts}
}

// Decrypt sets Value, Stale and Undecryptable of an entry from Key and Stored. An error is about
// reading the snapshot, or about a KMS plugin that does not answer.
func (r *Reader) Decrypt(ctx context.Context, e *Entry) error {
	e.Value, e.Stale, e.Undecryptable, e.value, e.meta, e.check = e.Stored, false, nil, nil, nil, nil
	if r.decrypter == nil {
		e.use(r.layouts)
		if encoding.Detect(e.Stored) == encoding.FormatEncrypted {
			_, e.Undecryptable = encoding.Parse(e.Stored)
			if !errors.Is(e.Undecryptable, encoding.ErrKMSv1) { // no configuration decrypts KMS v1
				e.Undecryptable = fmt.Errorf("%w, and no encryption configuration was given", e.Undecryptable)
			}
		}
		return nil
	}
	if _, err := r.Layouts(ctx); err != nil {
		return err
	}
	e.use(r.layouts)
	k, _ := e.ParseKey() // a server encrypts by resource; a key in no folder has none
	plain, stale, err := r.decrypter.Decrypt(ctx, k.Resource, e.Key, e.Stored)
	switch {
	case errors.Is(err, encoding.ErrEncrypted):
		e.Undecryptable = err
		return nil
	case err != nil: // a failed KMS plugin fails for all other values too
		return &snapshot.FileError{Path: r.snapshot.Path(), Err: fmt.Errorf("key %q: %w", e.Key, err)}
	}
	e.Value, e.Stale = plain, stale
	return nil
}

// errKind is returned for a value without apiVersion or kind.
var errKind = errors.New("apiVersion and kind are not those of an object")

// CheckValue returns why an API server cannot read a decrypted value under its key: the value is
// broken, of another kind than the key, or has a field of the wrong type. One such value makes
// every list of its kind fail. For a custom resource only the syntax is checked, not the schema.
// The error is native.ErrUnknownKind for protobuf of a kind unknown to this build, and never quotes
// the value.
func CheckValue(key keys.Key, value []byte) error {
	v, err := encoding.Parse(value)
	if err != nil {
		return err
	}
	return checkValue(key, v)
}

// Check is CheckValue for an entry. A key of no layout is an error too.
func (e *Entry) Check() error {
	if e.check == nil {
		err := e.checkOnce()
		e.check = &err
	}
	return *e.check
}

// CheckKind returns why a value is not of the kind of its key; nil for a key of no layout and for a
// value that is not an object.
func (e *Entry) CheckKind() error {
	key, err := e.ParseKey()
	v, err2 := e.ParseValue()
	if err != nil || err2 != nil || v.GVK.Kind == "" {
		return nil
	}
	return checkKind(key, v.GVK)
}

func (e *Entry) checkOnce() error {
	key, err := e.ParseKey()
	if err != nil {
		return err
	}
	v, err := e.ParseValue()
	if err != nil {
		return err
	}
	return checkValue(key, v)
}

func checkValue(key keys.Key, v encoding.Value) error {
	if v.GVK.Version == "" || v.GVK.Kind == "" {
		return fmt.Errorf("%s value: %w", v.Format, errKind)
	}
	if err := checkDecoded(key, v); err != nil || v.Format != encoding.FormatProtobuf {
		return err
	}
	return native.Check(v)
}

// checkDecoded checks a value that native.Decode accepts. native.Decode checks the fields of
// protobuf, but not of JSON.
func checkDecoded(key keys.Key, v encoding.Value) error {
	if err := checkKind(key, v.GVK); err != nil || key.IsCustom() || v.Format == encoding.FormatProtobuf {
		return err
	}
	return native.Check(v)
}

// checkKind compares the kind of a value with its key. For a built-in resource the kind must match,
// for a custom resource only the group. Other resources must not have a built-in kind.
func checkKind(key keys.Key, is gvr.GroupVersionKind) error {
	gr := key.Resource
	want, builtin := builtinKinds()[gr]
	of := "one of " + gr.String()
	switch {
	case keys.IsRecord(gr):
		return nil
	case key.IsCustom():
		if is.Group == gr.Group {
			return nil
		}
	case !builtin:
		if !isBuiltinKind(is.GroupKind()) {
			return nil
		}
	case is.Kind == want && servesKind(gr, is.Group):
		return nil
	default:
		if of = "a " + want; gr.Group != "" {
			of += " of " + gr.Group
		}
	}
	apiVersion, kind := is.ToAPIVersionAndKind()
	return fmt.Errorf("a %s %s, under the key of %s", apiVersion, kind, of)
}

// Misplaced describes how the name or namespace of an object differs from its key; "" for no
// difference. Records of API servers have names unlike their keys.
func Misplaced(key keys.Key, name, namespace string) string {
	switch {
	case key.Resource.Group == "" && !keys.IsBuiltin(key.Resource) || keys.IsRecord(key.Resource):
	case name != key.Name:
		return fmt.Sprintf("the object in it is named %q", name)
	case namespace != key.Namespace:
		return fmt.Sprintf("the object in it is in namespace %q", namespace)
	}
	return ""
}

func isBuiltinKind(is gvr.GroupKind) bool {
	for gr, kind := range builtinKinds() {
		if kind == is.Kind && servesKind(gr, is.Group) {
			return true
		}
	}
	return false
}

// servesKind reports whether objects of the resource were ever stored in the group. Many kinds
// began in extensions.
func servesKind(gr gvr.GroupResource, group string) bool {
	return group == gr.Group || group == "extensions" ||
		otherGroups()[gvr.GroupResource{Group: group, Resource: gr.Resource}] == gr
}

// builtinKinds maps the built-in resources to their kinds.
var builtinKinds = sync.OnceValue(func() map[gvr.GroupResource]string {
	kinds := map[gvr.GroupResource]string{}
	for _, t := range Builtins() {
		kinds[t.Resource] = t.Kind
	}
	return kinds
})

// Glance sets g from the bytes of the value. False means that Check or encoding.ReadMeta may fail,
// that the object is being deleted, or that only decoding can rule these out. APIVersion and Kind
// are set only for custom resources.
func (e *Entry) Glance(g *encoding.Glance) bool {
	key, err := e.ParseKey()
	if err != nil || e.Undecryptable != nil {
		return false
	}
	switch encoding.Detect(e.Value) {
	case encoding.FormatJSON:
		return key.IsCustom() && g.GlanceJSON(e.Value) && checkKind(key,
			gvr.FromAPIVersionAndKind(string(g.APIVersion), string(g.Kind))) == nil
	case encoding.FormatProtobuf:
		if key.IsCustom() || e.Check() != nil {
			return false
		}
		v, err := e.ParseValue()
		return err == nil && g.GlanceMessage(v.Raw)
	}
	return false
}
