package kcp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// TestVerifyCacheOfTheDestination: a move to the shard whose etcd holds the cache too is checked
// stale until the origin's copies are taken out of that file, as the step of the import says, and
// sound then.
func TestVerifyCacheOfTheDestination(t *testing.T) {
	from, to := kcptest.Recorded(t, kcptest.Shard1), kcptest.Single(t)
	archived := extractOf(t, from, extraction{Name: kcptest.Consumer1})
	came := importInto(t, archived, to, carry.Import{}, transform.Options{}).written()
	require.Contains(t, strings.Join(came.report.Steps, "\n"), "the cache in this shard's own file has copies")
	m := moveFiles{archive: archived, origin: from, originOut: purgeOf(t, kcptest.Consumer1, from), destination: to, destinationOut: came.out}
	require.Equal(t, []string{"stale-copy"}, codesOf(m.verdict(t)))

	m.destinationOut = purgeWith(t, came.out, purge.Purge{Name: kcptest.Consumer1, FromShard: "shard-1"})
	requireSound(t, m.verdict(t))
	m.destination = ""
	requireSound(t, m.verdict(t))
}
