package transform

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestCreate checks that new records get their granted leases, and the lease ids are unused in the
// file.
func TestCreate(t *testing.T) {
	f := input(t)
	f.run(t, Options{}, func(ctx context.Context, v *View) {
		other, err := v.Grant(ctx, 9, 60)
		require.NoError(t, err)
		require.NotEqual(t, int64(9), other, "which /leased has")
		again, err := v.Grant(ctx, 9, 60)
		require.NoError(t, err)
		require.Equal(t, other, again)
		free, err := v.Grant(ctx, 10, 60)
		require.NoError(t, err)
		require.Equal(t, int64(10), free)
		longer, err := v.Grant(ctx, 10, 61)
		require.NoError(t, err)
		require.NotContains(t, []int64{9, 10, other}, longer)
		_, err = v.Grant(ctx, 0, 60)
		require.ErrorContains(t, err, "cannot be granted")
		_, err = v.Grant(ctx, 11, 0)
		require.ErrorContains(t, err, "cannot be granted")

		require.NoError(t, v.Create(ctx, []byte("/one"), []byte("1"), other))
		require.NoError(t, v.Create(ctx, []byte("/two"), []byte("2"), longer))
		require.NoError(t, v.CreateStored(ctx, []byte("/three"), []byte("3"), free))
		require.NoError(t, v.Create(ctx, []byte("/four"), []byte("4"), 0))
		require.ErrorIs(t, v.Create(ctx, []byte("/one"), []byte("1"), 0), ErrExists, "staged")
		require.ErrorIs(t, v.Create(ctx, []byte("/a"), []byte("1"), 0), ErrExists, "in the file")
		require.Error(t, v.Create(ctx, []byte("/five"), nil, 0))
		require.NoError(t, v.Put(ctx, []byte("/one"), []byte("2")), "it keeps the lease")
	})
	server := etcdtest.Start(t, etcdtest.Restore(t, f.out))
	require.Equal(t, "2", live(t, f.out)["/one"])
	ttls := map[string]int64{}
	for _, kv := range etcdtest.Dump(t, server, 0) {
		if kv.Lease == 0 {
			continue
		}
		lease, err := server.Client.TimeToLive(t.Context(), clientv3.LeaseID(kv.Lease))
		require.NoError(t, err)
		ttls[string(kv.Key)] = lease.GrantedTTL
	}
	require.Equal(t, map[string]int64{"/leased": 600, "/one": 60, "/two": 61, "/three": 60}, ttls)
}

// TestCreateEncrypts checks that a created record is encrypted as a server would, and a stored form
// is not encrypted again.
func TestCreateEncrypts(t *testing.T) {
	by := encrypter(t, "secretbox=a")
	f := secretsOf(t, nil)
	verbatim := secrettest.Encrypt(t, by, "secrets", secretsDir+"moved", "moved")
	f.run(t, Options{Encryption: by}, func(ctx context.Context, v *View) {
		for key, want := range map[string]bool{secretsDir + "made": true, "/registry/configmaps/ns/c": false} {
			encrypts, err := v.Encrypts(ctx, []byte(key))
			require.NoError(t, err)
			require.Equal(t, want, encrypts, key)
			require.NoError(t, v.Create(ctx, []byte(key), []byte("made"), 0))
		}
		require.NoError(t, v.CreateStored(ctx, []byte(secretsDir+"moved"), []byte(verbatim), 0))
	})
	got := live(t, f.out)
	require.Equal(t, "made", got["/registry/configmaps/ns/c"])
	require.Equal(t, verbatim, got[secretsDir+"moved"])
	plain, _, err := by.Decrypt(t.Context(), schema.GroupResource{Resource: "secrets"}, []byte(secretsDir+"made"),
		[]byte(got[secretsDir+"made"]))
	require.NoError(t, err)
	require.Equal(t, "made", string(plain))
}

// TestScrub checks that the file has neither the scrubbed keys nor their values.
func TestScrub(t *testing.T) {
	f := input(t)
	r := f.run(t, Options{}, func(ctx context.Context, v *View) {
		v.Make(Output{Scrub: func(key []byte) bool { return bytes.HasPrefix(key, []byte("/leas")) }})
		require.NoError(t, v.Delete(ctx, []byte("/leased")))
	})
	require.Equal(t, Changes{Deleted: 1}, r.Changes)
	got := live(t, f.out)
	require.Len(t, got, 3)
	require.NotContains(t, got, "/leased")
	require.Greater(t, r.Output.Revision, r.Input.Revision)
	require.NotContains(t, fileText(t, f.out), "/leased")
}

// TestCompact checks that staged changes are compacted with the rest, and a second compaction
// changes nothing. Each of several compactions in a run removes its selection.
func TestCompact(t *testing.T) {
	f := input(t)
	run := func(in, out string, first, second snapshot.Compaction) *Report {
		r, err := Run(context.Background(), Options{In: in, Out: out},
			planFunc(func(ctx context.Context, v *View) error {
				v.Make(Output{Compact: &first})
				require.NoError(t, v.Put(ctx, []byte("/b"), []byte("changed")))
				require.NoError(t, v.Delete(ctx, []byte("/leased")))
				v.Make(Output{Compact: &second})
				return nil
			}))
		require.NoError(t, err)
		return r
	}
	r := run(f.in, f.out, snapshot.Compaction{Keep: 3}, snapshot.Compaction{LiveOnly: true})
	require.Equal(t, Written, r.Outcome)
	require.Equal(t, Changes{Updated: 1, Deleted: 1}, r.Changes)
	require.Equal(t, r.Input.Revision+2, r.Output.Revision)
	require.NotContains(t, fileText(t, f.out), "/leased")
	require.Equal(t, "changed", live(t, f.out)["/b"])
	out, err := snapshot.Open(t.Context(), f.out, snapshot.Config{})
	require.NoError(t, err)
	defer out.Close()
	oldest, newest, err := out.Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{r.Output.Revision, r.Output.Revision}, []int64{oldest, newest})
	again := run(f.out, f.out+"2", snapshot.Compaction{Keep: 3}, snapshot.Compaction{})
	require.Equal(t, Unchanged, again.Outcome)
	require.Equal(t, r.Output.SHA256, again.Output.SHA256)
}

// TestCheckOutput checks that an output without approval of its transform never gets its name.
func TestCheckOutput(t *testing.T) {
	f := input(t)
	plan := func(check func(ctx context.Context, v *View, out *inspect.Reader) error) planFunc {
		return func(ctx context.Context, v *View) error {
			v.Make(Output{Check: func(ctx context.Context, out *inspect.Reader) error { return check(ctx, v, out) }})
			return v.Put(ctx, []byte("/b"), []byte("changed"))
		}
	}
	wrong := errors.New("not what I wanted")
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out},
		plan(func(context.Context, *View, *inspect.Reader) error {
			return wrong
		}))
	require.ErrorIs(t, err, wrong)
	require.Equal(t, Failed, r.Outcome)
	noOutput(t, f)

	seen := ""
	_, err = Run(context.Background(), Options{In: f.in, Out: f.out},
		plan(func(ctx context.Context, v *View, out *inspect.Reader) error {
			noOutput(t, f)
			e, err := out.Get(ctx, []byte("/b"))
			require.NoError(t, err)
			seen = string(e.Value)
			before, err := v.Reader().Get(ctx, []byte("/b"))
			require.NoError(t, err)
			require.Equal(t, "two", string(before.Value), "what is staged is not seen")
			return nil
		}))
	require.NoError(t, err)
	require.Equal(t, "changed", seen)
}

// TestGoOn checks that an allowed problem with the outcome WentOn does not count as an error.
func TestGoOn(t *testing.T) {
	f := input(t)
	odd := &finding.Code{Name: "odd", Level: finding.Error, Allowed: finding.WentOn}
	plan := planFunc(func(ctx context.Context, v *View) error {
		if v.Raise("/b", odd.Because("it is odd")) {
			return v.Delete(ctx, []byte("/b"))
		}
		return nil
	})
	r, err := Run(context.Background(), Options{In: f.in, Out: f.out}, plan)
	require.ErrorIs(t, err, ErrRefused)
	require.Equal(t, []finding.Finding{{Key: "/b", Code: odd, Level: finding.Error, Reason: "it is odd",
		Outcome: finding.Refused}}, r.Problems)
	noOutput(t, f)
	r, err = Run(context.Background(), Options{In: f.in, Out: f.out, Allow: []string{"odd"}}, plan)
	require.NoError(t, err)
	all, refusing := r.Errors()
	require.Zero(t, all)
	require.Zero(t, refusing)
	require.Equal(t, finding.WentOn, r.Problems[0].Outcome)
	require.NotContains(t, live(t, f.out), "/b")
}

func fileText(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// TestGrantTakesNoNamedLease checks that Grant avoids a lease id of a live record without a lease
// in the file: the granted lease would delete that record with its own.
func TestGrantTakesNoNamedLease(t *testing.T) {
	in, out := filepath.Join(t.TempDir(), "in.db"), filepath.Join(t.TempDir(), "out.db")
	_, err := snapshot.Build(t.Context(), in, snapshot.Content{Revision: 2,
		Records: func(yield func(*snapshot.Record, error) bool) {
			yield(&snapshot.Record{
				Revision: snapshot.Revision{Main: 2}, Key: []byte("/theirs"), Value: []byte("stays"),
				CreateRevision: 2, ModRevision: 2, Version: 1, Lease: 77,
			}, nil)
		}}, nil)
	require.NoError(t, err)
	_, err = Run(t.Context(), Options{In: in, Out: out}, planFunc(func(ctx context.Context, v *View) error {
		lease, err := v.Grant(ctx, 77, 60)
		require.NoError(t, err)
		require.NotEqual(t, int64(77), lease)
		return v.Create(ctx, []byte("/n"), []byte("x"), lease)
	}))
	require.NoError(t, err)
	server := etcdtest.Start(t, etcdtest.Restore(t, out))
	lease, err := server.Client.TimeToLive(t.Context(), 77)
	require.NoError(t, err)
	require.EqualValues(t, -1, lease.TTL, "nobody granted it")
}
