package transform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// ErrExists is returned where a record is to be created under a key that has one.
var ErrExists = errors.New("the key is there already")

// Reader reads the input as it is, without what is staged.
func (v *View) Reader() *inspect.Reader { return v.reader }

// Create stages a record under a key that has none: value, decrypted, is encrypted as a server would, and attached to a lease of
// Grant, or to none where lease is 0. It returns ErrExists where there is one, in the file or staged.
func (v *View) Create(ctx context.Context, key, value []byte, lease int64, why string) error {
	if len(value) == 0 {
		return fmt.Errorf("stage %q: the value must not be empty", key)
	}
	stored, err := v.encrypt(ctx, key, value)
	if err != nil {
		return err
	}
	return v.CreateStored(ctx, key, stored, lease, why)
}

// CreateStored is Create of the very bytes that are stored: what a server wrote under the same key, encrypted or not.
func (v *View) CreateStored(ctx context.Context, key, stored []byte, lease int64, why string) error {
	if len(key) == 0 {
		return errors.New("stage a record: the key must not be empty")
	}
	if st := v.plan.get(key); st != nil {
		return fmt.Errorf("stage %q: %w", key, ErrExists)
	}
	rec, err := v.src.Get(ctx, key)
	if err != nil {
		return err
	}
	if rec != nil {
		return fmt.Errorf("stage %q: %w", key, ErrExists)
	}
	st := &staged{key: string(bytes.Clone(key)), why: why, lease: lease}
	return v.plan.put(st, stored)
}

// Encrypts says whether what is written under key would be encrypted.
func (v *View) Encrypts(ctx context.Context, key []byte) (bool, error) {
	if v.encrypter == nil {
		return false, nil
	}
	gr, err := v.reader.Resource(ctx, key)
	return err == nil && v.encrypter.Encrypts(gr), err
}

// Grant stages a lease of ttl seconds in place of the lease id of another file, and returns its own id: the same one where no
// lease and no live record here has it, else one that is made of it, the same at each run. For the same id and ttl it is the same lease.
func (v *View) Grant(ctx context.Context, id, ttl int64) (lease int64, err error) {
	if id <= 0 || ttl <= 0 {
		return 0, fmt.Errorf("a lease %x of %d seconds cannot be granted", uint64(id), ttl)
	}
	asked := snapshot.Lease{ID: id, TTL: ttl}
	if lease, granted := v.granted[asked]; granted {
		return lease, nil
	}
	if v.leases == nil {
		if v.leases, err = v.namedLeases(ctx); err != nil {
			return 0, err
		}
	}
	lease = id
	for n := 0; lease <= 0 || v.leases[lease]; n++ {
		lease = otherLease(id, n)
	}
	v.leases[lease] = true
	v.granted[asked] = lease
	v.grants = append(v.grants, snapshot.Lease{ID: lease, TTL: ttl})
	return lease, nil
}

// namedLeases are the ids that the file has a lease of, or a live record that names it. An etcd attaches records to their leases when
// it starts: granted anew, an id that only a record names would take that record along when it expires.
func (v *View) namedLeases(ctx context.Context) (map[int64]bool, error) {
	granted, err := v.src.Leases(ctx)
	if err != nil {
		return nil, err
	}
	named := make(map[int64]bool, len(granted))
	for id := range granted {
		named[id] = true
	}
	for rec, err := range v.src.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if rec.Lease != 0 {
			named[rec.Lease] = true
		}
	}
	return named, nil
}

// otherLease is the nth id to try in place of one that is taken.
func otherLease(id int64, n int) int64 {
	var b []byte
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:]) &^ (1 << 63))
}

// Scrub has the output written anew without any record, of whatever revision, of the keys that drop names. Their deletion is
// staged by Delete as ever, and leaves no record.
func (v *View) Scrub(drop func(key []byte) bool) { v.scrub = drop }

// Build has the output be a new file with the content alone, instead of the input with changes. It cannot be restored as the input can:
// the report has no commands for that. Records may be those of the input.
func (v *View) Build(content snapshot.Content) { v.built = &content }

// CheckOutput has check read the output, which was found to hold the input and what was staged, before it gets its name; with an error it
// never does. It may fill in the report. The check that it takes the place of is returned, nil for none.
func (v *View) CheckOutput(check OutputCheck) (instead OutputCheck) {
	instead, v.check = v.check, check
	return instead
}

// OutputCheck tells what is wrong with an output.
type OutputCheck func(ctx context.Context, out *inspect.Reader) error
