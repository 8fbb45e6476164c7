package doctor

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// A condition that would make gigabytes is stopped, and counts as one that the request meets: the
// webhook is named.
func TestConditionsTakeLittleMemory(t *testing.T) {
	text := strings.Repeat("a", 1000)
	huge := `"` + text + `".replace("a", "` + text + `").replace("a", "` + text + `").size() == 0`
	c := newConditions(t.Context(), &admissionv1.MutatingWebhook{Name: "h", MatchConditions: []admissionv1.MatchCondition{{Name: "huge", Expression: huge}}})
	n := &need{operation: create, resource: "pods", kind: "Pod", namespace: "a", by: byAPIServer}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.True(t, c.match(t.Context(), n, n.made("a", nil)))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}
