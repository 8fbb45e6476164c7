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
	name := strings.Repeat("a", 1000)
	n := &need{operation: create, resource: "pods", kind: "Pod", namespace: "a", by: byAPIServer}
	for _, text := range []string{`object.metadata.name`, `"` + name + `"`} { // a constant is evaluated when it is compiled
		huge := text + strings.Repeat(`.replace("a", `+text+`)`, 2) + `.size() == 0`
		hook := &admissionv1.MutatingWebhook{Name: "h", MatchConditions: []admissionv1.MatchCondition{{Name: "huge", Expression: huge}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.True(t, newConditions(t.Context(), hook).match(t.Context(), n, n.made(name, nil)))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), text)
	}
}
