package native

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestSame checks that zero values, defaults and other spellings of a quantity are no change.
func TestSame(t *testing.T) {
	deployment := func(spec string) string { return "apps/v1 Deployment " + spec }
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{deployment(`{"minReadySeconds":0,"paused":false}`), deployment(`{}`), true},
		{deployment(`{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"}}}`),
			deployment(`{}`), true},
		{deployment(`{"strategy":{"type":"Recreate"}}`), deployment(`{}`), false},
		{deployment(`{"replicas":1}`), deployment(`{"replicas":0}`), false},
		{deployment(
			`{"template":{"spec":{"containers":[{"image":"a","imagePullPolicy":"Always",` +
				`"resources":{"limits":{"cpu":"0.1"}}}]}}}`),
			deployment(`{"template":{"spec":{"containers":[{"image":"a","resources":{"limits":{"cpu":"100m"}}}]}}}`),
			true},
		{deployment(`{"template":{"spec":{"containers":[{"image":"h:5/a:1","imagePullPolicy":"IfNotPresent"}]}}}`),
			deployment(`{"template":{"spec":{"containers":[{"image":"h:5/a:1"}]}}}`), true},
		{deployment(`{"template":{"spec":{"enableServiceLinks":true}}}`), deployment(`{"template":{"spec":{}}}`),
			false},
		{`v1 Pod {"enableServiceLinks":true,"serviceAccount":"a","serviceAccountName":"a"}`,
			`v1 Pod {"serviceAccountName":"a"}`, true},
		{`apps/v1 StatefulSet {"updateStrategy":{"type":"OnDelete"}}`,
			`apps/v1 StatefulSet {"updateStrategy":{"type":"OnDelete","rollingUpdate":{}}}`, false},
		{
			`apps/v1 StatefulSet {"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1",` +
				`"spec":{"volumeMode":"Filesystem"}}]}`,
			`apps/v1 StatefulSet {"volumeClaimTemplates":[{"spec":{}}]}`, true},
		{`networking.k8s.io/v1 NetworkPolicy {"egress":[{}]}`,
			`networking.k8s.io/v1 NetworkPolicy {"egress":[{}],"policyTypes":["Ingress","Egress"]}`, true},
		{`networking.k8s.io/v1 NetworkPolicy {"egress":[{}]}`,
			`networking.k8s.io/v1 NetworkPolicy {"egress":[{}],"policyTypes":["Ingress"]}`, false},
		{`batch/v1 CronJob {"jobTemplate":{"spec":{"backoffLimit":6}}}`, `batch/v1 CronJob {}`, false},
		{`batch/v1 Job {"backoffLimit":6}`, `batch/v1 Job {}`, true},
		{`example.com/v1 Thing {"a":[]}`, `example.com/v1 Thing {}`, false},
	} {
		a, gvk := object(t, test.a)
		b, _ := object(t, test.b)
		require.Equal(t, test.same, Same(gvk, a, b), "%s\n%s", test.a, test.b)
	}
}

func object(t *testing.T, text string) (map[string]any, schema.GroupVersionKind) {
	t.Helper()
	words := strings.SplitN(text, " ", 3)
	var spec map[string]any
	require.NoError(t, json.Unmarshal([]byte(words[2]), &spec))
	return map[string]any{"apiVersion": words[0], "kind": words[1], "spec": spec},
		schema.FromAPIVersionAndKind(words[0], words[1])
}
