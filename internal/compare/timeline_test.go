package compare_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/internal/compare"
)

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

// TestTimeline: each write is told once, in order, and so are gaps and what was deleted in them.
func TestTimeline(t *testing.T) {
	for name, c := range map[string]struct {
		scripts []string
		want    []string
	}{
		"one": {[]string{"put a 1; put b 1; put a 2; del b"}, []string{"created 2 a", "created 3 b", "updated 4 a", "deleted 5 b"}},
		"compacted": {[]string{"put a 1; put b 1; put a 2; compact; del b"},
			[]string{"gap 2-4", "created 3 b", "updated 4 a", "deleted 5 b"}},
		"overlap": {[]string{"put a 1; put b 1", "put a 2; del b"}, []string{"created 2 a", "created 3 b", "updated 4 a", "deleted 5 b"}},
		"gap": {[]string{"put a 1; put b 1; put c 1", "del b; put a 2; put a 3; compact; del c"},
			[]string{"created 2 a", "created 3 b", "created 4 c", "gap 5-7", "gone 5-7 b", "updated 7 a", "deleted 8 c"}},
		"created again": {[]string{"put a 1; put b 1; put c 1", "del c; del b; put b 2; compact; put c 2; del a"},
			[]string{"created 2 a", "created 3 b", "created 4 c", "gap 5-7", "gone 5-7 b", "gone 5-7 c", "created 7 b", "created 8 c", "deleted 9 a"}},
	} {
		line := &compare.Timeline{Sides: snapshots(t, c.scripts...)}
		require.Equal(t, c.want, events(t, line), name)
	}
	require.Empty(t, events(t, &compare.Timeline{Sides: snapshots(t, "compact")}))
}

// TestTimelineLabels: a deletion is of the labels of the last write.
func TestTimelineLabels(t *testing.T) {
	object := func(key, app string) string {
		return fmt.Sprintf("put %s `{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"k\",\"labels\":{\"app\":%q}}}`\n", key, app)
	}
	selector, err := labels.Parse("app=web")
	require.NoError(t, err)
	sides := snapshots(t, object("a", "web")+object("b", "db")+object("a", "db")+object("b", "web")+"del a\ndel b\n")
	line := &compare.Timeline{Sides: sides, Labels: selector}
	require.Equal(t, []string{"created 2 a", "updated 5 b", "deleted 7 b"}, events(t, line))
	// what cannot be read may have the labels: it is told, and so is its deletion
	sides = snapshots(t, object("/registry/configmaps/a/a", "db")+"put /registry/configmaps/a/b `{\"kind\":`\ndel /registry/configmaps/a/b\n")
	line = &compare.Timeline{Sides: sides, Labels: selector}
	require.Equal(t, []string{"created 3 /registry/configmaps/a/b", "deleted 4 /registry/configmaps/a/b"}, events(t, line))
}
