package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// get returns the state of a key, nil if it does not exist.
func (r *replay) get(key []byte) (*replayKey, error) {
	if k, changed := r.keys.Get(&replayKey{key: string(key)}); changed {
		if k.version == 0 {
			return nil, nil
		}
		return k, nil
	}
	if r.base == nil {
		return nil, nil
	}
	var rec Record
	ordinal, found, err := r.x.find(key, &rec)
	if err != nil || !found || rec.Tombstone {
		return nil, err
	}
	return basedKey(&rec, ordinal), nil
}

func basedKey(rec *Record, ordinal uint32) *replayKey {
	return &replayKey{key: string(rec.Key), create: rec.CreateRevision, mod: rec.ModRevision, version: rec.Version,
		lease: rec.Lease, value: replayValue{based: true, ordinal: ordinal}}
}

// each yields the existing keys of a range in key order (etcd server/storage/mvcc/index.go): one
// key if end is empty, all keys from key on if end is a zero byte.
func (r *replay) each(ctx context.Context, key, end []byte) iter.Seq2[*replayKey, error] {
	return stream.Of(func(yield func(*replayKey) error) error {
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
		var changed []*replayKey
		r.keys.AscendGreaterOrEqual(&replayKey{key: string(key)}, func(k *replayKey) bool {
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
		err := r.eachBased(ctx, key, func(k *replayKey) (more bool, err error) {
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
func (r *replay) eachBased(ctx context.Context, key []byte, fn func(*replayKey) (more bool, err error)) (err error) {
	if r.base == nil {
		return nil
	}
	if r.sorted == nil {
		if r.sorted, err = r.base.Sorted(ctx, nil, r.x.revision()); err != nil {
			return err
		}
	}
	at, err := r.sorted.Search(key)
	for more := true; more && err == nil && at < r.sorted.Len(); at++ {
		var rec *Record
		if rec, err = r.sorted.At(at); err == nil {
			more, err = fn(basedKey(rec, r.sorted.ordinals[at]))
		}
		err = cmp.Or(err, r.read(readOfKey))
	}
	return err
}

// value returns the value at a place.
func (r *replay) value(v replayValue) ([]byte, error) {
	if v.based {
		var rec Record
		err := r.x.read(func() error { return r.x.at(v.ordinal, &rec) })
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
		return nil, ErrChanged
	}
	return data[v.offset:][:v.len], nil
}
