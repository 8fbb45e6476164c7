package inspect

import (
	"context"
	"iter"
)

// Unopened is Live without decryption: the Value of an entry is what is stored, until Open is called with it. It is for who reads
// the values of a few types, and has no business with the Secrets beside them.
func (r *Reader) Unopened(ctx context.Context, prefix []byte) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for rec, err := range r.live(ctx, prefix) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&Entry{Key: rec.Key, Value: rec.Value, Stored: rec.Value, ModRevision: rec.ModRevision, Lease: rec.Lease}, nil) {
				return
			}
		}
	}
}

// Has tells whether key has a value, without decrypting it.
func (r *Reader) Has(ctx context.Context, key []byte) (bool, error) {
	rec, err := r.get(ctx, key)
	return rec != nil, err
}
