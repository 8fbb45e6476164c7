package inspect

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// record is a key and its value.
type record struct{ key, value string }

// written opens a snapshot of an etcd with the given records, put in order.
func written(t testing.TB, records ...record) *snapshot.Snapshot {
	t.Helper()
	var script strings.Builder
	for _, r := range records {
		script.WriteString("put " + strconv.Quote(r.key) + " " + strconv.Quote(r.value) + "\n")
	}
	s, err := snapshot.Open(context.Background(), etcdtest.Build(t, script.String()), snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// transformers encrypts Secrets by aesgcm with the keys of the letters, the first letter first.
func transformers(t testing.TB, letters string) *encryption.Transformers {
	return secrettest.Load(t, "secrets: aesgcm="+letters+" identity")
}

func encrypted(t testing.TB, by *encryption.Transformers, key, plain string) record {
	return record{key, secrettest.Encrypt(t, by, "secrets", key, plain)}
}

const marker = "/registry/namespaces/default" // shows the prefix

// TestDecrypt checks that values are decrypted, and undecryptable values are returned as stored,
// with the reason.
func TestDecrypt(t *testing.T) {
	ctx, by := context.Background(), transformers(t, "a")
	one := encrypted(t, by, "/registry/secrets/ns/one", "{}")
	s := written(t, record{marker, "{}"}, one, record{"/registry/secrets/ns/moved", one.value},
		record{"/registry/secrets/ns/plain", "{}"}, record{"/registry/pods/ns/p", "{}"}, record{"elsewhere", "x"})
	get := func(r *Reader, key string) *Entry {
		e, err := r.Get(ctx, []byte(key))
		require.NoError(t, err)
		require.NotNil(t, e)
		require.Equal(t, key, string(e.Key))
		return e
	}
	for _, letters := range []string{"a", "ba"} {
		r := NewReader(s, transformers(t, letters))
		e := get(r, "/registry/secrets/ns/one")
		require.Equal(t, []any{"{}", one.value, letters == "ba", nil},
			[]any{string(e.Value), string(e.Stored), e.Stale, e.Undecryptable})
		require.Positive(t, e.ModRevision)
		e = get(r, "/registry/secrets/ns/moved")
		require.ErrorIs(t, e.Undecryptable, encoding.ErrEncrypted)
		require.Equal(t, one.value, string(e.Value), "never guessed")
		e = get(r, "/registry/secrets/ns/plain")
		require.True(t, e.Stale)
		require.NoError(t, e.Undecryptable)
		for _, key := range []string{"/registry/pods/ns/p", "elsewhere", marker} {
			e = get(r, key)
			require.False(t, e.Stale, key)
			require.NoError(t, e.Undecryptable)
			require.Equal(t, e.Stored, e.Value)
		}
	}
	e := get(NewReader(s, transformers(t, "b")), "/registry/secrets/ns/one")
	require.ErrorIs(t, e.Undecryptable, encoding.ErrEncrypted)
	require.ErrorContains(t, e.Undecryptable, "aesgcm:v1:a")

	e = get(NewReader(s, nil), "/registry/secrets/ns/one")
	require.ErrorIs(t, e.Undecryptable, encoding.ErrEncrypted)
	require.ErrorContains(t, e.Undecryptable, "no encryption configuration was given")
	require.Equal(t, one.value, string(e.Value))

	none, err := NewReader(s, nil).Get(ctx, []byte("/registry/secrets/ns/none"))
	require.NoError(t, err)
	require.Nil(t, none)
}

// failing is a KMS plugin that does not answer: its error is not about the value.
type failing struct{}

func (failing) Decrypt(context.Context, gvr.GroupResource, []byte, []byte) ([]byte, bool, error) {
	return nil, false, errors.New("socket is gone")
}

// TestLive checks that Live yields the entries below a prefix in the order of the writes, until the
// caller stops or an error occurs.
func TestLive(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := written(t, record{marker, "{}"}, record{"/registry/pods/ns/b", "1"}, record{"/registry/pods/ns/a", "2"},
		record{"/registry/podsets/x", "3"}, record{"/registry/pods/ns/b", "4"})
	read := func(r *Reader, ctx context.Context, most int) (values []string, err error) {
		for e, err := range r.Live(ctx, []byte("/registry/pods/")) {
			if err != nil {
				return values, err
			}
			if values = append(values, string(e.Value)); len(values) == most {
				break
			}
		}
		return values, nil
	}
	got, err := read(NewReader(s, nil), ctx, 9)
	require.NoError(t, err)
	require.Equal(t, []string{"2", "4"}, got)
	got, err = read(NewReader(s, transformers(t, "a")), ctx, 1)
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, got)
	_, err = read(NewReader(s, failing{}), ctx, 9)
	require.ErrorContains(t, err, "socket is gone")
	require.ErrorContains(t, err, "/registry/pods/ns/a")
	cancel()
	_, err = read(NewReader(s, nil), ctx, 9)
	require.ErrorIs(t, err, context.Canceled)
}

// TestLayouts checks that the characteristic keys show the same storages as all keys.
func TestLayouts(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*/*.db*")
	require.NoError(t, err)
	events := etcdtest.Build(t, "put /registry/events/team/a x\nput /registry/events/team/b x\nput /vault/x x")
	for _, path := range append(paths, events) {
		for _, named := range [][]string{nil, {"/vault"}, {"/registry"}} {
			s, err := snapshot.Open(t.Context(), path, snapshot.Config{SkipDigest: true})
			if err != nil {
				continue
			}
			r := NewReader(s, nil, named...)
			all := keys.NewDetector(named...)
			for rec, err := range s.Live(t.Context(), nil) {
				if err != nil {
					break
				}
				all.Add(rec.Key)
			}
			if got, err := r.Layouts(t.Context()); err == nil {
				require.Equal(t, all.Layouts(), got, "%s %v", path, named)
				require.True(t, path != events || len(got.Storages()) > 0)
			}
			require.NoError(t, s.Close())
		}
	}
}

// Prefixes returns the storage prefixes of Layouts that have the layout of Kubernetes.
func (r *Reader) Prefixes(ctx context.Context) ([]string, error) {
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	var prefixes []string
	for _, s := range layouts.Storages() {
		if s.Flavour == keys.FlavourKubernetes || s.Flavour == keys.FlavourUnknown {
			prefixes = append(prefixes, s.Prefix)
		}
	}
	return prefixes, nil
}

// TestPrefixes checks that named prefixes come first, then detected prefixes, each once; a key
// belongs to the longest prefix.
func TestPrefixes(t *testing.T) {
	const crds = "/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com"
	ctx, s := context.Background(), written(t, record{"/b" + crds, "{}"}, record{"/a" + crds, "{}"},
		record{"/b/tenants.io/one" + crds, "{}"}, record{"/b/namespaces/default", "{}"})
	named := []string{"/z", "/a"}
	r := NewReader(s, nil, named...)
	for range 2 {
		got, err := r.Prefixes(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"/z", "/a", "/b", "/b/tenants.io/one"}, got)
	}
	require.Equal(t, []string{"/z", "/a"}, named)
	for key, want := range map[string]string{
		"/b/example.com/widgets/ns/a":                 "widgets.example.com",
		"/b/tenants.io/one/example.com/widgets/ns/a":  "widgets.example.com",
		"/b/tenants.io/one/secrets/ns/a":              "secrets",
		"/z/deployments/ns/a":                         "deployments.apps",
		"/c/secrets/ns/a":                             "",
		"/bb/secrets/ns/a":                            "",
		"/b":                                          "",
		"/b/example.com/widgets/ns/a/deeper/than/any": "",
	} {
		gr, err := r.Resource(ctx, []byte(key))
		require.NoError(t, err)
		require.Equal(t, want, gr.String(), key)
	}
}

// TestAt reads an earlier revision through all methods of a reader: values, decryption, prefixes,
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
	require.Equal(t, []any{`{"apiVersion":"v1","kind":"Secret"}`, secret.value, int64(3)},
		[]any{string(e.Value), string(e.Stored), e.ModRevision})
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

// TestDeletedEntries checks that deleted keys have their last value if the file keeps the record.
func TestDeletedEntries(t *testing.T) {
	ctx, by := context.Background(), transformers(t, "a")
	secret := encrypted(t, by, "/registry/secrets/ns/s", "{}")
	server := etcdtest.Start(t, t.TempDir()+"/etcd")
	put := func(r record) { // values that a script cannot hold
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
