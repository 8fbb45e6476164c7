package inspect

import (
	"context"
	"iter"
)

// Raw is Live without decryption: Value is Stored until Decrypt is called. It is for callers that read a few types and must not
// decrypt Secrets.
func (r *Reader) Raw(ctx context.Context, prefix []byte) iter.Seq2[*Entry, error] {
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
