package compare_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

func open(t *testing.T, path string) *inspect.Reader {
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return inspect.NewReader(s, nil)
}

// snapshots runs scripts on one server, and takes a snapshot after each.
func snapshots(t *testing.T, scripts ...string) (sides []*inspect.Reader) {
	server := etcdtest.Start(t, t.TempDir())
	dir := t.TempDir()
	for i, script := range scripts {
		etcdtest.Run(t, server, strings.ReplaceAll(script, "; ", "\n"))
		path := filepath.Join(dir, fmt.Sprint(i))
		etcdtest.Save(t, server, path)
		sides = append(sides, open(t, path))
	}
	return sides
}

func told(t *testing.T, sides []*inspect.Reader, key string) string {
	var out []string
	for s, err := range compare.History(context.Background(), sides, []byte(key), compare.Options{}) {
		require.NoError(t, err)
		line := fmt.Sprintf("%d %s v%d %v", s.Revision, s.What, s.Version, s.Sources)
		for _, c := range s.Changes {
			line += fmt.Sprintf(" %s%v->%v", c.Path, c.Old, c.New)
		}
		if m := s.Missing; m != nil {
			line += fmt.Sprintf(" missing %+v", *m)
		}
		if s.Conflict {
			line += " conflict"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestHistory(t *testing.T) {
	for name, c := range map[string]struct {
		scripts []string
		want    string
	}{
		"one life": {[]string{"put k 1; put other x; put k 2; del k"}, "2 created v1 [0]\n4 updated v2 [0] 1->2\n5 deleted v0 [0]"},
		"again":    {[]string{"put k 1; del k; put k 2; put k 3"}, "2 created v1 [0]\n3 deleted v0 [0]\n4 recreated v1 [0]\n5 updated v2 [0] 2->3"},
		"compacted": {[]string{"put k 1; put k 2; put k 3; compact; put k 4"},
			"4 oldest v3 [0] missing {From:0 To:4 Updates:1 Deleted:false Created:2 Perhaps:false}\n5 updated v4 [0] 3->4"},
		"compacted, deleted": {[]string{"put k 1; put k 2; compact; put x y; del k"},
			"3 oldest v2 [0] missing {From:0 To:3 Updates:0 Deleted:false Created:2 Perhaps:false}\n5 deleted v0 [0]"},
		"two snapshots": {[]string{"put k 1; put k 2", "put k 3"}, "2 created v1 [0 1]\n3 updated v2 [0 1] 1->2\n4 updated v3 [1] 2->3"},
		"updates between": {[]string{"put k 1", "put k 2; put k 3; put k 4; compact; put k 5"},
			"2 created v1 [0]\n5 updated v4 [1] 1->4 missing {From:2 To:5 Updates:2 Deleted:false Created:0 Perhaps:false}\n6 updated v5 [1] 4->5"},
		"a life between": {[]string{"put k 1", "del k; put k 2; put k 3; compact"},
			"2 created v1 [0]\n5 recreated v2 [1] 1->3 missing {From:2 To:5 Updates:0 Deleted:true Created:4 Perhaps:true}"},
		"gone": {[]string{"put k 1; put x 1", "del k; put x 2; compact"},
			"2 created v1 [0]\n0 gone v0 [] missing {From:3 To:6 Updates:0 Deleted:true Created:0 Perhaps:true}"},
		"perhaps lives between": {[]string{"put k 1; del k", "put k 2; del k; put k 3; compact"},
			"2 created v1 [0]\n3 deleted v0 [0]\n6 recreated v1 [1] missing {From:3 To:6 Updates:0 Deleted:false Created:0 Perhaps:true}"},
		"none": {[]string{"put x 1"}, ""},
	} {
		require.Equal(t, c.want, told(t, snapshots(t, c.scripts...), "k"), name)
	}
}

// TestConflict: snapshots of clusters that went different ways from one backup are told side by
// side.
func TestConflict(t *testing.T) {
	base := snapshots(t, "put common 1; put k 1")
	var sides []*inspect.Reader
	for _, value := range []string{"a", "b"} {
		server := etcdtest.Start(t, etcdtest.Restore(t, base[0].Snapshot().Path()))
		etcdtest.Run(t, server, "put k "+value)
		path := filepath.Join(t.TempDir(), "s")
		etcdtest.Save(t, server, path)
		sides = append(sides, open(t, path))
	}
	require.Equal(t, "3 created v1 [0 1]\n4 updated v2 [0] 1->a conflict\n4 updated v2 [1] a->b conflict", told(t, sides, "k"))
	same, _, err := compare.SameCluster(context.Background(), sides[0], sides[1])
	require.NoError(t, err)
	require.Equal(t, compare.Yes, same)
	other := snapshots(t, "put common 2; put k 1; put z 1")
	same, _, err = compare.SameCluster(context.Background(), sides[0], other[0])
	require.NoError(t, err)
	require.Equal(t, compare.Unknown, same)
}

func TestWriters(t *testing.T) {
	object := func(entries string) string {
		return "put k `{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"k\",\"managedFields\":[" + entries + "]}}`"
	}
	entry := func(manager, time string) string {
		return fmt.Sprintf("{\"manager\":%q,\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":%q}", manager, time)
	}
	a1, a2, b := entry("a", "2026-11-20T10:00:00Z"), entry("a", "2026-11-20T10:01:00Z"), entry("b", "2026-11-20T10:00:30Z")
	sides := snapshots(t, strings.Join([]string{object(a1), object(a1 + "," + b), object(a1 + "," + b), object(a2 + "," + b)}, "\n"),
		"compact\n"+object(a2+","+b)+"\ndel k")
	var got [][]string
	for _, of := range [][]*inspect.Reader{sides, sides[1:]} {
		var names []string
		for s, err := range compare.History(context.Background(), of, []byte("k"), compare.Options{}) {
			require.NoError(t, err)
			line := string(s.What)
			for _, w := range s.Writers {
				line += " " + w.Manager + w.Time[14:16]
			}
			names = append(names, line)
		}
		got = append(got, names)
	}
	require.Equal(t, [][]string{
		{"created a00", "updated b00", "updated", "updated a01", "updated", "deleted"},
		{"oldest a01", "updated", "deleted"},
	}, got)
}
