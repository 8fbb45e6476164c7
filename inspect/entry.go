package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Entry is the latest value of a key. Its bytes are valid until the snapshot is closed and must not
// be changed. Key and value are parsed and checked once, in the first call that needs that: calls
// of one Entry must not run at once.
type Entry struct {
	Key           []byte
	Value         []byte // decrypted; as stored where it is undecryptable
	Stored        []byte
	ModRevision   int64 // 0 for a key that is only staged
	Lease         int64
	Stale         bool  // a server's next write would encrypt it by another provider or key
	Undecryptable error // why an encrypted value could not be decrypted; wraps encoding.ErrEncrypted

	layouts *keys.Layouts // of the reader; nil where it did not know them yet
	parsed  bool          // key is that of Key
	key     parsedKey
	value   *parsedValue
	check   *error // what Check returns
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

// errNoLayouts is returned for the key of an entry whose reader did not know the layouts.
var errNoLayouts = errors.New("the layouts of the snapshot were not read yet")

// ParseKey returns the parts of the key. An error wraps keys.ErrUnknownKey. The reader must know
// the layouts by then, as after Live, Raw and Objects: before Get, call Layouts.
func (e *Entry) ParseKey() (keys.Key, error) {
	p := e.parsedKey()
	return p.Key, p.err
}

// Layout is the layout of the storage that the key lies in; nil where it lies in none.
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

// ParseValue returns the parts of the value: see encoding.Parse. An undecryptable value returns
// Undecryptable.
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

// Entry returns the decrypted entry of a record of r's snapshot.
func (r *Reader) Entry(ctx context.Context, rec *snapshot.Record) (*Entry, error) {
	e := r.raw(rec)
	return &e, r.Decrypt(ctx, &e)
}

func (r *Reader) raw(rec *snapshot.Record) Entry {
	return Entry{Key: rec.Key, Value: rec.Value, Stored: rec.Value, ModRevision: rec.ModRevision, Lease: rec.Lease, layouts: r.layouts}
}

// Decrypt sets Value, Stale and Undecryptable of an entry from Key and Stored. An error is about
// reading the snapshot, or a KMS plugin that stopped to answer.
func (r *Reader) Decrypt(ctx context.Context, e *Entry) error {
	e.Value, e.Stale, e.Undecryptable, e.value, e.check = e.Stored, false, nil, nil, nil
	if r.decrypter == nil {
		e.use(r.layouts)
		if encoding.Detect(e.Stored) == encoding.FormatEncrypted {
			_, e.Undecryptable = encoding.Parse(e.Stored)
			if !errors.Is(e.Undecryptable, encoding.ErrKMSv1) { // which no configuration decrypts
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
	case err != nil: // a KMS plugin that is gone is gone for all other values too
		return &snapshot.FileError{Path: r.snapshot.Path(), Err: fmt.Errorf("key %q: %w", e.Key, err)}
	}
	e.Value, e.Stale = plain, stale
	return nil
}
