package salvage

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// salvageMember salvages the damaged database of a data directory with a log, and returns the
// output.
func salvageMember(t testing.TB, dir, log string, damaged []byte) (*Remains, *snapshot.Snapshot) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "damaged.db")
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	r, err := Open(t.Context(), []string{path}, snapshot.Config{LogDir: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	out := filepath.Join(t.TempDir(), "out.db")
	_, err = r.Write(t.Context(), out, must(publish.Create(out))(t), false, nil)
	require.NoError(t, err)
	s := open(t, out)
	require.Empty(t, findings(t, s))
	return r, s
}

// TestSalvageWithLog damages the database of a member in many ways. A log that begins with an empty
// store gives back everything; other logs give back only records that were there.
func TestSalvageWithLog(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "kube37")
	etcdtest.Keep(t, dir)
	truth := eventsOf(t, "kube37.truth.jsonl.gz")
	member := open(t, dir)
	want, err := member.Status(t.Context())
	require.NoError(t, err)
	w := newWhole(t, filepath.Join(dir, "member", "snap", "db"))
	live := liveAt(t, member, want.Revision)
	is := func(key []byte) bool {
		return slices.ContainsFunc(live, func(kv snapshot.Record) bool { return bytes.Equal(kv.Key, key) })
	}
	part := etcdtest.CutLog(t, dir, 1200)
	var alone, inferred salvaged
	for _, kind := range ruins() {
		for seed := range int64(3) {
			image := w.damaged(kind, rand.New(rand.NewSource(seed)))
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) {
				r, s := salvageMember(t, dir, filepath.Join(dir, "member", "wal"), image)
				require.NotNil(t, r.Log)
				require.False(t, r.Log.Inferred)
				require.Zero(t, r.LostRevisions)
				require.Empty(t, r.Gaps)
				require.Empty(t, r.Unsure)
				require.True(t, reflect.DeepEqual(live, liveAt(t, s, want.Revision)))
				st := must(s.Status(t.Context()))(t)
				require.Equal(t, want.Revision, st.Revision)
				require.Equal(t, want.HashKV, st.HashKV)
				require.Equal(t, must(member.Leases(t.Context()))(t), must(s.Leases(t.Context()))(t))

				if kind == "bit flips" {
					return
				}
				path := filepath.Join(t.TempDir(), "damaged.db")
				require.NoError(t, os.WriteFile(path, image, 0o600))
				r, err := Open(t.Context(), []string{path}, snapshot.Config{})
				require.NoError(t, err)
				alone.lost, alone.unsure = alone.lost+int(r.LostRevisions), alone.unsure+len(r.Unsure)
				require.NoError(t, r.Close())

				r, err = Open(t.Context(), []string{path}, snapshot.Config{LogDir: part})
				if err != nil {
					require.ErrorContains(t, err, "the first entries of the log are gone")
					return
				}
				inferred.lost, inferred.unsure = inferred.lost+int(r.LostRevisions), inferred.unsure+len(r.Unsure)
				inferred.files++
				for _, added := range r.Log.Added {
					inferred.other++
					found := false
					for rev, e := range truth {
						found = found || rev.Main == added.Revision && e.Key == added.Key && e.Del == added.Deleted
					}
					require.True(t, found, "%+v", added)
				}
				out := filepath.Join(t.TempDir(), "out.db")
				_, err = r.Write(t.Context(), out, must(publish.Create(out))(t), false, nil)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				s = open(t, out)
				require.Empty(t, findings(t, s))
				for rec, err := range s.Records(t.Context()) {
					require.NoError(t, err)
					e := truth[rec.Revision]
					require.Equal(t, e.Key, string(rec.Key))
					require.True(t, bytes.Equal(e.Value, rec.Value), "%s", rec.Revision)
				}
				for rec, err := range s.Live(t.Context(), nil) {
					require.NoError(t, err)
					lost := len(r.Lost)+len(r.Gaps) > 0 // also its deletion
					require.True(t, is(rec.Key) || lost, "%s", rec.Key)
				}
			})
		}
	}
	t.Logf("without the log: %d lost, %d unsure; with a part of the log, for %d files: %d lost, %d unsure, %d added",
		alone.lost, alone.unsure, inferred.files, inferred.lost, inferred.unsure, inferred.other)
	require.Greater(t, inferred.other, 0)
	require.Less(t, inferred.unsure, alone.unsure/2)
}

// TestSalvageDataDirectory uses the log of a damaged data directory, up to damage in the log, and
// warns about a useless one. A given log must be of the same cluster.
func TestSalvageDataDirectory(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "kube37")
	db, logs := filepath.Join(dir, "member", "snap", "db"), filepath.Join(dir, "member", "wal")
	image := must(os.ReadFile(db))(t)
	clear(image[:len(image)/2])
	require.NoError(t, os.WriteFile(db, image, 0o600))
	remains := func(cfg snapshot.Config, path string) (*Remains, error) {
		r, err := Open(t.Context(), []string{path}, cfg)
		if err == nil {
			t.Cleanup(func() { require.NoError(t, r.Close()) })
		}
		return r, err
	}
	r, err := remains(snapshot.Config{}, dir)
	require.NoError(t, err)
	require.NotNil(t, r.Log)
	require.Zero(t, r.LostRevisions+int64(len(r.Gaps)+len(r.Unsure)))
	whole := r.LastRevision

	file := filepath.Join(logs, "0000000000000000-0000000000000000.wal")
	log := must(os.ReadFile(file))(t)
	log[len(bytes.TrimRight(log, "\x00"))-4_000] ^= 1
	require.NoError(t, os.WriteFile(file, log, 0o600))
	r, err = remains(snapshot.Config{}, dir)
	require.NoError(t, err)
	require.NotNil(t, r.Log)
	require.Contains(t, fmt.Sprint(r.Warnings()), "crc")
	require.Contains(t, r.Log.Damage, "crc")
	require.NotZero(t, len(r.Gaps), "the log ends before the database")
	require.LessOrEqual(t, r.LastRevision, whole)

	require.NoError(t, os.RemoveAll(logs))
	r, err = remains(snapshot.Config{}, dir)
	require.NoError(t, err)
	require.Nil(t, r.Log)
	require.Contains(t, fmt.Sprint(r.Warnings()), "is not used: no log")
	require.Len(t, r.UnusedLogs, 1)
	_, err = remains(snapshot.Config{LogDir: logs}, db)
	require.ErrorContains(t, err, "no log")
	other := etcdtest.RecordedMember(t, "crash36")
	sound := etcdtest.Unpack(t, etcdtest.Recorded(t, "kube37.snapshot.db.gz"))
	_, err = remains(snapshot.Config{LogDir: other}, sound)
	require.ErrorIs(t, err, errOtherLog)
}
