package inspect

import (
	"bytes"
	"context"
	"sync"

	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// secrets are those of a snapshot, which are read once.
type secrets struct {
	mu    sync.Mutex
	found *redact.Shared
}

// Secrets returns what redacts the objects of the snapshot. It knows the values in the folders of
// [keys.HoldsCredentials], of any revision and storage, unless no key decrypts them. The first call
// reads them.
func (r *Reader) Secrets(ctx context.Context) (*redact.Shared, error) {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	if r.secrets.found == nil {
		found := redact.NewShared()
		if err := r.AddSecrets(ctx, found); err != nil {
			return nil, err
		}
		names, err := r.namesAmong(ctx, found)
		if err != nil {
			return nil, err
		}
		found.Settle(names)
		r.secrets.found = found
	}
	return r.secrets.found, nil
}

// AddSecrets adds the values that Secrets knows.
func (r *Reader) AddSecrets(ctx context.Context, to *redact.Shared) error {
	if r.at != nil || r.only { // it does not know all storages
		r = NewReader(r.snapshot, r.decrypter, r.named...)
	}
	if r.decrypter != nil {
		if _, err := r.Layouts(ctx); err != nil {
			return err
		}
	}
	of := func(rec *snapshot.Record) (secrets []redact.Secret, err error) {
		e, err := r.Entry(ctx, rec)
		if err != nil || e.Undecryptable != nil {
			return nil, err
		}
		if content, err := native.Decode(e.Value); err == nil {
			secrets = redact.SecretsIn(e.Key, content, redact.Brief)
		}
		return secrets, nil
	}
	release := []byte("/sh.helm.release.v1.") // packed and long; what it made is in other Secrets
	want := func(key []byte) bool { return keys.HoldsCredentials(key) && !bytes.Contains(key, release) }
	for found, err := range snapshot.Chosen(ctx, r.snapshot, want, of) {
		if err != nil {
			return err
		}
		for _, secret := range found {
			to.Add(secret)
		}
	}
	return nil
}

// namesAmong returns the secrets that are names of objects or their namespaces.
func (r *Reader) namesAmong(ctx context.Context, s *redact.Shared) (map[string]bool, error) {
	names, mu := map[string]bool{}, sync.Mutex{}
	look := func(key []byte) bool {
		for part := range bytes.SplitSeq(key, []byte("/")) {
			if s.Has(part) {
				mu.Lock()
				names[string(part)] = true
				mu.Unlock()
			}
		}
		return false
	}
	for _, err := range snapshot.Chosen(ctx, r.snapshot, look, func(*snapshot.Record) (none struct{}, _ error) { return none, nil }) {
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}
