package compare_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

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
		"one life": {[]string{"put k 1; put other x; put k 2; del k"},
			"2 created v1 [0]\n4 updated v2 [0] 1->2\n5 deleted v0 [0]"},
		"again": {[]string{"put k 1; del k; put k 2; put k 3"},
			"2 created v1 [0]\n3 deleted v0 [0]\n4 recreated v1 [0]\n5 updated v2 [0] 2->3"},
		"compacted": {[]string{"put k 1; put k 2; put k 3; compact; put k 4"},
			"4 oldest v3 [0] missing {From:0 To:4 Updates:1 Deleted:false Created:2 Perhaps:false}\n5 updated " +
				"v4 [0] 3->4"},
		"compacted, deleted": {[]string{"put k 1; put k 2; compact; put x y; del k"},
			"3 oldest v2 [0] missing {From:0 To:3 Updates:0 Deleted:false Created:2 Perhaps:false}\n5 deleted v0 [0]"},
		"two snapshots": {[]string{"put k 1; put k 2", "put k 3"},
			"2 created v1 [0 1]\n3 updated v2 [0 1] 1->2\n4 updated v3 [1] 2->3"},
		"updates between": {[]string{"put k 1", "put k 2; put k 3; put k 4; compact; put k 5"},
			"2 created v1 [0]\n5 updated v4 [1] 1->4 missing {From:2 To:5 Updates:2 Deleted:false Created:0 " +
				"Perhaps:false}\n6 updated v5 [1] 4->5"},
		"a life between": {[]string{"put k 1", "del k; put k 2; put k 3; compact"},
			"2 created v1 [0]\n5 recreated v2 [1] 1->3 missing {From:2 To:5 Updates:0 Deleted:true Created:4 " +
				"Perhaps:true}"},
		"gone": {[]string{"put k 1; put x 1", "del k; put x 2; compact"},
			"2 created v1 [0]\n0 gone v0 [] missing {From:3 To:6 Updates:0 Deleted:true Created:0 Perhaps:true}"},
		"perhaps lives between": {[]string{"put k 1; del k", "put k 2; del k; put k 3; compact"},
			"2 created v1 [0]\n3 deleted v0 [0]\n6 recreated v1 [1] missing {From:3 To:6 Updates:0 Deleted:false " +
				"Created:0 Perhaps:true}"},
		"none": {[]string{"put x 1"}, ""},
	} {
		require.Equal(t, c.want, told(t, snapshots(t, c.scripts...), "k"), name)
	}
}

// TestConflict checks that records of clusters that diverged after one backup are listed side by
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
	require.Equal(t, "3 created v1 [0 1]\n4 updated v2 [0] 1->a conflict\n4 updated v2 [1] a->b conflict",
		told(t, sides, "k"))
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
		return "put k `{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"k\",\"managedFields\":[" +
			entries + "]}}`"
	}
	entry := func(manager, time string) string {
		return fmt.Sprintf("{\"manager\":%q,\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":%q}", manager, time)
	}
	a1, a2, b := entry("a", "2026-11-20T10:00:00Z"), entry("a", "2026-11-20T10:01:00Z"),
		entry("b", "2026-11-20T10:00:30Z")
	sides := snapshots(t, strings.Join([]string{object(a1), object(a1 + "," + b), object(a1 + "," + b),
		object(a2 + "," + b)}, "\n"), "compact\n"+object(a2+","+b)+"\ndel k")
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

// TestLaw checks for random operations on a real etcd that the history lists real steps, in order,
// and that the gaps between steps are exactly the operations missing in the files.
func TestLaw(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 7))
		server := etcdtest.Start(t, t.TempDir())
		dir := t.TempDir()
		happened := map[int64]compare.What{}
		var all []*inspect.Reader
		revision, compacted, live, before := int64(1), int64(1), false, false
		for i := range 60 {
			switch op := random.IntN(12); {
			case op < 6:
				etcdtest.Run(t, server, fmt.Sprintf("put k %d", i))
				revision++
				switch {
				case live:
					happened[revision] = compare.Updated
				case before:
					happened[revision] = compare.CreatedAgain
				default:
					happened[revision] = compare.Created
				}
				live, before = true, true
			case op < 8 && live:
				etcdtest.Run(t, server, "del k")
				revision++
				happened[revision], live = compare.Deleted, false
			case op < 9:
				etcdtest.Run(t, server, "put other x")
				revision++
			case op < 10 && revision > compacted:
				etcdtest.Run(t, server, "compact")
				compacted = revision
			default:
				path := filepath.Join(dir, fmt.Sprint(i))
				etcdtest.Save(t, server, path)
				all = append(all, open(t, path))
			}
		}
		for range 8 {
			var some []*inspect.Reader
			for _, s := range all {
				if random.IntN(2) == 0 {
					some = append(some, s)
				}
			}
			if len(some) > 0 {
				lawful(t, happened, some)
			}
		}
	}
}

func lawful(t *testing.T, happened map[int64]compare.What, sides []*inspect.Reader) {
	last := int64(0)
	for s, err := range compare.History(context.Background(), sides, []byte("k"), compare.Options{}) {
		require.NoError(t, err)
		to := s.Revision
		if s.What == compare.Gone {
			to = s.Missing.To
			require.True(t, s.Missing.Deleted && s.Missing.Perhaps)
		} else {
			require.Greater(t, to, last)
			want := happened[to]
			switch s.What {
			case compare.Oldest:
				require.Contains(t, []compare.What{compare.Updated}, want)
			case compare.Created, compare.CreatedAgain:
				require.NotEqual(t, compare.Deleted, want, "%d", to)
			default:
				require.Equal(t, s.What, want, "%d", to)
			}
		}
		between := map[compare.What]int64{}
		for revision := last + 1; revision < to; revision++ {
			if what, did := happened[revision]; did {
				between[what]++
			}
		}
		checkMissing(t, s, last, between)
		last = to
	}
}

// checkMissing compares the gap of a history with the operations at that time.
func checkMissing(t *testing.T, s *compare.Step, last int64, between map[compare.What]int64) {
	m := s.Missing
	total := between[compare.Created] + between[compare.CreatedAgain] + between[compare.Updated] +
		between[compare.Deleted]
	switch {
	case m == nil && last == 0: // a first creation: earlier ones are unknown
	case m == nil:
		require.Zero(t, total, "%d after %d", s.Revision, last)
	case m.Perhaps || last == 0:
		require.GreaterOrEqual(t, between[compare.Updated], m.Updates)
		if m.Deleted {
			require.Positive(t, between[compare.Deleted])
		}
	default:
		said := m.Updates
		if m.Deleted {
			said++
		}
		if m.Created > 0 {
			said++
		}
		require.Equal(t, said, total, "%+v", *m)
	}
}

func events(t *testing.T, line *compare.Timeline) (out []string) {
	line.Last = math.MaxInt64
	for e, err := range line.Events(context.Background()) {
		require.NoError(t, err)
		text := fmt.Sprintf("%s %d", e.What, e.Revision)
		if e.From > 0 {
			text = fmt.Sprintf("%s %d-%d", e.What, e.From, e.To)
		}
		if e.Subject != nil {
			text += " " + e.Key
		}
		if e.Conflict {
			text += " conflict"
		}
		out = append(out, text)
	}
	return out
}

// TestTimeline checks that each write, each gap and each deletion in a gap is reported once, in
// order.
func TestTimeline(t *testing.T) {
	for name, c := range map[string]struct {
		scripts []string
		want    []string
	}{
		"one": {[]string{"put a 1; put b 1; put a 2; del b"},
			[]string{"created 2 a", "created 3 b", "updated 4 a", "deleted 5 b"}},
		"compacted": {[]string{"put a 1; put b 1; put a 2; compact; del b"},
			[]string{"gap 2-4", "created 3 b", "updated 4 a", "deleted 5 b"}},
		"overlap": {[]string{"put a 1; put b 1", "put a 2; del b"},
			[]string{"created 2 a", "created 3 b", "updated 4 a", "deleted 5 b"}},
		"gap": {[]string{"put a 1; put b 1; put c 1", "del b; put a 2; put a 3; compact; del c"},
			[]string{"created 2 a", "created 3 b", "created 4 c", "gap 5-7", "gone 5-7 b", "updated 7 a",
				"deleted 8 c"}},
		"created again": {[]string{"put a 1; put b 1; put c 1", "del c; del b; put b 2; compact; put c 2; del a"},
			[]string{"created 2 a", "created 3 b", "created 4 c", "gap 5-7", "gone 5-7 b", "gone 5-7 c", "created 7 b",
				"created 8 c", "deleted 9 a"}},
	} {
		line := &compare.Timeline{Sides: snapshots(t, c.scripts...)}
		require.Equal(t, c.want, events(t, line), name)
	}
	require.Empty(t, events(t, &compare.Timeline{Sides: snapshots(t, "compact")}))
}

// TestTimelineLabels checks that a deletion has the labels of the last write.
func TestTimelineLabels(t *testing.T) {
	object := func(key, app string) string {
		return fmt.Sprintf(
			"put %s `{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","+
				"\"metadata\":{\"name\":\"k\",\"labels\":{\"app\":%q}}}`\n", key, app)
	}
	selector, err := labels.Parse("app=web")
	require.NoError(t, err)
	sides := snapshots(t, object("a", "web")+object("b", "db")+object("a", "db")+object("b", "web")+"del a\ndel b\n")
	line := &compare.Timeline{Sides: sides, Labels: selector}
	require.Equal(t, []string{"created 2 a", "updated 5 b", "deleted 7 b"}, events(t, line))
	// an unreadable object may have the labels: its writes and its deletion are reported
	sides = snapshots(t, object("/registry/configmaps/a/a", "db")+
		"put /registry/configmaps/a/b `{\"kind\":`\ndel /registry/configmaps/a/b\n")
	line = &compare.Timeline{Sides: sides, Labels: selector}
	require.Equal(t, []string{"created 3 /registry/configmaps/a/b", "deleted 4 /registry/configmaps/a/b"},
		events(t, line))
}
