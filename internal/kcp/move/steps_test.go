package move_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// TestFrontProxies checks that every list of steps stops the front-proxies first, and starts the
// front-proxies after all files are made.
func TestFrontProxies(t *testing.T) {
	_, back := purgedRoot(t)
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	from, tree := archiveOf(t, root(t)), extract(t, root(t), family).written()
	cache := recorded(t, kcptest.Cache)
	for name, r := range map[string]result{
		"extract":           tree,
		"import":            importInto(t, from, shard1(t), move.Import{}),
		"import of a tree":  importInto(t, tree.out, shard1(t), move.Import{}),
		"import where from": importInto(t, from, back, move.Import{}),
		"import fixed":      importInto(t, from, back, move.Import{FixOwner: true, AsShard: "shard-1"}),
		"put back":          putBack(t, liveShard1, liveRoot, move.PutBack{}),
		"purge":             purge(t, root(t), move.Purge{Name: consumer}, led),
		"purge of a tree":   purge(t, root(t), move.Purge{Name: consumer, WithChildren: true}, led),
		"purge of orphans":  purge(t, liveShard1, move.Purge{Orphans: true}),
		"purge of copies":   purge(t, cache, move.Purge{Name: consumer, FromShard: "root"}),
		"move of copies":    purge(t, cache, move.Purge{Name: provider, FromShard: "root", ToShard: "shard-1"}),
		"purge and move":    purge(t, kcptest.Single(t), move.Purge{Name: provider, ToShard: "shard-1"}, led),
	} {
		t.Run(name, func(t *testing.T) {
			steps := r.written().Steps
			step := func(text string) int {
				return slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, text) })
			}
			stop, start := step("stop all front-proxies first"), step("start the front-proxies last")
			if name != "extract" { // an extraction changes no file of a shard
				require.Zero(t, stop)
				require.Contains(t, steps[r.BeforeRestore-2], "restore every member")
			}
			require.GreaterOrEqual(t, stop, 0, "%q", steps)
			require.Greater(t, start, stop, "%q", steps)
			for n, step := range steps {
				command := strings.Contains(step, "etcdshift kcp ")
				require.False(t, n < stop && command, "%q", step)
				require.False(t, n > start &&
					(command && strings.Contains(step, "purge") || strings.Contains(step, "etcdutl")), "%q", step)
				require.False(t, n != stop && strings.Contains(step, "stop ") && (n < stop || n > start), "%q", step)
			}
		})
	}
}
