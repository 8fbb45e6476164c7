package kcp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// TestFrontProxies: every list of steps stops the front-proxies before anything else, and starts
// them after all files are made.
func TestFrontProxies(t *testing.T) {
	root, shard1, cache := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1), kcptest.Recorded(t, kcptest.Cache)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	_, back := purgedRoot(t)
	_, tree := extracted(t, root, extraction{Name: kcptest.Consumer, WithChildren: true})
	inOrder := func(r *report) []string {
		require.Contains(t, r.Steps[0], "stop all front-proxies first")
		require.Contains(t, r.Steps[r.BeforeRestore-2], "restore every member")
		return r.Steps
	}
	purgeSteps := func(in string, o purge.Purge) []string {
		r, _ := purged(t, in, o, codeOwnerPointsHere)
		return inOrder(r)
	}
	importSteps := func(into string, o carry.Import) []string {
		return inOrder(importInto(t, from, into, o, transform.Options{}).written().report)
	}
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	for name, steps := range map[string][]string{
		"extract":           extractSteps(t, root),
		"import":            importSteps(shard1, carry.Import{}),
		"import of a tree":  inOrder(importInto(t, tree, shard1, carry.Import{}, transform.Options{}).written().report),
		"import where from": importSteps(back, carry.Import{}),
		"import fixed":      importSteps(back, carry.Import{FixOwner: true, AsShard: "shard-1"}),
		"put back":          inOrder(putBack(t, liveShard1, liveRoot, carry.PutBack{}, transform.Options{}).written().report),
		"purge":             purgeSteps(root, purge.Purge{Name: kcptest.Consumer}),
		"purge of a tree":   purgeSteps(root, purge.Purge{Name: kcptest.Consumer, WithChildren: true}),
		"purge of orphans":  purgeSteps(liveShard1, purge.Purge{Orphans: true}),
		"purge of copies":   purgeSteps(cache, purge.Purge{Name: kcptest.Consumer, FromShard: "root"}),
		"move of copies":    purgeSteps(cache, purge.Purge{Name: kcptest.Provider, FromShard: "root", ToShard: "shard-1"}),
		"purge and move":    purgeSteps(kcptest.Single(t), purge.Purge{Name: kcptest.Provider, ToShard: "shard-1"}),
	} {
		t.Run(name, func(t *testing.T) {
			stop := slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, "stop all front-proxies first") })
			start := slices.IndexFunc(steps, func(s string) bool { return strings.Contains(s, "start the front-proxies last") })
			require.GreaterOrEqual(t, stop, 0, "%q", steps)
			require.Greater(t, start, stop, "%q", steps)
			for n, step := range steps {
				switch command := strings.Contains(step, "etcdshift kcp "); {
				case n < stop:
					require.NotContains(t, step, "stop ")
					require.False(t, command, "%q", step)
				case n > start:
					require.NotContains(t, step, "etcdutl")
					require.False(t, command && strings.Contains(step, "purge"), "%q", step)
					require.NotContains(t, step, "stop ")
				}
			}
		})
	}
}

func extractSteps(t *testing.T, in string) []string {
	t.Helper()
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	return r.Steps
}
