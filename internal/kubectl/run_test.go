package kubectl

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/etcdshift/etcdshift/internal/serve"
)

// TestHeapGrowth checks that memory is collected as in kubectl during a run, and as before
// afterwards.
func TestHeapGrowth(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(40)
	defer debug.SetGCPercent(before)
	percent := 0
	start := func(context.Context) (*serve.Server, error) {
		percent = debug.SetGCPercent(kubectlGrowth)
		return nil, ErrNeeded
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	require.ErrorIs(t, Run(t.Context(), start, streams, true, []string{"get", "pods"}), ErrNeeded)
	require.Equal(t, kubectlGrowth, percent)
	require.Equal(t, 40, debug.SetGCPercent(40))
}
