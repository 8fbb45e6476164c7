package inspect

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// secrets are the secrets of a snapshot, read once.
type secrets struct {
	mu    sync.Mutex
	found *redact.Shared
}

// Secrets returns the redactor for the objects of the snapshot. The redactor knows the values in
// the folders of [keys.HoldsCredentials], of any revision and storage, except undecryptable values.
// The first call reads the values.
func (r *Reader) Secrets(ctx context.Context) (*redact.Shared, error) {
	r.secrets.mu.Lock()
	defer r.secrets.mu.Unlock()
	if r.secrets.found == nil {
		found, err := secretsOf(ctx, r)
		if err != nil {
			return nil, err
		}
		r.secrets.found = found
	}
	return r.secrets.found, nil
}

// SecretsOf is [Reader.Secrets] for objects of several snapshots. Each call reads the values.
func SecretsOf(ctx context.Context, readers ...*Reader) (*redact.Shared, error) {
	readers = slices.CompactFunc(readers, func(a, b *Reader) bool { return a.secrets == b.secrets })
	if len(readers) == 1 {
		return readers[0].Secrets(ctx)
	}
	return secretsOf(ctx, readers...)
}

func secretsOf(ctx context.Context, readers ...*Reader) (*redact.Shared, error) {
	found, names := redact.NewShared(), map[string]bool{}
	for _, r := range readers {
		if err := AddSecrets(ctx, r, found); err != nil {
			return nil, err
		}
	}
	for _, r := range readers {
		if err := addNames(ctx, r, found, names); err != nil {
			return nil, err
		}
	}
	found.Settle(names)
	return found, nil
}

// AddSecrets adds the values of [Reader.Secrets] to a redactor.
func AddSecrets(ctx context.Context, r *Reader, to *redact.Shared) error {
	if r.at != nil || r.only { // such a reader does not know all storages
		r = NewReader(r.snapshot, r.decrypter, r.named...)
	}
	if r.decrypter != nil {
		if _, err := r.Layouts(ctx); err != nil {
			return err
		}
	}
	of := func(rec *snapshot.Record, secrets []redact.Secret) ([]redact.Secret, error) {
		if rec.Tombstone {
			return secrets, nil
		}
		e, err := r.Entry(ctx, rec)
		if err != nil || e.Undecryptable != nil {
			return secrets, err
		}
		if content, err := native.Decode(e.Value); err == nil {
			secrets = append(secrets, redact.SecretsIn(e.Key, content, redact.Brief)...)
		}
		return secrets, nil
	}
	release := []byte("/sh.helm.release.v1.") // packed and long; its rendered credentials are in other Secrets
	want := func(key []byte) bool { return keys.HoldsCredentials(key) && !bytes.Contains(key, release) }
	err := stream.Each(snapshot.Chosen(ctx, r.snapshot, want, of), func(secret redact.Secret) error {
		to.Add(secret)
		return nil
	})
	if err != nil {
		return err
	}
	var found []redact.Secret
	return stream.Each(r.snapshot.Removed(ctx), func(rec *snapshot.Record) (err error) {
		if !want(rec.Key) {
			return nil
		}
		found, err = of(rec, found[:0])
		for _, secret := range found {
			to.Add(secret)
		}
		return err
	})
}

// addNames adds the secrets that are also names of objects or namespaces.
func addNames(ctx context.Context, r *Reader, s *redact.Shared, names map[string]bool) error {
	var mu sync.Mutex
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
	keep := func(_ *snapshot.Record, none []any) ([]any, error) { return none, nil }
	err := stream.Each(snapshot.Chosen(ctx, r.snapshot, look, keep), func(any) error { return nil })
	if err != nil {
		return err
	}
	return stream.Each(r.snapshot.Removed(ctx), func(rec *snapshot.Record) error {
		look(rec.Key)
		return nil
	})
}

// NewestTime returns the newest time in the last written objects: of a creation, heartbeat, renewal
// or change; zero for none. A running cluster renews Leases every few seconds: the newest time is
// about the time of the snapshot.
func NewestTime(ctx context.Context, r *Reader) (newest time.Time, err error) {
	const looked = 2000        // objects
	var last []snapshot.Record // a ring
	n := 0
	records := r.live(ctx, nil)
	if r.at == nil && !r.only {
		records = r.snapshot.Newest(ctx, looked)
	}
	for rec, err := range records {
		if err != nil {
			return newest, err
		}
		if len(last) < looked {
			last = append(last, *rec)
		} else {
			last[n%looked] = *rec
		}
		n++
	}
	entries := stream.Of(func(yield func(*Entry) error) error {
		for i := range last {
			e, err := r.Entry(ctx, &last[i])
			if err == nil && e.Undecryptable == nil {
				err = yield(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	item := func(e *Entry) (dated, int) { return dated{value: e.Value}, len(e.Value) }
	for d, err := range stream.Ahead(r.snapshot.Guard, entries, item, (*dated).read) {
		if err != nil {
			return newest, err
		}
		if d.newest.After(newest) {
			newest = d.newest
		}
	}
	return newest, nil
}

type dated struct {
	value  []byte
	newest time.Time
}

func (d *dated) read() { d.newest = native.NewestTime(d.value) }
