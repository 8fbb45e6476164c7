package crop

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/remove"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// purge runs a command line of purge with the archive, with all codes allowed.
func purge(t testing.TB, in, line, archive string) (*transform.Report, string, error) {
	t.Helper()
	return purgeAllowing(t, in, line, archive, finding.Allowable(remove.PurgeSpec.Codes)...)
}

// everyLive returns all live records.
func everyLive(t testing.TB, path string) []snapshot.Record {
	t.Helper()
	all := []snapshot.Record{}
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		one := *rec
		one.Key, one.Value = slices.Clone(rec.Key), slices.Clone(rec.Value)
		all = append(all, one)
	}
	return all
}

// TestPartition checks random selections of each recorded file: extract and purge divide the live
// records, with --scrub too; purge with the archive checks all others against the sum in the
// manifest.
func TestPartition(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			all, _, _ := live(t, path)
			before := everyLive(t, path)
			random := rand.New(rand.NewPCG(9, uint64(len(all))))
			for i := range 4 {
				line, want := selection(random, all)
				if line == "" {
					return // kcp
				}
				if !slices.ContainsFunc(all, want) {
					continue
				}
				more := []string{"", " --scrub"}[i%2]
				_, archive, err := extract(t, path, line+[]string{"", " --needed"}[i/2])
				require.NoError(t, err, line)
				r, out, err := purge(t, path, line+more, archive)
				require.NoError(t, err, "%s: %v", line, r.Problems)
				part := slices.DeleteFunc(slices.Clone(all), func(one stored) bool { return !want(one) })
				gone := map[string]bool{}
				for _, one := range part {
					gone[string(one.Record.Key)] = true
				}
				rest := slices.DeleteFunc(slices.Clone(before),
					func(one snapshot.Record) bool { return gone[string(one.Key)] })
				require.Equal(t, rest, everyLive(t, out), line)
				require.Equal(t, len(part), r.Changes.Deleted, line)
				_, again, err := purge(t, path, line+more, archive)
				require.NoError(t, err, line)
				require.Equal(t, read(t, out), read(t, again), line)
			}
		})
	}
}

// TestPurgeHeld checks that purge deletes nothing that the archive does not have.
func TestPurgeHeld(t *testing.T) {
	in := shop(t)
	_, whole, err := extract(t, in, "--namespace=a")
	require.NoError(t, err)
	for line, want := range map[string]string{
		"--namespace=a,b":           "or revision: 2; this is the first",
		"deployments --namespace=a": "does not delete: ",
	} {
		r, out, err := purge(t, in, line, whole)
		require.ErrorIs(t, err, transform.ErrRefused, line)
		require.Equal(t, "not-in-archive", r.Problems[len(r.Problems)-1].Code.Name, line)
		require.Contains(t, r.Problems[len(r.Problems)-1].Reason, want)
		require.NoFileExists(t, out)
	}
	_, needed, err := extract(t, in, "--namespace=b --needed")
	require.NoError(t, err)
	_, _, err = purge(t, in, "--namespace=b", needed)
	require.NoError(t, err)
	_, _, err = purge(t, whole, "--namespace=a", "")
	require.ErrorContains(t, err, "the file is an archive")
	_, _, err = purge(t, in, "--namespace=a", in)
	require.ErrorContains(t, err, "not an archive")
}

// TestPurgeContents checks that a Namespace or definition is not purged without its objects.
func TestPurgeContents(t *testing.T) {
	in := shop(t)
	for line, want := range map[string]string{
		"namespaces/a": "namespace-has-objects",
		"customresourcedefinitions/widgets.demo.example.com": "crd-has-objects",
	} {
		r, _, err := purgeAllowing(t, in, line, "")
		require.ErrorIs(t, err, transform.ErrRefused, line)
		require.Equal(t, want, r.Problems[0].Code.Name, line)
		_, out, err := purge(t, in, line, "")
		require.NoError(t, err, line)
		require.Len(t, everyLive(t, out), len(everyLive(t, in))-1, "only the selected record is deleted")
	}
	r, _, err := purgeAllowing(t, in, "--namespace=a", "")
	require.NoError(t, err, "%v", r.Problems)
	r, out, err := purgeAllowing(t, in, "--prefix=/registry", "")
	require.NoError(t, err, "%v", r.Problems)
	all, _, _ := live(t, out)
	require.Empty(t, all)
}

// purgeAllowing runs a command line of purge.
func purgeAllowing(
	t testing.TB, in, line, archive string, allow ...string,
) (*transform.Report, string, error) {
	t.Helper()
	spec := remove.PurgeSpec
	if archive != "" {
		line += " --archive=" + archive
	}
	spec.New = func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
		a.Open = func(ctx context.Context, path, _ string) (*transform.File, error) {
			s, err := snapshot.Open(ctx, path, snapshot.Config{})
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return &transform.File{Reader: inspect.NewReader(s, nil)}, nil
		}
		return remove.PurgeSpec.New(ctx, a)
	}
	return runLine(t, spec, in, line, allow...)
}
