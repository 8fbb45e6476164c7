package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// Carrier stages records of another snapshot as the API servers of the input would store them.
type Carrier struct {
	view   *transform.View
	leases map[int64]int64 // TTL in seconds, by id in the other snapshot
	// undecryptable has a key of each type for which all encrypted values in the input are
	// undecryptable.
	undecryptable map[typeAt]string
	encrypted     map[typeAt]bool // the types with encrypted values in the input
	plain         map[typeAt]bool // the types with values in plaintext
	staged        map[string]mark // by key
}

// mark identifies a staged record.
type mark struct {
	value  [sha256.Size]byte // of the decrypted value, or of the stored bytes
	stored bool
	ttl    int64
}

// typeAt is a type below a storage prefix.
type typeAt struct {
	prefix string
	schema.GroupResource
}

// NewCarrier returns a Carrier of the records of another snapshot.
func NewCarrier(ctx context.Context, v *transform.View, from *inspect.Reader) (*Carrier, error) {
	leases, err := from.Snapshot().Leases(ctx)
	if err != nil {
		return nil, err
	}
	c := &Carrier{view: v, leases: leases, undecryptable: map[typeAt]string{},
		encrypted: map[typeAt]bool{}, plain: map[typeAt]bool{}, staged: map[string]mark{}}
	return c, c.findEncryption(ctx)
}

// TTL returns the TTL of a lease of the other snapshot in seconds; 0 for no lease or a missing
// lease.
func (c *Carrier) TTL(id int64) int64 {
	if id == 0 {
		return 0
	}
	return max(c.leases[id], 0)
}

// Create stages a record at a new key. The stored bytes of the other snapshot stay if the API
// servers would store the same bytes; otherwise the value is encrypted for them. The lease of the
// record is granted anew.
func (c *Carrier) Create(ctx context.Context, from *inspect.Entry, to, value []byte) error {
	e := &inspect.Entry{Key: to, Stored: from.Stored}
	if err := c.view.Reader().Decrypt(ctx, e); err != nil {
		return err
	}
	lease, err := c.stage(ctx, from, to, mark{value: sha256.Sum256(value)})
	switch {
	case err != nil:
		return err
	case e.Undecryptable == nil && !e.Stale && bytes.Equal(e.Value, value):
		return c.view.CreateStored(ctx, to, from.Stored, lease)
	}
	return c.view.Create(ctx, to, value, lease)
}

// CreateStored is Create with the stored bytes.
func (c *Carrier) CreateStored(ctx context.Context, from *inspect.Entry, to []byte) error {
	lease, err := c.stage(ctx, from, to, mark{value: sha256.Sum256(from.Stored), stored: true})
	if err != nil {
		return err
	}
	return c.view.CreateStored(ctx, to, from.Stored, lease)
}

// stage remembers a record for Check, and grants its lease.
func (c *Carrier) stage(ctx context.Context, from *inspect.Entry, to []byte, m mark) (lease int64, err error) {
	if m.ttl = c.TTL(from.Lease); m.ttl != 0 {
		lease, err = c.view.Grant(ctx, from.Lease, m.ttl)
	}
	c.staged[string(to)] = m
	return lease, err
}

// Check compares a record of the output with the staged one: its value and the TTL of its lease. It
// returns false for a record that is not staged. leases are the TTLs of the output. Errors wrap
// snapshot.ErrVerify.
func (c *Carrier) Check(
	ctx context.Context, out *inspect.Reader, rec *snapshot.Record, leases map[int64]int64,
) (staged bool, err error) {
	m, staged := c.staged[string(rec.Key)]
	if !staged {
		return false, nil
	}
	if ttl := leases[rec.Lease]; m.ttl != ttl || (m.ttl == 0) != (rec.Lease == 0) {
		return true, fmt.Errorf("%w: key %q: the lease has a TTL of %d s, and not of %d", snapshot.ErrVerify, rec.Key,
			ttl, m.ttl)
	}
	got := &inspect.Entry{Key: rec.Key, Stored: rec.Value, Value: rec.Value}
	if !m.stored {
		if err := out.Decrypt(ctx, got); err != nil {
			return true, err
		}
	}
	if got.Undecryptable != nil || sha256.Sum256(got.Value) != m.value {
		return true, fmt.Errorf("%w: key %q: the value is not that of the origin", snapshot.ErrVerify, rec.Key)
	}
	return true, nil
}

// Exposure is how the input would store an encrypted value of the other snapshot.
type Exposure int

// The exposures.
const (
	Safe     Exposure = iota // encrypted, or plaintext in both snapshots
	AsOthers                 // in plaintext, as all values of the type in the input
	Exposed                  // in plaintext
	// Unreadable is plaintext beside encrypted values of an unknown configuration: perhaps no API
	// server of the input reads plaintext.
	Unreadable
)

// Exposes returns how a value of the other snapshot would be stored, and the reason unless it is
// Safe. here names the input in the reason.
func (c *Carrier) Exposes(
	ctx context.Context, from *inspect.Entry, to []byte, here string,
) (how Exposure, reason string, err error) {
	encrypts, err := c.view.Encrypts(ctx, to)
	if err != nil || encrypts {
		return Safe, "", err
	}
	layouts, err := c.view.Layouts(ctx)
	if err != nil {
		return Safe, "", err
	}
	key, _, _ := layouts.Parse(to)
	at := typeAt{key.Prefix, key.Resource}
	example, undecryptable := c.undecryptable[at]
	switch clear := fmt.Sprintf("it is encrypted, and %s would be stored in the clear here: ", key.Resource); {
	case undecryptable:
		return Unreadable, fmt.Sprintf("%s encrypts %s, as %q, and no configuration says how: it would be stored "+
			"in the clear", here, key.Resource, example), nil
	case !isEncrypted(from.Stored):
		return Safe, "", nil
	case c.plain[at] && !c.encrypted[at]:
		return AsOthers, clear + "all others are", nil
	default:
		return Exposed, clear + "no configuration encrypts them", nil
	}
}

func isEncrypted(stored []byte) bool { return encoding.Detect(stored) == encoding.FormatEncrypted }

// findEncryption finds the types with encrypted values in the input, those with values in
// plaintext, and those for which all encrypted values are undecryptable. One decryptable value
// shows that the configuration is the servers' configuration.
func (c *Carrier) findEncryption(ctx context.Context) error {
	known := map[typeAt]bool{}
	return stream.Each(c.view.Reader().Raw(ctx, nil), func(e inspect.Entry) error {
		key, err := e.ParseKey()
		at := typeAt{key.Prefix, key.Resource}
		if err != nil {
			return nil
		}
		if !isEncrypted(e.Stored) {
			c.plain[at] = true
			return nil
		}
		if c.encrypted[at] = true; known[at] {
			return nil
		}
		switch knows, err := c.knows(ctx, &e); {
		case err != nil:
			return err
		case knows:
			known[at] = true
			delete(c.undecryptable, at)
		case c.undecryptable[at] == "":
			c.undecryptable[at] = string(e.Key)
		}
		return nil
	})
}

// knows reports whether the run's configuration encrypts the values of a key, or decrypts the value
// of e.
func (c *Carrier) knows(ctx context.Context, e *inspect.Entry) (bool, error) {
	if encrypts, err := c.view.Encrypts(ctx, e.Key); err != nil || encrypts {
		return encrypts, err
	}
	err := c.view.Reader().Decrypt(ctx, e)
	return err == nil && e.Undecryptable == nil, err
}
