package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
)

// TestVerifyRegion: a Workspace keeps its region, or names that of the shard.
func TestVerifyRegion(t *testing.T) {
	was := []byte(`{"metadata":{"annotations":{"core.kcp.io/shard":"root","internal.tenancy.kcp.io/shard":"x"},"labels":{"region":"old"}}}`)
	shard := &clusters.Shard{Registered: []clusters.RegisteredShard{{Name: "shard-1", Region: "here"}, {Name: "root", Region: "there"}}}
	c := &checker{findings: newFindings(), outputs: []*output{{File: &clusters.File{Shards: []*clusters.Shard{shard}}}}}
	c.To = "shard-1"
	for region, ok := range map[string]bool{"": true, "here": true, "there": false, "mars": false} {
		now, err := survey.MoveWorkspace(was, "shard-1", region)
		require.NoError(t, err)
		require.Equal(t, ok, c.onlyMoved(was, now), region)
	}
	require.Empty(t, c.Notes)
	shard.Registered = nil
	now, err := survey.MoveWorkspace(was, "shard-1", "mars")
	require.NoError(t, err)
	require.True(t, c.onlyMoved(was, now))
	require.Len(t, c.Notes, 1)
}
