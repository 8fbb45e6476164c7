package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/replay"
)

// TestReplayBounded checks that --max-expand limits the records of a log.
func TestReplayBounded(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "crash36")
	_, err := Open(t.Context(), dir, Config{MaxExpand: 100})
	require.ErrorIs(t, err, replay.ErrRefused)
	require.ErrorContains(t, err, "the records of the log have more than 100 bytes")
}
