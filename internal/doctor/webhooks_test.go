package doctor

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// A condition that would need gigabytes is stopped and counts as met: the webhook is reported.
func TestConditionsTakeLittleMemory(t *testing.T) {
	name := strings.Repeat("a", 1000)
	n := &need{operation: create, resource: "pods", kind: "Pod", namespace: "a", by: byAPIServer}
	// a constant is evaluated during compilation
	for _, text := range []string{`object.metadata.name`, `"` + name + `"`} {
		huge := text + strings.Repeat(`.replace("a", `+text+`)`, 2) + `.size() == 0`
		hook := &admissionv1.MutatingWebhook{Name: "h",
			MatchConditions: []admissionv1.MatchCondition{{Name: "huge", Expression: huge}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := newConditions(t.Context(), hook, &bounded.Budget{})
		require.True(t, c.match(t.Context(), n, n.newObject(name, nil)))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), text)
	}
}

// The conditions of all webhooks share one budget; beyond the budget webhooks are reported.
func TestConditionsHaveABudget(t *testing.T) {
	list := `[` + strings.Repeat("1,", 44) + `1]`
	hook := &admissionv1.MutatingWebhook{Name: "a.example.com", MatchConditions: []admissionv1.MatchCondition{
		{Name: "slow", Expression: list + `.all(a, ` + list + `.all(b, a + b > 0)) && object.metadata.name == ''`},
	}}
	budget, matched := &bounded.Budget{Limit: 100_000}, 0
	c := newConditions(t.Context(), hook, budget)
	for range 20 {
		n := &need{resource: "pods", kind: "Pod", operation: update}
		if c.match(t.Context(), n, n.newObject("x", nil)) {
			matched++
		}
	}
	require.Equal(t, 10, matched, "%s", budget)
}
