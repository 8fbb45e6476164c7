package transform

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
)

// Encrypter decrypts and encrypts values as an API server with one encryption configuration does.
// encryption.Transformers is an Encrypter.
type Encrypter interface {
	inspect.Decrypter
	// Encrypt returns the stored form of plain under key: plain itself if the configuration does
	// not encrypt the resource.
	Encrypt(ctx context.Context, gr schema.GroupResource, key, plain []byte) (stored []byte, err error)
	// Encrypts reports whether a server encrypts the resource.
	Encrypts(gr schema.GroupResource) bool
}

// Put stages a decrypted value for key. The value is encrypted as a server would, and the lease
// stays. An unchanged value stages nothing and keeps its ciphertext. A value that would lose its
// encryption is reported (would-be-plaintext) and stays unchanged.
func (v *View) Put(ctx context.Context, key, value []byte) error {
	_, err := v.Derive(ctx, key, key, value)
	return err
}

// Derive is [View.Put] with a value derived from the value at from, which must not lose its
// encryption either. staged is false after such a report.
func (v *View) Derive(ctx context.Context, from, key, value []byte) (staged bool, err error) {
	if len(key) == 0 || len(value) == 0 {
		return false, fmt.Errorf("stage %q: key and value must not be empty", key)
	}
	if same, err := v.stages(ctx, key, value); same || err != nil { // perhaps rewrapped
		return same, err
	}
	stored, err := v.reader.Get(ctx, key)
	if err != nil {
		return false, err
	}
	if stored != nil && stored.Undecryptable == nil && bytes.Equal(stored.Value, value) &&
		(!v.plaintext || bytes.Equal(stored.Stored, value)) {
		return true, v.plan.drop(key)
	}
	return v.put(ctx, from, key, stored, value)
}

// Move is [View.Derive] from the record of an entry, followed by the deletion of that record. The
// new record has the lease of the entry.
func (v *View) Move(ctx context.Context, e *Entry, key, value []byte) (staged bool, err error) {
	if staged, err = v.Derive(ctx, e.Key, key, value); !staged || err != nil {
		return false, err
	}
	if err := v.plan.attach(key, e.Lease); err != nil {
		return false, err
	}
	return true, v.Delete(ctx, e.Key)
}

func (v *View) stages(ctx context.Context, key, value []byte) (bool, error) {
	st, err := v.plan.get(key)
	if st == nil || st.delete || err != nil {
		return false, err
	}
	e, err := v.staged(ctx, st)
	return err == nil && e.Undecryptable == nil && bytes.Equal(e.Value, value) &&
		(!v.plaintext || bytes.Equal(e.Stored, value)), err
}

// put stages value, encrypted as a server would. stored is the record of key; nil for none.
func (v *View) put(ctx context.Context, from, key []byte, stored *Entry, value []byte) (bool, error) {
	var reason string
	var err error
	if !bytes.Equal(from, key) {
		reason, err = v.Exposes(ctx, from, key)
	}
	if err == nil && reason == "" && stored != nil {
		from = key
		reason, err = v.exposed(ctx, stored.Stored, key)
	}
	if err != nil {
		return false, err
	}
	if reason != "" {
		v.Raise(string(from), CodeWouldBePlaintext.Because("%s", reason))
		return false, nil
	}
	if value, err = v.encrypt(ctx, key, value); err != nil {
		return false, err
	}
	var st staged
	if stored != nil {
		st.prior, st.lease = stored.ModRevision, stored.Lease
	}
	before, err := v.plan.get(key)
	if before != nil && !before.delete {
		st.lease = before.lease
	}
	if err != nil {
		return false, err
	}
	return true, v.plan.put(key, value, st)
}

func (v *View) encrypt(ctx context.Context, key, value []byte) ([]byte, error) {
	if v.encrypter == nil || v.plaintext {
		return value, nil
	}
	gr, err := v.reader.Resource(ctx, key)
	if err != nil {
		return nil, err
	}
	if value, err = v.encrypter.Encrypt(ctx, gr, key, value); err != nil {
		return nil, fmt.Errorf("encrypt %q: %w", key, err)
	}
	return value, nil
}

// Encrypts reports whether a value written under key would be encrypted.
func (v *overlay) Encrypts(ctx context.Context, key []byte) (bool, error) {
	gr, err := v.reader.Resource(ctx, key)
	return err == nil && v.encrypter != nil && v.encrypter.Encrypts(gr), err
}

// Exposes returns why the encrypted value of from must not be written to key: the value would be
// stored as plaintext. The reason is "" if the write is safe.
func (v *overlay) Exposes(ctx context.Context, from, key []byte) (reason string, err error) {
	if st, err := v.plan.get(from); err != nil {
		return "", err
	} else if st != nil && !st.delete { // staged by an earlier step, from another key
		_, value, err := v.plan.record(st)
		if err == nil {
			reason, err = v.exposed(ctx, value, key)
		}
		if err != nil || reason != "" {
			return reason, err
		}
	}
	rec, err := v.src.Get(ctx, from)
	if rec == nil || err != nil {
		return "", err
	}
	return v.exposed(ctx, rec.Value, key)
}

// exposed is Exposes for a stored value.
func (v *overlay) exposed(ctx context.Context, stored, key []byte) (reason string, err error) {
	if v.plaintext || encoding.Detect(stored) != encoding.FormatEncrypted {
		return "", nil
	}
	gr, err := v.reader.Resource(ctx, key)
	if err != nil || v.encrypter != nil && v.encrypter.Encrypts(gr) {
		return "", err
	}
	return fmt.Sprintf("it is encrypted, and %s would be stored in the clear: the encryption configuration does not "+
		"encrypt them", gr), nil
}

// Rewrap stages the value of key, unchanged, encrypted by the first provider and key of the
// configuration. rewrapped is false if the value is encrypted so already, or would lose its
// encryption, which is reported.
func (v *View) Rewrap(ctx context.Context, key []byte) (rewrapped bool, err error) {
	if v.encrypter == nil {
		return false, nil
	}
	if st, err := v.plan.get(key); st != nil || err != nil {
		return false, err // a staged value was just encrypted
	}
	stored, err := v.reader.Get(ctx, key)
	if stored == nil || err != nil || stored.Undecryptable != nil || !stored.Stale {
		return false, err
	}
	return v.put(ctx, key, key, stored, stored.Value)
}

// Delete stages the deletion of key. Like a server, Delete stages nothing for a missing key.
func (v *View) Delete(ctx context.Context, key []byte) error {
	rec, err := v.src.Get(ctx, key)
	if err != nil {
		return err
	}
	if rec == nil {
		return v.plan.drop(key)
	}
	return v.plan.put(key, nil, staged{delete: true, prior: rec.ModRevision, lease: rec.Lease})
}
