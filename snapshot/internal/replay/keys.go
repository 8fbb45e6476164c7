package replay

import (
	"bytes"
	"cmp"
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// get returns the state of a key, nil if it does not exist.
func (r *Replay) get(key []byte) (*keyState, error) {
	if k, changed := r.keys.Get(&keyState{key: string(key)}); changed {
		if k.version == 0 {
			return nil, nil
		}
		return k, nil
	}
	if r.base == nil {
		return nil, nil
	}
	var rec mvcc.Record
	ordinal, found, err := r.base.Find(key, &rec)
	if err != nil || !found {
		return nil, err
	}
	return basedKey(&rec, ordinal), nil
}

func basedKey(rec *mvcc.Record, ordinal uint32) *keyState {
	return &keyState{key: string(rec.Key), create: rec.CreateRevision, mod: rec.ModRevision, version: rec.Version,
		lease: rec.Lease, value: valueAt{based: true, ordinal: ordinal}}
}

// each yields the existing keys of a range in key order (etcd server/storage/mvcc/index.go): one
// key if end is empty, all keys from key on if end is a zero byte.
func (r *Replay) each(ctx context.Context, key, end []byte) iter.Seq2[*keyState, error] {
	return stream.Of(func(yield func(*keyState) error) error {
		if err := ctx.Err(); err != nil { // one entry may have millions of conditions
			return err
		}
		if len(end) == 0 {
			k, err := r.get(key)
			if err != nil || k == nil {
				return err
			}
			return yield(k)
		}
		below := func(k string) bool { return bytes.Equal(end, []byte{0}) || k < string(end) }
		var changed []*keyState
		r.keys.AscendGreaterOrEqual(&keyState{key: string(key)}, func(k *keyState) bool {
			changed = append(changed, k)
			return below(k.key)
		})
		if n := len(changed) - 1; n >= 0 && !below(changed[n].key) {
			changed = changed[:n]
		}
		if err := r.read(len(changed) * readOfKey); err != nil {
			return err
		}
		next := func() (err error) {
			if k := changed[0]; k.version > 0 {
				err = yield(k)
			}
			changed = changed[1:]
			return err
		}
		err := r.eachBased(ctx, key, func(k *keyState) (more bool, err error) {
			if !below(k.key) {
				return false, nil
			}
			for len(changed) > 0 && changed[0].key < k.key && err == nil {
				err = next()
			}
			if err == nil && (len(changed) == 0 || changed[0].key != k.key) {
				err = yield(k)
			}
			return true, err
		})
		for len(changed) > 0 && err == nil {
			err = next()
		}
		return err
	})
}

// eachBased calls fn with the keys of the base from key on, in key order, while more is true.
func (r *Replay) eachBased(ctx context.Context, key []byte, fn func(*keyState) (more bool, err error)) error {
	if r.base == nil {
		return nil
	}
	return r.base.From(ctx, key, func(rec *mvcc.Record, ordinal uint32) (more bool, err error) {
		more, err = fn(basedKey(rec, ordinal))
		return more, cmp.Or(err, r.read(readOfKey))
	})
}

// value returns the value at a place.
func (r *Replay) value(v valueAt) ([]byte, error) {
	if v.based {
		var rec mvcc.Record
		err := r.base.At(v.ordinal, &rec)
		return rec.Value, cmp.Or(err, r.read(len(rec.Value)))
	}
	if v.len == 0 {
		return nil, nil
	}
	data := r.entry.Data
	if v.at != r.entry.At {
		e, err := r.log.Read(v.at)
		if err != nil {
			return nil, err
		}
		data = e.Data
		if err := r.read(max(len(data), readOfEntry)); err != nil {
			return nil, err
		}
	}
	if v.offset+v.len > len(data) {
		return nil, bolt.ErrChanged
	}
	return data[v.offset:][:v.len], nil
}
