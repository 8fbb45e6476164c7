package transform

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
)

// encrypter encrypts Secrets by the first of providers: see [secrettest.Write].
func encrypter(t testing.TB, providers ...string) *encryption.Transformers {
	return secrettest.Load(t, "secrets: "+strings.Join(providers, " "))
}

const secretsDir = "/registry/secrets/ns/"

// secretsOf builds a snapshot with a plaintext Secret and one encrypted Secret for each name.
func secretsOf(t testing.TB, encrypted map[string]*encryption.Transformers) files {
	t.Helper()
	script := "put /registry/namespaces/default {}\nput " + secretsDir + "plain `{\"plain\":1}`\ngrant 9 600\n"
	for name, by := range encrypted {
		key := secretsDir + name
		script += "put " + key + " " + strconv.Quote(secrettest.Encrypt(t, by, "secrets", key, `{"name":"`+name+`"}`)) +
			" lease=9\n"
	}
	return files{etcdtest.Build(t, script), filepath.Join(t.TempDir(), "out.db")}
}

// decrypted returns the plaintext of stored, which must begin with by.
func decrypted(t testing.TB, with *encryption.Transformers, key, stored, by string) string {
	t.Helper()
	require.True(t, strings.HasPrefix(stored, by), "%.30q", stored)
	plain, _, err := with.Decrypt(context.Background(), schema.GroupResource{Resource: "secrets"},
		[]byte(key), []byte(stored))
	require.NoError(t, err)
	return string(plain)
}

// TestPutEncrypts checks that a Put value is read decrypted and stored encrypted by the first
// provider.
func TestPutEncrypts(t *testing.T) {
	old, now := encrypter(t, "secretbox=o"), encrypter(t, "aesgcm=n", "secretbox=o", "identity")
	f := secretsOf(t, map[string]*encryption.Transformers{"a": old, "same": old})
	before := live(t, f.in)
	r := f.run(t, Options{Encryption: now}, func(ctx context.Context, v *View) {
		for name, value := range map[string]string{"a": "changed", "new": "made", "plain": "encrypted now",
			"same": `{"name":"same"}`} {
			key := []byte(secretsDir + name)
			require.NoError(t, v.Put(ctx, key, []byte("put back")))
			require.NoError(t, v.Put(ctx, key, []byte(value)))
			e, err := v.Get(ctx, key)
			require.NoError(t, err)
			require.Equal(t, value, string(e.Value))
			require.NoError(t, e.Undecryptable)
			if name == "a" {
				require.EqualValues(t, 9, e.Lease)
			}
		}
		require.NoError(t, v.Put(ctx, []byte("/registry/configmaps/ns/c"), []byte("clear")))
	})
	require.Equal(t, Changes{Created: 2, Updated: 2}, r.Changes)
	got := live(t, f.out)
	for name, value := range map[string]string{"a": "changed", "new": "made", "plain": "encrypted now"} {
		require.Equal(t, value, decrypted(t, now, secretsDir+name, got[secretsDir+name], "k8s:enc:aesgcm:v1:n:"))
	}
	require.Equal(t, before[secretsDir+"same"], got[secretsDir+"same"], "an unchanged value keeps its ciphertext")
	require.Equal(t, "clear", got["/registry/configmaps/ns/c"])
}

// TestNeverPlaintext checks that Put, Derive and Rewrap never store an encrypted value as
// plaintext, with or without a configuration; the value is reported once and stays.
func TestNeverPlaintext(t *testing.T) {
	by := encrypter(t, "aescbc=a")
	key, clear := []byte(secretsDir+"a"), []byte("/registry/configmaps/ns/c")
	acts := map[string]func(ctx context.Context, v *View) (bool, error){
		"put":    func(ctx context.Context, v *View) (bool, error) { return false, v.Put(ctx, key, []byte("x")) },
		"derive": func(ctx context.Context, v *View) (bool, error) { return v.Derive(ctx, key, clear, []byte("x")) },
		"derive to a new": func(ctx context.Context, v *View) (bool, error) {
			return v.Derive(ctx, key, []byte("/other"), []byte("x"))
		},
		"derive onto it": func(ctx context.Context, v *View) (bool, error) {
			return v.Derive(ctx, clear, key, []byte("x"))
		},
		"rewrap": func(ctx context.Context, v *View) (bool, error) { return v.Rewrap(ctx, key) },
	}
	for name, act := range acts {
		for _, encrypter := range []Encrypter{nil, encrypter(t, "identity", "aescbc=a")} {
			if encrypter != nil && strings.HasSuffix(name, "to a new") || encrypter == nil && name == "rewrap" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				f := secretsOf(t, map[string]*encryption.Transformers{"a": by})
				o := Options{In: f.in, Out: f.out, Encryption: encrypter, Allow: []string{CodeWouldBePlaintext.Name}}
				r, err := Run(context.Background(), o, planFunc(func(ctx context.Context, v *View) error {
					staged, err := act(ctx, v)
					require.False(t, staged)
					return err
				}))
				require.NoError(t, err)
				require.Equal(t, Unchanged, r.Outcome)
				require.Len(t, r.Problems, 1)
				require.Equal(t, []any{string(key), CodeWouldBePlaintext, finding.Skipped},
					[]any{r.Problems[0].Key, r.Problems[0].Code, r.Problems[0].Outcome})
				require.Contains(t, r.Problems[0].Reason, "would be stored in the clear")
				o.Allow = nil
				o.Out = filepath.Join(t.TempDir(), "refused.db")
				_, err = Run(context.Background(), o, planFunc(func(ctx context.Context, v *View) error {
					_, err := act(ctx, v)
					return err
				}))
				require.ErrorIs(t, err, ErrRefused)
			})
		}
	}
}

// TestDerive checks that a value derived from an encrypted value is encrypted under its own key.
func TestDerive(t *testing.T) {
	by := encrypter(t, "aesgcm=a")
	f := secretsOf(t, map[string]*encryption.Transformers{"a": by})
	moved := secretsDir + "moved"
	f.run(t, Options{Encryption: by}, func(ctx context.Context, v *View) {
		e, err := v.Get(ctx, []byte(secretsDir+"a"))
		require.NoError(t, err)
		staged, err := v.Derive(ctx, e.Key, []byte(moved), e.Value)
		require.True(t, staged)
		require.NoError(t, err)
		reason, err := v.Exposes(ctx, e.Key, []byte(moved))
		require.NoError(t, err)
		require.Empty(t, reason)
		for _, bad := range []struct{ key, value string }{{"", "x"}, {moved, ""}} {
			_, err := v.Derive(ctx, e.Key, []byte(bad.key), []byte(bad.value))
			require.ErrorContains(t, err, "must not be empty")
		}
		require.NoError(t, v.Delete(ctx, e.Key))
	})
	got := live(t, f.out)
	require.Equal(t, `{"name":"a"}`, decrypted(t, by, moved, got[moved], "k8s:enc:aesgcm:v1:a:"))
	require.NotContains(t, got, secretsDir+"a")
}

// TestExposes checks that only an encrypted value that would be stored as plaintext is exposed.
func TestExposes(t *testing.T) {
	f := secretsOf(t, map[string]*encryption.Transformers{"a": encrypter(t, "aescbc=a")})
	for _, tt := range []struct {
		encrypter Encrypter
		from, to  string
		exposes   bool
	}{
		{nil, "a", "a", true}, {nil, "plain", "a", false}, {nil, "none", "a", false},
		{encrypter(t, "aescbc=z"), "a", "b", false}, {encrypter(t, "identity"), "a", "b", true},
		{encrypter(t, "aescbc=z"), "a", "../../configmaps/ns/c", true},
	} {
		f.run(t, Options{DryRun: true, Encryption: tt.encrypter}, func(ctx context.Context, v *View) {
			reason, err := v.Exposes(ctx, []byte(secretsDir+tt.from), []byte(filepath.Clean(secretsDir+tt.to)))
			require.NoError(t, err)
			require.Equal(t, tt.exposes, reason != "", "%s to %s: %s", tt.from, tt.to, reason)
		})
	}
}

// TestRewrap stages each value that the first key does not encrypt yet, once.
func TestRewrap(t *testing.T) {
	old, now := encrypter(t, "aescbc=o"), encrypter(t, "aescbc=no")
	f := secretsOf(t, map[string]*encryption.Transformers{"old": old, "now": now, "lost": encrypter(t, "aescbc=x"),
		"put": old})
	keys := map[string]bool{"old": true, "plain": true, "now": false, "lost": false, "put": false, "none": false}
	plan := planFunc(func(ctx context.Context, v *View) error {
		require.NoError(t, v.Put(ctx, []byte(secretsDir+"put"), []byte("{}")))
		for name, want := range keys {
			got, err := v.Rewrap(ctx, []byte(secretsDir+name))
			require.NoError(t, err)
			require.Equal(t, want, got, name)
		}
		return v.Put(ctx, []byte(secretsDir+"old"), []byte(`{"name":"old"}`)) // stays, under its new key
	})
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: now}, plan)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	before, got := live(t, f.in), live(t, f.out)
	require.Equal(t, `{"name":"old"}`, decrypted(t, now, secretsDir+"old", got[secretsDir+"old"],
		"k8s:enc:aescbc:v1:n:"))
	require.Equal(t, "{}", decrypted(t, now, secretsDir+"put", got[secretsDir+"put"], "k8s:enc:aescbc:v1:n:"))
	require.Equal(t, []string{before[secretsDir+"now"], before[secretsDir+"lost"]},
		[]string{got[secretsDir+"now"], got[secretsDir+"lost"]})
	none, err := Run(context.Background(), Options{In: f.in, Out: filepath.Join(t.TempDir(), "o.db")},
		planFunc(func(ctx context.Context, v *View) error {
			_, err := v.Rewrap(ctx, []byte(secretsDir+"old"))
			return err
		}))
	require.NoError(t, err)
	require.Equal(t, Unchanged, none.Outcome, "without a configuration there is nothing to rewrap by")
}

// TestUndecryptableSaysWhy checks that a finding about an encrypted value includes the reason,
// after scans and after single reads.
func TestUndecryptableSaysWhy(t *testing.T) {
	f := secretsOf(t, map[string]*encryption.Transformers{"a": encrypter(t, "aescbc=a"), "b": encrypter(t, "aescbc=a")})
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: encrypter(t, "aescbc=z")},
		planFunc(func(ctx context.Context, v *View) error {
			e, err := v.Get(ctx, []byte(secretsDir+"a"))
			require.NoError(t, err)
			require.ErrorIs(t, e.Undecryptable, encoding.ErrEncrypted)
			for _, err := range v.Live(ctx, []byte(secretsDir)) {
				require.NoError(t, err)
			}
			v.Raise(secretsDir+"a", finding.Encrypted.Because("it cannot be read"))
			_, err = encoding.Parse(e.Stored)
			v.Raise(secretsDir+"b", finding.Encrypted.Because("it cannot be read: %v", err))
			v.Raise(secretsDir+"plain", finding.Encrypted.Because("odd"))
			return nil
		}))
	require.ErrorIs(t, err, ErrRefused)
	for _, p := range r.Problems[:2] {
		require.Contains(t, p.Reason, "it cannot be read: ")
		require.Equal(t, 1, strings.Count(p.Reason, "aescbc:v1:a"), "the reason is said once: %s", p.Reason)
	}
	require.Equal(t, "odd", r.Problems[2].Reason)
}

// TestDeleteAgain checks that a Delete cancels a staged Put of its key, and a Put a staged Delete.
func TestDeleteAgain(t *testing.T) {
	f := input(t)
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out},
		planFunc(func(ctx context.Context, v *View) error {
			require.NoError(t, v.Put(ctx, []byte("/new"), []byte("1")))
			require.NoError(t, v.Delete(ctx, []byte("/new")))
			require.NoError(t, v.Delete(ctx, []byte("/a")))
			require.NoError(t, v.Put(ctx, []byte("/a"), []byte("back")))
			require.NoError(t, v.Put(ctx, []byte("/b"), []byte("x")))
			require.NoError(t, v.Delete(ctx, []byte("/b")))
			return v.Put(ctx, []byte("/leased"), []byte("y"))
		}))
	require.NoError(t, err)
	require.Equal(t, Changes{Updated: 2, Deleted: 1}, r.Changes)
	got := live(t, f.out)
	require.Equal(t, "back", got["/a"])
	require.NotContains(t, got, "/b")
	require.NotContains(t, got, "/new")
}

// TestPlaintext checks that after Plaintext all values are written unencrypted, including unchanged
// values.
func TestPlaintext(t *testing.T) {
	for _, by := range []*encryption.Transformers{encrypter(t, "aescbc=a"), encrypter(t, "aescbc=a", "identity")} {
		f := secretsOf(t, map[string]*encryption.Transformers{"a": by, "same": by})
		before := live(t, f.in)
		r := f.run(t, Options{Encryption: by}, func(ctx context.Context, v *View) {
			require.NoError(t, v.Put(ctx, []byte(secretsDir+"a"), []byte("changed"))) // as an earlier step
			v.Make(Output{Plaintext: true})
			for name, value := range map[string]string{"a": "changed", "same": `{"name":"same"}`} {
				require.NoError(t, v.Put(ctx, []byte(secretsDir+name), []byte(value)))
			}
		})
		require.Equal(t, Changes{Updated: 2}, r.Changes)
		got := live(t, f.out)
		require.Equal(t, "changed", got[secretsDir+"a"])
		require.Equal(t, `{"name":"same"}`, got[secretsDir+"same"])
		require.Equal(t, before[secretsDir+"plain"], got[secretsDir+"plain"])
	}
}
