package transform

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
)

// Encrypter decrypts values that are encrypted at rest and encrypts those that are written, as an API server with one encryption
// configuration does. encryption.Transformers is one.
type Encrypter interface {
	inspect.Decrypter
	// Encrypt returns what a server stores of plain under key: plain itself where the resource is not to be encrypted.
	Encrypt(ctx context.Context, gr schema.GroupResource, key, plain []byte) (stored []byte, err error)
	// Encrypts says whether a server encrypts the resource.
	Encrypts(gr schema.GroupResource) bool
}

// Put stages value, decrypted, for key; it is encrypted as a server would. A lease stays attached as it was. Staging what is
// stored already stages nothing, and so keeps its ciphertext. why is a reason a person can read. A value that would lose its
// encryption is reported instead (would-be-plaintext), and left as it is.
func (v *View) Put(ctx context.Context, key, value []byte, why string) error {
	_, err := v.Derive(ctx, key, key, value, why)
	return err
}

// Derive is Put of a value that was made of the one stored at from, which may be another key: it too must not lose its
// encryption. staged is false where that was reported, and nothing staged.
func (v *View) Derive(ctx context.Context, from, key, value []byte, why string) (staged bool, err error) {
	if len(key) == 0 || len(value) == 0 {
		return false, fmt.Errorf("stage %q: key and value must not be empty", key)
	}
	stored, err := v.reader.Get(ctx, key)
	if err != nil {
		return false, err
	}
	if stored != nil && stored.Undecryptable == nil && bytes.Equal(stored.Value, value) {
		v.plan.drop(string(key))
		return true, nil
	}
	return v.seal(ctx, from, key, stored, value, why)
}

// seal stages value, encrypted as a server would. stored is what is there now, nil for nothing.
func (v *View) seal(ctx context.Context, from, key []byte, stored *Entry, value []byte, why string) (bool, error) {
	origins := [][]byte{from}
	if !bytes.Equal(from, key) {
		origins = append(origins, key)
	}
	for _, origin := range origins {
		reason, err := v.Exposes(ctx, origin, key)
		if err != nil {
			return false, err
		}
		if reason != "" {
			v.Raise(string(origin), CodeWouldBePlaintext.Because("%s", reason))
			return false, nil
		}
	}
	value, err := v.encrypt(ctx, key, value)
	if err != nil {
		return false, err
	}
	st := &staged{key: string(key), why: why}
	if stored != nil {
		st.prior, st.lease = stored.ModRevision, stored.Lease
	}
	return true, v.plan.put(st, value)
}

// encrypt returns value as a server would store it under key.
func (v *View) encrypt(ctx context.Context, key, value []byte) ([]byte, error) {
	if v.encrypter == nil {
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

// Exposes says why what is encrypted at from must not be written to key: it would be in the clear there. The reason is empty
// where it would not.
func (v *View) Exposes(ctx context.Context, from, key []byte) (reason string, err error) {
	rec, err := v.src.Get(ctx, from)
	if rec == nil || err != nil || encoding.Detect(rec.Value) != encoding.FormatEncrypted {
		return "", err
	}
	gr, err := v.reader.Resource(ctx, key)
	if err != nil || v.encrypter != nil && v.encrypter.Encrypts(gr) {
		return "", err
	}
	return fmt.Sprintf("it is encrypted, and %s would be stored in the clear: the encryption configuration does not encrypt them", gr), nil
}

// Rewrap stages the value of key, unchanged, encrypted by the provider and key that the configuration names first, where it is
// stored in another way. rewrapped is false where there is nothing to do, or where it would lose its encryption, which is
// reported.
func (v *View) Rewrap(ctx context.Context, key []byte) (rewrapped bool, err error) {
	if v.encrypter == nil || v.plan.get(key) != nil {
		return false, nil // what is staged was just encrypted
	}
	stored, err := v.reader.Get(ctx, key)
	if stored == nil || err != nil || stored.Undecryptable != nil || !stored.Stale {
		return false, err
	}
	return v.seal(ctx, key, key, stored, stored.Value, "encrypted by the first provider")
}

// Delete stages the deletion of key; of a key that is not there it stages nothing, as a live server does.
func (v *View) Delete(ctx context.Context, key []byte, why string) error {
	rec, err := v.src.Get(ctx, key)
	if err != nil {
		return err
	}
	if rec == nil {
		v.plan.drop(string(key))
		return nil
	}
	st := &staged{key: string(key), delete: true, why: why, prior: rec.ModRevision, lease: rec.Lease}
	return v.plan.put(st, nil)
}
