package crop

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/graft"
	"github.com/etcdshift/etcdshift/internal/remove"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
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

// contents returns the live values and the TTLs of their leases, by key.
func contents(t testing.TB, path string) map[string]content {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	leases, err := s.Leases(context.Background())
	require.NoError(t, err)
	all := map[string]content{}
	for _, one := range everyLive(t, path) {
		if len(one.Key) > 0 { // the record of a raised revision
			all[string(one.Key)] = content{string(one.Value), leases[one.Lease]}
		}
	}
	return all
}

type content struct {
	value string
	ttl   int64
}

// selections is the environment variable with the number of selections of TestPartition.
const selections = "ETCDSHIFT_SELECTIONS"

// TestPartition checks random selections of each recorded file: extract and purge divide the live
// records, with --scrub too; purge with the archive checks all others against the sum in the
// manifest; import joins them again.
func TestPartition(t *testing.T) {
	files := slices.DeleteFunc(fixtures(t), func(path string) bool { return strings.Contains(path, "kcp") })
	each := 2
	if text := os.Getenv(selections); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, selections)
		each = (n + len(files) - 1) / len(files)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			all, _, _ := live(t, path)
			random := rand.New(rand.NewPCG(9, uint64(len(all))))
			for range each {
				line, want := selection(random, all)
				if line == "" {
					return // no records
				}
				part := slices.DeleteFunc(slices.Clone(all), func(one stored) bool { return !want(one) })
				if len(part) > 0 {
					divide(t, path, line, part, random.IntN(8))
				}
			}
		})
	}
}

// divide extracts a selection, purges it, and imports it again; how is a combination of flags.
func divide(t *testing.T, path, line string, part []stored, how int) {
	t.Helper()
	more := []string{"", " --scrub"}[how%2]
	_, archive, err := extract(t, path, line+[]string{"", " --needed"}[how/2%2])
	require.NoError(t, err, line)
	held := []string{archive, ""}[how/4]
	r, out, err := purge(t, path, line+more, held)
	require.NoError(t, err, "%s: %v", line, r.Problems)
	gone := map[string]bool{}
	for _, one := range part {
		gone[string(one.Record.Key)] = true
	}
	before := everyLive(t, path)
	rest := slices.DeleteFunc(before, func(one snapshot.Record) bool { return gone[string(one.Key)] })
	require.Equal(t, rest, everyLive(t, out), line)
	require.Equal(t, len(part), r.Changes.Deleted, line)
	_, again, err := purge(t, path, line+more, held)
	require.NoError(t, err, line)
	require.Equal(t, read(t, out), read(t, again), line)

	t.Logf("%s: %d records", line, len(part))
	if strings.Contains(path, "trimmed") {
		return // an import adds a version to status.storedVersions of the definition, which lacks it
	}
	join(t, path, out, archive, line)
}

// join imports the archive of a selection into the purged snapshot: its live records are those of
// the snapshot before, record for record. An import also creates the IPAddress of a Service that
// had none.
func join(t *testing.T, path, purged, archive, line string) {
	t.Helper()
	before := contents(t, path)
	r, out, err := runLine(t, importOf(archive), purged, "")
	allow := refused(t, r, before)
	if len(allow) > 0 {
		require.ErrorIs(t, err, transform.ErrRefused, line)
		r, out, err = runLine(t, importOf(archive), purged, "", allow...)
	}
	require.NoError(t, err, "%s: %v", line, r.Problems)
	after := contents(t, out)
	for _, key := range transformtest.Section[graft.Imported](r).Import.Addresses {
		if _, had := before[key]; !had {
			delete(after, key)
		}
	}
	require.Equal(t, before, after, line)
	_, again, err := runLine(t, importOf(archive), purged, "", allow...)
	require.NoError(t, err, line)
	require.Equal(t, read(t, out), read(t, again), line)
	r, _, err = runLine(t, importOf(archive), out, "")
	require.NoError(t, err, "%s: %v", line, r.Problems)
	require.Equal(t, transform.Unchanged, r.Outcome, line)
}

// refused returns the codes of the errors of an import. Each is a fault of the snapshot before.
func refused(t *testing.T, r *transform.Report, before map[string]content) (codes []string) {
	t.Helper()
	for _, p := range r.Problems {
		if p.Level != finding.Error {
			continue
		}
		codes = append(codes, p.Code.Name)
		switch p.Code.Name {
		case "namespace-missing", "missing-definition", "need-missing", "node-missing":
			require.NotContains(t, before, p.Key, p.Code.Name)
		case "duplicate-uid", "address-in-use", "undecodable", "owner-outside":
			require.Contains(t, before, p.Key, p.Code.Name)
		default:
			require.Fail(t, "the import refuses a part of the snapshot", "%s: %s: %s", p.Code.Name, p.Key, p.Reason)
		}
	}
	return codes
}

// importOf is the command "import" of an archive.
func importOf(archive string) transform.Spec {
	spec := graft.Spec
	spec.New = func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
		a.Arguments = []string{archive}
		return graft.Spec.New(ctx, a)
	}
	return spec
}

// TestPurgeHeld checks that purge deletes nothing that the archive does not have.
func TestPurgeHeld(t *testing.T) {
	in := shop(t)
	_, whole, err := extract(t, in, "--namespace=a")
	require.NoError(t, err)
	for line, want := range map[string]string{
		"--namespace=a,b":           "and revision: 2; this is the first",
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
	if archive != "" {
		line += " --archive=" + archive
	}
	return runLine(t, remove.PurgeSpec, in, line, allow...)
}
