package crop

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// extract runs a command line of extract, with all codes allowed.
func extract(t testing.TB, in, line string) (*transform.Report, string, error) {
	t.Helper()
	return runLine(t, ExtractSpec, in, line, finding.Allowable(ExtractSpec.Codes)...)
}

// manifestOf opens and checks an archive.
func manifestOf(t testing.TB, path string) *archive.PartManifest {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	m, err := archive.OpenPart(context.Background(), s)
	require.NoError(t, err)
	return m
}

// TestExtractLaws checks random selections of each recorded file: the archive has the records of
// crop, its manifest their number, and the same run gives the same bytes.
func TestExtractLaws(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			all, _, revision := live(t, path)
			random := rand.New(rand.NewPCG(8, uint64(len(all))))
			for range 4 {
				line, want := selection(random, all)
				if line == "" {
					return // kcp
				}
				if !slices.ContainsFunc(all, want) {
					continue
				}
				for _, line := range []string{line, line + " --needed"} {
					_, cropped, err := crop(t, path, line, allAllowed()...)
					require.NoError(t, err, line)
					r, out, err := extract(t, path, line)
					require.NoError(t, err, "%s: %v", line, r.Problems)
					got, stays, _ := live(t, out)
					part, _, _ := live(t, cropped)
					require.Equal(t, recordsOf(part), recordsOf(got), line)
					require.Equal(t, len(got), stays, line)
					m := manifestOf(t, out)
					require.Equal(t, len(got), m.Total.Keys)
					require.Equal(t, revision, m.Origin.Revision)
					_, again, err := extract(t, path, line)
					require.NoError(t, err, line)
					require.Equal(t, read(t, out), read(t, again), line)
				}
			}
		})
	}
}

// TestExtractNeeds checks that owners outside refuse no extract, and are in the manifest.
func TestExtractNeeds(t *testing.T) {
	in := shop(t)
	r, out, err := runLine(t, ExtractSpec, in, "replicasets --namespace=a")
	require.NoError(t, err)
	m := manifestOf(t, out)
	i := slices.IndexFunc(m.Needs, func(n archive.Needed) bool { return n.Owner })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, archive.Needed{Key: "/registry/deployments/a/web", Is: archive.InFile,
		By: "/registry/replicasets/a/web-1", Objects: 1, Owner: true}, m.Needs[i])
	require.Equal(t, []archive.TypeCount{{Type: "replicasets.apps", Keys: 1, Bytes: m.AsStored.Bytes}}, m.Types)
	require.Equal(t, archive.Selection{Arguments: []string{"replicasets"}, Namespaces: []string{"a"},
		Prefixes: []string{}}, m.Selection)
	require.Equal(t, transformtest.Section[Part](r).Part.LeftOut, m.Origin.Rest.Keys)

	_, needed, err := runLine(t, ExtractSpec, in, "replicasets --namespace=a --needed")
	require.NoError(t, err)
	with := manifestOf(t, needed)
	require.Equal(t, m.Origin, with.Origin, "needed records stay in the origin")
	require.Greater(t, with.Total.Keys, 1)
	for _, n := range with.Needs {
		require.NotEqual(t, archive.InFile, n.Is)
	}
}

// TestExtractRestored checks that etcd restores an archive, with the selected records, and that a
// snapshot of this etcd is no archive, although it has the manifest.
func TestExtractRestored(t *testing.T) {
	in := shop(t)
	_, _, revision := live(t, in)
	_, out, err := extract(t, in, "--namespace=b")
	require.NoError(t, err)
	server := etcdtest.Start(t, etcdtest.Restore(t, out, etcdtest.BumpRevision(3)))
	require.Equal(t, revision+3, etcdtest.Revision(t, server))
	require.Len(t, etcdtest.Dump(t, server, 0), 2)
	etcdtest.Run(t, server, "put /registry/secrets/b/new {}")
	saved := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, server, saved)
	r, again, err := extract(t, saved, "--namespace=b")
	require.NoError(t, err, "%v", r.Problems)
	require.Equal(t, 3, manifestOf(t, again).Total.Keys)
	_, _, err = purge(t, saved, "--namespace=b", again)
	require.NoError(t, err)
}

// TestExtractSteps checks that the report repeats the selection for purge, and that no archive is
// extracted from an archive.
func TestExtractSteps(t *testing.T) {
	in := shop(t)
	for line, want := range map[string]string{
		"--namespace=b": " -n b ", "--namespace=a pods": " pods -n a ",
		"--selector=app=web --all-namespaces": " -l app=web -A ",
		"--prefix=/registry":                  " --prefix /registry ", "pods --all-namespaces": " pods -A ",
	} {
		r, out, err := extract(t, in, line)
		require.NoError(t, err, line)
		require.Contains(t, strings.Join(r.Steps, "\n"), "IN-OUT"+want+"--archive", line)
		_, _, err = extract(t, out, line)
		require.ErrorIs(t, err, archive.ErrIsArchive)
	}
	r, _, err := extract(t, in, "--namespace=b")
	require.NoError(t, err)
	require.Equal(t, 2, transformtest.Section[Part](r).Part.Keys)
}
