package transform

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
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
)

// encrypter encrypts Secrets by its first provider: "aescbc=ab" has two keys, named after the
// letters they are made of.
func encrypter(t testing.TB, providers ...string) *encryption.Transformers {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"
	for _, word := range providers {
		provider, letters, _ := strings.Cut(word, "=")
		if letters == "" {
			text += "  - " + provider + ": {}\n"
			continue
		}
		text += "  - " + provider + ":\n      keys:\n"
		for _, letter := range letters {
			text += fmt.Sprintf("      - {name: key-%c, secret: %s}\n", letter, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(letter), 32))))
		}
	}
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	loaded, err := encryption.Load(context.Background(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loaded.Close()) })
	return loaded
}

const secretsDir = "/registry/secrets/ns/"

// secretsOf builds a snapshot with a plaintext Secret and one encrypted Secret for each name.
func secretsOf(t testing.TB, encrypted map[string]*encryption.Transformers) files {
	t.Helper()
	script := "put /registry/namespaces/default {}\nput " + secretsDir + "plain `{\"plain\":1}`\ngrant 9 600\n"
	for name, by := range encrypted {
		key := secretsDir + name
		script += "put " + key + " " + strconv.Quote(encryptedBy(t, by, key, `{"name":"`+name+`"}`)) + " lease=9\n"
	}
	return files{etcdtest.Build(t, script), filepath.Join(t.TempDir(), "out.db")}
}

func encryptedBy(t testing.TB, by *encryption.Transformers, key, plain string) string {
	t.Helper()
	value, err := by.Encrypt(context.Background(), schema.GroupResource{Resource: "secrets"}, []byte(key), []byte(plain))
	require.NoError(t, err)
	return string(value)
}

// decrypted returns the plaintext of stored, which must begin with by.
func decrypted(t testing.TB, with *encryption.Transformers, key, stored, by string) string {
	t.Helper()
	require.True(t, strings.HasPrefix(stored, by), "%.30q", stored)
	plain, _, err := with.Decrypt(context.Background(), schema.GroupResource{Resource: "secrets"}, []byte(key), []byte(stored))
	require.NoError(t, err)
	return string(plain)
}

// TestPutEncrypts: a Put is read back decrypted, and stored by the first provider.
func TestPutEncrypts(t *testing.T) {
	old, now := encrypter(t, "secretbox=o"), encrypter(t, "aesgcm=n", "secretbox=o", "identity")
	f := secretsOf(t, map[string]*encryption.Transformers{"a": old, "same": old})
	before := live(t, f.in)
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: now}, planFunc(func(ctx context.Context, v *View) error {
		for name, value := range map[string]string{"a": "changed", "new": "made", "plain": "encrypted now", "same": `{"name":"same"}`} {
			key := []byte(secretsDir + name)
			require.NoError(t, v.Put(ctx, key, []byte(value)))
			e, err := v.Get(ctx, key)
			require.NoError(t, err)
			require.Equal(t, value, string(e.Value))
			require.NoError(t, e.Undecryptable)
			if name == "a" {
				require.EqualValues(t, 9, e.Lease)
			}
		}
		return v.Put(ctx, []byte("/registry/configmaps/ns/c"), []byte("clear"))
	}))
	require.NoError(t, err)
	require.Equal(t, Changes{Created: 2, Updated: 2}, r.Changes)
	got := live(t, f.out)
	for name, value := range map[string]string{"a": "changed", "new": "made", "plain": "encrypted now"} {
		require.Equal(t, value, decrypted(t, now, secretsDir+name, got[secretsDir+name], "k8s:enc:aesgcm:v1:key-n:"))
	}
	require.Equal(t, before[secretsDir+"same"], got[secretsDir+"same"], "an unchanged value keeps its ciphertext")
	require.Equal(t, "clear", got["/registry/configmaps/ns/c"])
}

// TestPutBack: a value that is put and then put back is not written at all.
func TestPutBack(t *testing.T) {
	by := encrypter(t, "aescbc=a")
	f := secretsOf(t, map[string]*encryption.Transformers{"a": by})
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: by}, planFunc(func(ctx context.Context, v *View) error {
		key := []byte(secretsDir + "a")
		require.NoError(t, v.Put(ctx, key, []byte("other")))
		return v.Put(ctx, key, []byte(`{"name":"a"}`))
	}))
	require.NoError(t, err)
	require.Equal(t, Unchanged, r.Outcome)
}

// TestNeverPlaintext: Put, Derive and Rewrap never store an encrypted value as plaintext, with or
// without a configuration; the value is reported once and stays.
func TestNeverPlaintext(t *testing.T) {
	by := encrypter(t, "aescbc=a")
	key, clear := []byte(secretsDir+"a"), []byte("/registry/configmaps/ns/c")
	acts := map[string]func(ctx context.Context, v *View) (bool, error){
		"put":    func(ctx context.Context, v *View) (bool, error) { return false, v.Put(ctx, key, []byte("x")) },
		"derive": func(ctx context.Context, v *View) (bool, error) { return v.Derive(ctx, key, clear, []byte("x")) },
		"derive to a new": func(ctx context.Context, v *View) (bool, error) {
			return v.Derive(ctx, key, []byte("/other"), []byte("x"))
		},
		"derive onto it": func(ctx context.Context, v *View) (bool, error) { return v.Derive(ctx, clear, key, []byte("x")) },
		"rewrap":         func(ctx context.Context, v *View) (bool, error) { return v.Rewrap(ctx, key) },
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
				require.Equal(t, []any{string(key), CodeWouldBePlaintext, finding.Skipped}, []any{r.Problems[0].Key, r.Problems[0].Code, r.Problems[0].Outcome})
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

// TestDerive: a value derived from an encrypted one is encrypted under its own key.
func TestDerive(t *testing.T) {
	by := encrypter(t, "aesgcm=a")
	f := secretsOf(t, map[string]*encryption.Transformers{"a": by})
	moved := secretsDir + "moved"
	_, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: by}, planFunc(func(ctx context.Context, v *View) error {
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
		return v.Delete(ctx, e.Key)
	}))
	require.NoError(t, err)
	got := live(t, f.out)
	require.Equal(t, `{"name":"a"}`, decrypted(t, by, moved, got[moved], "k8s:enc:aesgcm:v1:key-a:"))
	require.NotContains(t, got, secretsDir+"a")
}

// TestExposes: only an encrypted value that would be stored as plaintext is exposed.
func TestExposes(t *testing.T) {
	f := secretsOf(t, map[string]*encryption.Transformers{"a": encrypter(t, "aescbc=a")})
	for _, tt := range []struct {
		encrypter Encrypter
		from, to  string
		exposes   bool
	}{
		{nil, "a", "a", true}, {nil, "plain", "a", false}, {nil, "none", "a", false},
		{encrypter(t, "aescbc=z"), "a", "b", false}, {encrypter(t, "identity"), "a", "b", true}, {encrypter(t, "aescbc=z"), "a", "../../configmaps/ns/c", true},
	} {
		_, err := Run(context.Background(), Options{In: f.in, Out: f.out, DryRun: true, Encryption: tt.encrypter}, planFunc(func(ctx context.Context, v *View) error {
			reason, err := v.Exposes(ctx, []byte(secretsDir+tt.from), []byte(filepath.Clean(secretsDir+tt.to)))
			require.NoError(t, err)
			require.Equal(t, tt.exposes, reason != "", "%s to %s: %s", tt.from, tt.to, reason)
			return nil
		}))
		require.NoError(t, err)
	}
}

// TestRewrap stages each value that the first key does not encrypt yet, once.
func TestRewrap(t *testing.T) {
	old, now := encrypter(t, "aescbc=o"), encrypter(t, "aescbc=no")
	f := secretsOf(t, map[string]*encryption.Transformers{"old": old, "now": now, "lost": encrypter(t, "aescbc=x"), "put": old})
	keys := map[string]bool{"old": true, "plain": true, "now": false, "lost": false, "put": false, "none": false}
	plan := planFunc(func(ctx context.Context, v *View) error {
		require.NoError(t, v.Put(ctx, []byte(secretsDir+"put"), []byte("{}")))
		for name, want := range keys {
			got, err := v.Rewrap(ctx, []byte(secretsDir+name))
			require.NoError(t, err)
			require.Equal(t, want, got, name)
		}
		return nil
	})
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: now}, plan)
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	before, got := live(t, f.in), live(t, f.out)
	require.Equal(t, `{"name":"old"}`, decrypted(t, now, secretsDir+"old", got[secretsDir+"old"], "k8s:enc:aescbc:v1:key-n:"))
	require.Equal(t, "{}", decrypted(t, now, secretsDir+"put", got[secretsDir+"put"], "k8s:enc:aescbc:v1:key-n:"))
	require.Equal(t, []string{before[secretsDir+"now"], before[secretsDir+"lost"]}, []string{got[secretsDir+"now"], got[secretsDir+"lost"]})
	none, err := Run(context.Background(), Options{In: f.in, Out: filepath.Join(t.TempDir(), "o.db")}, planFunc(func(ctx context.Context, v *View) error {
		_, err := v.Rewrap(ctx, []byte(secretsDir+"old"))
		return err
	}))
	require.NoError(t, err)
	require.Equal(t, Unchanged, none.Outcome, "without a configuration there is nothing to rewrap by")
}

// TestUndecryptableSaysWhy: who reports that a value is encrypted has the reason added, in scans
// and single reads alike.
func TestUndecryptableSaysWhy(t *testing.T) {
	f := secretsOf(t, map[string]*encryption.Transformers{"a": encrypter(t, "aescbc=a"), "b": encrypter(t, "aescbc=a")})
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: encrypter(t, "aescbc=z")}, planFunc(func(ctx context.Context, v *View) error {
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
		require.Equal(t, 1, strings.Count(p.Reason, "aescbc:v1:key-a"), "the reason is said once: %s", p.Reason)
	}
	require.Equal(t, "odd", r.Problems[2].Reason)
}

// TestDeleteAgain: a Delete cancels a staged Put of its key, and a Put a staged Delete.
func TestDeleteAgain(t *testing.T) {
	f := input(t)
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out}, planFunc(func(ctx context.Context, v *View) error {
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

// TestPutKeepsRewrap: a value that is put again as it was stored stays under its new key.
func TestPutKeepsRewrap(t *testing.T) {
	old, now := encrypter(t, "secretbox=o"), encrypter(t, "aesgcm=n", "secretbox=o", "identity")
	f, key := secretsOf(t, map[string]*encryption.Transformers{"a": old}), secretsDir+"a"
	_, err := Run(t.Context(), Options{In: f.in, Out: f.out, Encryption: now}, planFunc(func(ctx context.Context, v *View) error {
		rewrapped, err := v.Rewrap(ctx, []byte(key))
		require.NoError(t, err)
		require.True(t, rewrapped)
		return v.Put(ctx, []byte(key), []byte(`{"name":"a"}`))
	}))
	require.NoError(t, err)
	decrypted(t, now, key, live(t, f.out)[key], "k8s:enc:aesgcm")
}

// TestPlaintext: after Plaintext, values are written in the clear, those too that do not change.
func TestPlaintext(t *testing.T) {
	for _, by := range []*encryption.Transformers{encrypter(t, "aescbc=a"), encrypter(t, "aescbc=a", "identity")} {
		f := secretsOf(t, map[string]*encryption.Transformers{"a": by, "same": by})
		before := live(t, f.in)
		r, err := Run(context.Background(), Options{In: f.in, Out: f.out, Encryption: by}, planFunc(func(ctx context.Context, v *View) error {
			v.Make(Output{Plaintext: true})
			for name, value := range map[string]string{"a": "changed", "same": `{"name":"same"}`} {
				require.NoError(t, v.Put(ctx, []byte(secretsDir+name), []byte(value)))
			}
			return nil
		}))
		require.NoError(t, err)
		require.Equal(t, Changes{Updated: 2}, r.Changes)
		got := live(t, f.out)
		require.Equal(t, "changed", got[secretsDir+"a"])
		require.Equal(t, `{"name":"same"}`, got[secretsDir+"same"])
		require.Equal(t, before[secretsDir+"plain"], got[secretsDir+"plain"])
	}
}

// TestPlaintextOfSteps: a value that an earlier step staged is written in the clear too, where the
// step with Plaintext has nothing to change in it.
func TestPlaintextOfSteps(t *testing.T) {
	by := encrypter(t, "aescbc=a")
	f, key := secretsOf(t, map[string]*encryption.Transformers{"a": by}), secretsDir+"a"
	_, err := Run(t.Context(), Options{In: f.in, Out: f.out, Encryption: by}, planFunc(func(ctx context.Context, v *View) error {
		require.NoError(t, v.Put(ctx, []byte(key), []byte("changed")))
		v.Make(Output{Plaintext: true})
		return v.Put(ctx, []byte(key), []byte("changed"))
	}))
	require.NoError(t, err)
	require.Equal(t, "changed", live(t, f.out)[key])
}
