package inspect

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestAt reads an earlier revision through the whole of a reader: values, decryption, prefixes,
// catalogue.
func TestAt(t *testing.T) {
	ctx, by := context.Background(), transformers(t, "a")
	secret := encrypted(t, by, "/registry/secrets/ns/s", `{"apiVersion":"v1","kind":"Secret"}`)
	s := written(t, record{marker, "{}"}, secret, record{secret.key, "{}"}, record{"/other/namespaces/default", "{}"})
	values := func(r *Reader) map[string]string {
		m := map[string]string{}
		for e, err := range r.Live(ctx, nil) {
			require.NoError(t, err)
			m[string(e.Key)] = string(e.Value)
		}
		return m
	}
	last := NewReader(s, by)
	prefixes, err := last.Prefixes(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"/registry", "/other"}, prefixes)

	at := last.At(3)
	require.Equal(t, map[string]string{marker: "{}", secret.key: `{"apiVersion":"v1","kind":"Secret"}`}, values(at))
	prefixes, err = at.Prefixes(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"/registry"}, prefixes)
	e, err := at.Get(ctx, []byte(secret.key))
	require.NoError(t, err)
	require.Equal(t, []any{`{"apiVersion":"v1","kind":"Secret"}`, secret.value, int64(3)}, []any{string(e.Value), string(e.Stored), e.ModRevision})
	e, err = at.At(2).Get(ctx, []byte(secret.key))
	require.NoError(t, err)
	require.Nil(t, e)
	catalogue, err := Survey(ctx, at)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"aesgcm:v1:a": 1}, catalogue.resource(t, "secrets").Versions[0].Encrypted)

	require.Len(t, values(last), 3, "the reader it was made of")
	for _, rev := range []int64{0, 6} {
		_, err = last.At(rev).Get(ctx, []byte(marker))
		require.ErrorIs(t, err, map[int64]error{0: snapshot.ErrCompacted, 6: snapshot.ErrFuture}[rev])
		_, err = Survey(ctx, last.At(rev))
		require.Error(t, err)
	}
}

// TestDeletedEntries: what is gone, with its last value as far as that can be had.
func TestDeletedEntries(t *testing.T) {
	ctx, by := context.Background(), transformers(t, "a")
	secret := encrypted(t, by, "/registry/secrets/ns/s", "{}")
	server := etcdtest.Start(t, t.TempDir()+"/etcd")
	put := func(r record) { // values that no script can hold
		_, err := server.Client.Put(ctx, r.key, r.value)
		require.NoError(t, err)
	}
	put(record{marker, "{}"})
	put(record{"/registry/pods/ns/gone", "{}"})
	put(secret)
	etcdtest.Run(t, server, "del /registry/pods/ns/gone\ncompact\ndel "+secret.key)
	path := t.TempDir() + "/saved.db"
	etcdtest.Save(t, server, path)
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	deleted := func(r *Reader, prefix string) (out []Deletion) {
		for d, err := range r.Deleted(ctx, []byte(prefix)) {
			require.NoError(t, err)
			out = append(out, *d)
		}
		return out
	}
	got := deleted(NewReader(s, by), "")
	require.Len(t, got, 2)
	require.Equal(t, Deletion{Key: []byte("/registry/pods/ns/gone"), Revision: 5}, got[0])
	require.Equal(t, int64(6), got[1].Revision)
	require.Equal(t, "{}", string(got[1].Last.Value))
	got = deleted(NewReader(s, nil), "/registry/secrets/")
	require.Len(t, got, 1)
	require.ErrorIs(t, got[0].Last.Undecryptable, encoding.ErrEncrypted)
	for _, err := range NewReader(s, failing{}).Deleted(ctx, nil) {
		if err != nil {
			require.ErrorContains(t, err, "socket is gone")
		}
	}
}
