package inspect

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Decrypter decrypts values that an API server encrypted at rest, as encryption.Transformers does.
type Decrypter interface {
	// Decrypt returns the plain value, or stored itself if stored is not encrypted. stale means
	// that a server's next write would encrypt the same object by another provider or key. An error
	// about the value wraps encoding.ErrEncrypted. Calls are concurrent.
	Decrypt(ctx context.Context, gr schema.GroupResource, key, stored []byte) (plain []byte, stale bool, err error)
}

// Reader reads the values of a snapshot, decrypted. It is safe for concurrent use once Layouts has
// returned.
type Reader struct {
	snapshot  *snapshot.Snapshot
	at        *int64 // a revision; nil for the last
	decrypter Decrypter
	named     []string      // storage prefixes
	layouts   *keys.Layouts // nil until the first use
	only      bool          // sees only the keys below named
	sifted    *sifted       // nil for none
	secrets   *secrets      // of the snapshot
}

// NewReader returns a reader of s. With a nil decrypter, encrypted values are undecryptable.
// prefixes are storage prefixes besides the detected prefixes.
func NewReader(s *snapshot.Snapshot, decrypter Decrypter, prefixes ...string) *Reader {
	s.Mark(keys.Telling) // for Layouts
	return &Reader{snapshot: s, decrypter: decrypter, named: slices.Clone(prefixes), secrets: &secrets{}}
}

// Snapshot returns the snapshot of r, at all revisions.
func (r *Reader) Snapshot() *snapshot.Snapshot { return r.snapshot }

// At returns a reader of the same snapshot at revision rev, with the storage prefixes of that time.
// Reading fails with snapshot.ErrCompacted or snapshot.ErrFuture if the file does not keep rev.
func (r *Reader) At(rev int64) *Reader {
	at := *r
	at.at, at.layouts, at.sifted = &rev, nil, nil
	return &at
}

// Below returns a reader of the same snapshot that sees only the keys of the given storages. A key
// belongs to the storage with the longest prefix. Without prefixes Below returns r.
func (r *Reader) Below(prefixes ...string) *Reader {
	if len(prefixes) == 0 {
		return r
	}
	below := *r
	below.named, below.only, below.layouts = slices.Clone(prefixes), true, nil
	below.sifted = nil
	return &below
}

// Sees reports whether the reader sees a key: see Below.
func (r *Reader) Sees(ctx context.Context, key []byte) (bool, error) {
	if !r.only {
		return true, nil
	}
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return false, err
	}
	_, ok := layouts.Of(key)
	return ok, nil
}

// Vacant lists the storage prefixes of Below without any record, including tombstones and
// superseded records.
func Vacant(ctx context.Context, r *Reader) ([]string, error) {
	if !r.only {
		return nil, nil
	}
	vacant := slices.Clone(r.named)
	for _, records := range []iter.Seq2[*snapshot.Record, error]{r.all(ctx, nil), r.snapshot.Records(ctx)} {
		for rec, err := range records {
			if err != nil || len(vacant) == 0 {
				return vacant, err
			}
			layouts, err := r.Layouts(ctx)
			if err != nil {
				return nil, err
			}
			if s, ok := layouts.Of(rec.Key); ok {
				vacant = slices.DeleteFunc(vacant, func(prefix string) bool { return prefix == s.Prefix })
			}
		}
	}
	return vacant, nil
}

// Live yields the latest value of each key that begins with prefix and is not deleted, in revision
// order.
func (r *Reader) Live(ctx context.Context, prefix []byte) iter.Seq2[*Entry, error] {
	return entries(ctx, r, prefix, func(rec *snapshot.Record) (*Entry, error) { return r.Entry(ctx, rec) })
}

// Raw is Live without decryption: Value is Stored until Decrypt is called. Raw is for callers that
// read a few types and must not decrypt Secrets.
func (r *Reader) Raw(ctx context.Context, prefix []byte) iter.Seq2[Entry, error] {
	return entries(ctx, r, prefix, func(rec *snapshot.Record) (Entry, error) { return raw(r, rec), nil })
}

func entries[T any](
	ctx context.Context, r *Reader, prefix []byte, of func(*snapshot.Record) (T, error),
) iter.Seq2[T, error] {
	return stream.Of(func(yield func(T) error) error {
		if _, err := r.Layouts(ctx); err != nil { // parse the keys
			return err
		}
		return stream.Each(r.live(ctx, prefix), func(rec *snapshot.Record) error {
			e, err := of(rec)
			if err != nil {
				return err
			}
			return yield(e)
		})
	})
}

// Get returns the latest value of key; nil for none.
func (r *Reader) Get(ctx context.Context, key []byte) (*Entry, error) {
	rec, err := r.get(ctx, key)
	if rec == nil || err != nil {
		return nil, err
	}
	return r.Entry(ctx, rec)
}

// Has reports whether key has a value, without decrypting the value.
func (r *Reader) Has(ctx context.Context, key []byte) (bool, error) {
	rec, err := r.get(ctx, key)
	return rec != nil, err
}

// get returns the record of a key that the reader sees; nil for none.
func (r *Reader) get(ctx context.Context, key []byte) (*snapshot.Record, error) {
	if sees, err := r.Sees(ctx, key); !sees {
		return nil, err
	}
	if r.at != nil {
		return r.snapshot.GetAt(ctx, key, *r.at)
	}
	if r.sifted != nil && r.sifted.byKey[string(key)] != nil {
		return r.sifted.byKey[string(key)], nil
	}
	return r.snapshot.Get(ctx, key)
}

func (r *Reader) live(ctx context.Context, prefix []byte) iter.Seq2[*snapshot.Record, error] {
	return visible(ctx, r, r.all(ctx, prefix), keyOf)
}

func (r *Reader) all(ctx context.Context, prefix []byte) iter.Seq2[*snapshot.Record, error] {
	if r.at != nil {
		return r.snapshot.LiveAt(ctx, prefix, *r.at)
	}
	return r.snapshot.Live(ctx, prefix)
}

// visit calls look with the records of live, on several goroutines at once, and yields the results
// appended by look in the order of live. r must know the layouts.
func visit[T any](
	ctx context.Context, r *Reader, look func(rec *snapshot.Record, found []T) ([]T, error),
) iter.Seq2[T, error] {
	if r.at == nil {
		return snapshot.Visit(ctx, r.snapshot, nil, func(rec *snapshot.Record, found []T) ([]T, error) {
			if sees, err := r.Sees(ctx, rec.Key); !sees {
				return found, err
			}
			return look(rec, found)
		})
	}
	return stream.Of(func(yield func(T) error) error {
		var found []T
		err := stream.Each(r.live(ctx, nil), func(rec *snapshot.Record) (err error) {
			found, err = look(rec, found)
			return err
		})
		if err != nil {
			return err
		}
		for _, one := range found {
			if err := yield(one); err != nil {
				return err
			}
		}
		return nil
	})
}

// Sorted lists the records below prefix by their keys, including records of other storages: see
// snapshot.Sorted.
func Sorted(ctx context.Context, r *Reader, prefix []byte) (*snapshot.Sorted, error) {
	rev, err := r.Revision(ctx)
	if err != nil {
		return nil, err
	}
	return r.snapshot.Sorted(ctx, prefix, rev)
}

// Revision returns the revision of the reader.
func (r *Reader) Revision(ctx context.Context) (int64, error) {
	if r.at != nil {
		return *r.at, nil
	}
	return r.snapshot.Revision(ctx)
}

func keyOf(rec *snapshot.Record) []byte { return rec.Key }

// visible omits the records that the reader does not see.
func visible[T any](ctx context.Context, r *Reader, all iter.Seq2[T, error], key func(T) []byte) iter.Seq2[T, error] {
	if !r.only {
		return all
	}
	return stream.Of(func(yield func(T) error) error {
		return stream.Each(all, func(one T) error {
			if sees, err := r.Sees(ctx, key(one)); !sees {
				return err
			}
			return yield(one)
		})
	})
}

// Resource returns the resource of a key; empty for none. Servers encrypt values by resource.
func (r *Reader) Resource(ctx context.Context, key []byte) (schema.GroupResource, error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return schema.GroupResource{}, err
	}
	k, _, _ := layouts.Parse(key)
	return k.Resource, nil
}

// Layouts returns the storages of the snapshot. The first call finds the storages by characteristic
// keys, or by a pass over all keys if the characteristic keys are not enough.
func (r *Reader) Layouts(ctx context.Context) (keys.Layouts, error) {
	if r.layouts != nil {
		return *r.layouts, nil
	}
	d, err := detector(ctx, r)
	if err != nil {
		return keys.Layouts{}, err
	}
	layouts := d.Layouts()
	if r.only {
		layouts = layouts.Only(r.named...)
	}
	r.layouts = &layouts
	return layouts, nil
}

func detector(ctx context.Context, r *Reader) (*keys.Detector, error) {
	if r.at == nil {
		d, err := detect(r, r.snapshot.Marked(ctx))
		var failed error
		settled := err == nil && d.Settled(func(prefix string) bool {
			any, err := below(ctx, r, prefix)
			failed = cmp.Or(failed, err)
			return any
		})
		if err = cmp.Or(err, failed); err != nil || settled {
			return d, err
		}
	}
	return detect(r, r.all(ctx, nil))
}

func detect(r *Reader, records iter.Seq2[*snapshot.Record, error]) (*keys.Detector, error) {
	d := keys.NewDetector(r.named...)
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		d.Add(rec.Key)
	}
	return d, nil
}

func below(ctx context.Context, r *Reader, prefix string) (bool, error) {
	for _, err := range r.all(ctx, []byte(prefix)) {
		return err == nil, err
	}
	return false, nil
}
