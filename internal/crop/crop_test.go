package crop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// crop runs a command line.
func crop(t testing.TB, in, line string, allow ...string) (*transform.Report, string, error) {
	t.Helper()
	return runLine(t, Spec, in, line, allow...)
}

// runLine runs a command line of a command.
func runLine(t testing.TB, spec transform.Spec, in, line string, allow ...string) (*transform.Report, string, error) {
	t.Helper()
	args := transformtest.Args(strings.Fields(line)...)
	if prefix := args.String("prefix"); prefix != "" {
		args.Prefixes = []string{strings.TrimSuffix(prefix, "/")}
	}
	args.Open = transformtest.Files(t)
	change, err := spec.New(context.Background(), args)
	if err != nil {
		return nil, "", err
	}
	out := filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(context.Background(),
		transform.Options{Command: spec.Command(), In: in, Out: out, Allow: allow, Prefixes: args.Prefixes}, change)
	return r, out, err
}

// fixtures returns the recorded snapshots that can be read.
func fixtures(t testing.TB) (files []string) {
	t.Helper()
	for _, pattern := range []string{"etcd/*.db", "*/*.db.gz", "reports/*.db"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "testdata", pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.NotEmpty(t, files)
	return slices.DeleteFunc(files, func(path string) bool { return strings.Contains(path, "hostile") })
}

// stored is a record with the parts of its key.
type stored struct {
	snapshot.Record
	key    keys.Key
	labels map[string]string
}

// live returns the live records below a storage prefix, and all records of any revision, also in
// free pages.
func live(t testing.TB, path string) (records []stored, all int, revision int64) {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{FreePages: true})
	require.NoError(t, err)
	defer s.Close()
	for rec, err := range s.Records(ctx) {
		require.NoError(t, err)
		if len(rec.Key) > 0 {
			all++
		}
	}
	layouts, err := inspect.NewReader(s, nil).Layouts(ctx)
	require.NoError(t, err)
	for rec, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		if _, below := layouts.Of(rec.Key); !below {
			continue
		}
		one := stored{Record: *rec}
		one.Key, one.Value = bytes.Clone(rec.Key), bytes.Clone(rec.Value)
		one.key, _, _ = layouts.Parse(one.Key)
		e, err := inspect.NewReader(s, nil).Entry(ctx, rec)
		require.NoError(t, err)
		if meta, err := e.Meta(); err == nil && e.Undecryptable == nil {
			one.labels = meta.Labels
		}
		records = append(records, one)
	}
	info, err := s.Info(ctx)
	require.NoError(t, err)
	return records, all, info.Revision
}

// recordsOf returns the records without the parts of their keys.
func recordsOf(all []stored) (records []snapshot.Record) {
	for _, one := range all {
		records = append(records, one.Record)
	}
	return records
}

// TestLaws checks random selections of each recorded file: OUT has exactly the selected records,
// byte for byte with revisions and leases, and no other record in any page; the same selection of
// OUT gives the same bytes; with --needed, OUT has more records of IN.
func TestLaws(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			all, _, revision := live(t, path)
			random := rand.New(rand.NewPCG(7, uint64(len(all))))
			for range 6 {
				line, want := selection(random, all)
				if line == "" {
					return // kcp
				}
				laws(t, path, line, all, want, revision)
			}
		})
	}
}

// allAllowed are the codes that a random selection may raise.
func allAllowed() []string { return finding.Allowable(codes()) }

func laws(t *testing.T, in, line string, all []stored, want func(stored) bool, revision int64) {
	t.Helper()
	r, out, err := crop(t, in, line, allAllowed()...)
	selected := slices.DeleteFunc(slices.Clone(all), func(one stored) bool { return !want(one) })
	if len(selected) == 0 {
		require.ErrorIs(t, err, transform.ErrRefused, line)
		return
	}
	require.NoError(t, err, "%s: %v", line, r.Problems)
	got, stays, at := live(t, out)
	require.Equal(t, recordsOf(selected), recordsOf(got), line)
	require.Equal(t, len(got), stays, "%s: records of other keys or revisions", line)
	require.Equal(t, revision, at, line)
	_, again, err := crop(t, out, line, allAllowed()...)
	require.NoError(t, err, line)
	require.Equal(t, read(t, out), read(t, again), line)

	_, more, err := crop(t, in, line+" --needed", allAllowed()...)
	require.NoError(t, err, line)
	taken, stays, _ := live(t, more)
	require.Len(t, taken, stays, line)
	require.Subset(t, recordsOf(all), recordsOf(taken), line)
	require.Subset(t, recordsOf(taken), recordsOf(selected), line)
	r, again, err = crop(t, more, line+" --needed")
	require.NoError(t, err, "%s: %v", line, r.Problems)
	require.Equal(t, read(t, more), read(t, again), line)
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// selection returns a random command line about the records, and its meaning.
func selection(random *rand.Rand, all []stored) (line string, want func(stored) bool) {
	parsed := slices.DeleteFunc(slices.Clone(all), func(one stored) bool {
		return one.key.Name == "" || one.key.Cluster != "" || len(bytes.Fields(one.Record.Key)) != 1
	})
	if len(parsed) == 0 {
		return "", nil
	}
	one := parsed[random.IntN(len(parsed))]
	space := one.key.Namespace
	isType := func(o stored) bool { return o.key.Resource == one.key.Resource }
	switch n := random.IntN(6); {
	case n == 0 || keys.IsRecord(one.key.Resource):
		return "--prefix=" + one.key.Prefix, func(o stored) bool { return under(o, one.key.Prefix) }
	case n == 1 && space != "":
		return "--namespace=" + space, func(o stored) bool {
			return o.key.Namespace == space || o.key.Resource.String() == "namespaces" && o.key.Name == space
		}
	case n == 2 && space != "":
		return fmt.Sprintf("%s --namespace=%s", one.key.Resource, space),
			func(o stored) bool { return isType(o) && o.key.Namespace == space }
	case n == 3 && space != "":
		return fmt.Sprintf("%s/%s --namespace=%s", one.key.Resource, one.key.Name, space),
			func(o stored) bool { return isType(o) && o.key.Namespace == space && o.key.Name == one.key.Name }
	case n == 4 && len(one.labels) > 0:
		for _, label := range slices.Sorted(maps.Keys(one.labels)) {
			value := one.labels[label]
			if len(validation.IsValidLabelValue(value)) > 0 {
				continue
			}
			return fmt.Sprintf("--selector=%s=%s --all-namespaces", label, value),
				func(o stored) bool { is, has := o.labels[label]; return has && is == value }
		}
	}
	return one.key.Resource.String() + " --all-namespaces", isType
}

// under reports whether the record is below the prefix and no longer one.
func under(o stored, prefix string) bool {
	return o.key.Prefix == prefix || o.key.Prefix == "" && strings.HasPrefix(string(o.Record.Key), prefix+"/")
}

// TestEverything checks that all storage prefixes together are the live records.
func TestEverything(t *testing.T) {
	in := filepath.Join("..", "..", "testdata", "kubectl", "all.db.gz")
	all, _, _ := live(t, in)
	_, out, err := crop(t, in, "--prefix=/registry")
	require.NoError(t, err)
	got, _, _ := live(t, out)
	require.Equal(t, recordsOf(all), recordsOf(got))
}

// TestRevision checks that a restored member of etcd has the revision of IN plus the bump, and the
// records of the selection.
func TestRevision(t *testing.T) {
	in := shop(t)
	all, _, revision := live(t, in)
	_, out, err := crop(t, in, "--namespace=b")
	require.NoError(t, err)
	for _, bump := range []uint64{0, 3} {
		server := etcdtest.Start(t, etcdtest.Restore(t, out, etcdtest.BumpRevision(bump)))
		require.Equal(t, revision+int64(bump), etcdtest.Revision(t, server))
		var got []string
		for _, kv := range etcdtest.Dump(t, server, 0) {
			i := slices.IndexFunc(all, func(one stored) bool { return bytes.Equal(one.Record.Key, kv.Key) })
			require.Equal(t, all[i].ModRevision, kv.ModRevision)
			got = append(got, string(kv.Key))
		}
		require.ElementsMatch(t, []string{"/registry/namespaces/b", "/registry/secrets/b/other"}, got)
	}
}

// TestUsage checks the mistakes of a command line.
func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"": "say which part", "--all-namespaces": "say which part", "--selector=a=b": "-l without TYPE",
		"pods --namespace=a --all-namespaces": "not both", "pods/a --selector=a=b": "take no --selector",
		"pods --selector=a=(": "--selector", "pods/": "neither TYPE nor TYPE/NAME", "--namespace=a,": "empty",
		"--selector= --all-namespaces": "--selector is empty",
	} {
		_, _, err := crop(t, "none.db", line)
		var usage *transform.UsageError
		require.True(t, errors.As(err, &usage), "%s: %v", line, err)
		require.ErrorContains(t, err, want, line)
	}
}
