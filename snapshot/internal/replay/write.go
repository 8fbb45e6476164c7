package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// write applies a put, a deletion or a transaction (etcd server/etcdserver/txn).
func (r *Replay) write(ctx context.Context, kind wal.Kind, request wal.Message) error {
	full := len(r.alarms[mvcc.AlarmNoSpace]) > 0
	switch kind {
	case wal.Put:
		p, err := parsePut(request)
		if err != nil || full {
			return err
		}
		fits, err := r.fits(p)
		if err != nil || !fits {
			return err
		}
		return r.put(p)
	case wal.DeleteRange:
		return r.deleteRange(ctx, request)
	}
	if puts, err := hasPut(request, 0); err != nil || full && puts {
		return err
	}
	path, err := r.path(ctx, request, nil)
	if err != nil {
		return err
	}
	fits, _, err := r.checkTxn(request, path)
	if err != nil || !fits {
		return err
	}
	_, err = r.execute(ctx, request, path)
	return err
}

// putRequest is an etcdserverpb.PutRequest.
type putRequest struct {
	key, value               []byte
	lease                    int64
	ignoreValue, ignoreLease bool
}

func parsePut(m wal.Message) (p putRequest, err error) {
	f, err := m.Fields()
	p = putRequest{f.Bytes(wal.PutKey), f.Bytes(wal.PutValue), f.Number(wal.PutLease),
		f.Number(wal.PutIgnoreValue) != 0, f.Number(wal.PutIgnoreLease) != 0}
	if err == nil && len(p.key) == 0 {
		err = fmt.Errorf("%w: a put without a key", errRequest)
	}
	return p, err
}

// fits reports whether a put is possible: its lease exists, and so does the key whose value or
// lease it keeps.
func (r *Replay) fits(p putRequest) (bool, error) {
	if p.lease != 0 && r.leases[p.lease] == nil {
		return false, nil
	}
	if !p.ignoreValue && !p.ignoreLease {
		return true, nil
	}
	old, err := r.get(p.key)
	return old != nil, err
}

// put stores a new record of a key.
func (r *Replay) put(p putRequest) error {
	old, err := r.get(p.key)
	if err != nil {
		return err
	}
	rev := r.Revision + 1
	k := &keyState{key: string(p.key), create: rev, mod: rev, version: 1, lease: p.lease}
	// p.value is a part of the data of the entry: both end in the same array
	k.value = valueAt{at: r.entry.At, offset: cap(r.entry.Data) - cap(p.value), len: len(p.value)}
	if old != nil {
		k.create, k.version = old.create, old.version+1
		if p.ignoreLease {
			k.lease = old.lease
		}
		if p.ignoreValue {
			k.value = old.value
			if p.value, err = r.value(old.value); err != nil {
				return err
			}
		}
		r.detach(old)
	}
	if l := r.leases[k.lease]; l != nil {
		if l.keys == nil {
			l.keys = map[string]struct{}{}
		}
		l.keys[k.key] = struct{}{}
	}
	r.keys.ReplaceOrInsert(k)
	return r.store(&mvcc.Record{Key: p.key, Value: p.value, CreateRevision: k.create, ModRevision: rev,
		Version: k.version, Lease: k.lease})
}

// delete stores the deletion of an existing key.
func (r *Replay) delete(key string) error {
	old, err := r.get([]byte(key))
	if err != nil || old == nil {
		return err
	}
	r.detach(old)
	r.keys.ReplaceOrInsert(&keyState{key: key})
	return r.store(&mvcc.Record{Key: []byte(key), Tombstone: true})
}

// detach removes a key from its lease. The keys of a lease of the base stay in leased: get knows
// that they were changed.
func (r *Replay) detach(k *keyState) {
	if l := r.leases[k.lease]; l != nil {
		delete(l.keys, k.key)
	}
}

// store emits a record of the current entry. A short put that keeps a long value makes a long
// record: without a limit a small log fills a disk.
func (r *Replay) store(rec *mvcc.Record) error {
	if r.bytes += int64(len(rec.Key) + len(rec.Value)); r.bytes > r.most {
		return r.refuse(fmt.Sprintf("the records of the log have more than %d bytes; --max-expand raises the limit",
			r.most))
	}
	rec.Revision = mvcc.Revision{Main: r.Revision + 1, Sub: r.subs}
	r.subs++
	return r.emit(rec)
}

func (r *Replay) deleteRange(ctx context.Context, request wal.Message) error {
	f, err := request.Fields()
	if err != nil {
		return err
	}
	var keys []string
	for k, err := range r.each(ctx, f.Bytes(wal.DeleteKey), f.Bytes(wal.DeleteEnd)) {
		if err != nil {
			return err
		}
		keys = append(keys, k.key)
	}
	for _, key := range keys {
		if err := r.delete(key); err != nil {
			return err
		}
	}
	return nil
}

// maxNested limits the depth of transactions within transactions.
const maxNested = 32

// hasPut reports whether a branch of a transaction has a put (etcd server/storage/quota.go,
// costTxn).
func hasPut(txn wal.Message, depth int) (puts bool, err error) {
	if depth > maxNested {
		return false, fmt.Errorf("%w: transactions nested deeper than %d", errRequest, maxNested)
	}
	for _, branch := range []int{wal.TxnSuccess, wal.TxnFailure} {
		more := txn.Each(branch, func(op wal.Message) error {
			kind, request, err := op.Operation()
			if err == nil && kind == wal.Txn {
				var nested bool
				nested, err = hasPut(request, depth+1)
				puts = puts || nested
			}
			puts = puts || kind == wal.Put
			return err
		})
		err = cmp.Or(err, more)
	}
	return puts, err
}

// path appends the result of the conditions of a transaction, and of each transaction in the chosen
// branch, all on the state before.
func (r *Replay) path(ctx context.Context, txn wal.Message, path []bool) ([]bool, error) {
	holds := true
	err := txn.Each(wal.TxnCompare, func(m wal.Message) error {
		if !holds {
			return nil
		}
		c, err := m.Compare()
		if err == nil {
			holds, err = r.compare(ctx, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	path = append(path, holds)
	err = eachNested(txn, holds, func(nested wal.Message) (err error) {
		path, err = r.path(ctx, nested, path)
		return err
	})
	return path, err
}

func branch(holds bool) int {
	if holds {
		return wal.TxnSuccess
	}
	return wal.TxnFailure
}

// eachNested calls fn with each transaction in the chosen branch.
func eachNested(txn wal.Message, holds bool, fn func(wal.Message) error) error {
	return txn.Each(branch(holds), func(op wal.Message) error {
		kind, request, err := op.Operation()
		if err != nil || kind != wal.Txn {
			return err
		}
		return fn(request)
	})
}

// compare reports whether a condition holds.
func (r *Replay) compare(ctx context.Context, c wal.Compare) (bool, error) {
	found := false
	for k, err := range r.each(ctx, c.Key, c.End) {
		if err != nil {
			return false, err
		}
		found = true
		if holds, err := r.compareKey(c, k); err != nil || !holds {
			return false, err
		}
	}
	if found {
		return true, nil
	}
	if c.Target == wal.CompareValue {
		return false, nil
	}
	return r.compareKey(c, &keyState{})
}

func (r *Replay) compareKey(c wal.Compare, k *keyState) (bool, error) {
	result := 0
	switch c.Target {
	case wal.CompareVersion:
		result = cmp.Compare(k.version, c.Number)
	case wal.CompareCreate:
		result = cmp.Compare(k.create, c.Number)
	case wal.CompareMod:
		result = cmp.Compare(k.mod, c.Number)
	case wal.CompareLease:
		result = cmp.Compare(k.lease, c.Number)
	case wal.CompareValue:
		value, err := r.value(k.value)
		if err != nil {
			return false, err
		}
		result = bytes.Compare(value, c.Value)
	}
	switch c.Result {
	case wal.Equal:
		return result == 0, nil
	case wal.NotEqual:
		return result != 0, nil
	case wal.Greater:
		return result > 0, nil
	case wal.Less:
		return result < 0, nil
	}
	return true, nil
}

// checkTxn reports whether every operation of the chosen branches is possible: else the transaction
// does nothing. rest is the path behind the transaction.
func (r *Replay) checkTxn(txn wal.Message, path []bool) (fits bool, rest []bool, err error) {
	fits, rest = true, path[1:]
	err = txn.Each(branch(path[0]), func(op wal.Message) error {
		kind, request, err := op.Operation()
		if err != nil || !fits {
			return err
		}
		switch kind {
		case wal.Put:
			var p putRequest
			if p, err = parsePut(request); err == nil {
				fits, err = r.fits(p)
			}
		case wal.Range:
			f, bad := request.Fields()
			rev := f.Number(wal.RangeRevision)
			fits, err = rev == 0 || rev <= r.Revision && rev >= r.Compacted, bad
		case wal.Txn:
			fits, rest, err = r.checkTxn(request, rest)
		}
		return err
	})
	return fits, rest, err
}

// execute runs the operations of the chosen branches. rest is the path behind the transaction.
func (r *Replay) execute(ctx context.Context, txn wal.Message, path []bool) (rest []bool, err error) {
	rest = path[1:]
	err = txn.Each(branch(path[0]), func(op wal.Message) error {
		kind, request, err := op.Operation()
		if err != nil {
			return err
		}
		switch kind {
		case wal.Put:
			var p putRequest
			if p, err = parsePut(request); err == nil {
				err = r.put(p)
			}
		case wal.DeleteRange:
			err = r.deleteRange(ctx, request)
		case wal.Txn:
			rest, err = r.execute(ctx, request, rest)
		}
		return err
	})
	return rest, err
}
