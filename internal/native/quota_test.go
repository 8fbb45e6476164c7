package native

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestQuota compares the usage of objects with the rules of the quota controller: scopes, finished
// Pods, Pods whose grace period is over, node ports, and counts with and without "count/".
func TestQuota(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pod := func(spec, more string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"` + more + `},"spec":{"containers":[{"name":"c",` +
			`"image":"i"` + spec + `}]}}`
	}
	const cpu = `,"resources":{"requests":{"cpu":"1500m"}}`
	deleted := func(at time.Time) string {
		return `,"deletionGracePeriodSeconds":30,"deletionTimestamp":"` + at.Format(time.RFC3339) + `"`
	}
	service := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s"},"spec":{"type":"NodePort",` +
		`"ports":[{"port":80,"nodePort":30001},{"port":81,"nodePort":30002}]}}`
	claim := `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"d"},"spec":{"storageClassName":"fast",` +
		`"resources":{"requests":{"storage":"2Gi"}}}}`
	for name, tt := range map[string]struct {
		hard   map[string]string
		scopes []corev1.ResourceQuotaScope
		of     string
		values []string
		want   []Excess
	}{
		"cpu": {map[string]string{"requests.cpu": "2", "pods": "2"}, nil, "pods",
			[]string{pod(cpu, ""), pod(cpu, "")}, []Excess{{"requests.cpu", "3", "2"}}},
		"finished": {map[string]string{"pods": "1"}, nil, "pods", []string{pod("", ""),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Succeeded"}}`}, nil},
		"being deleted": {map[string]string{"pods": "1"}, nil, "pods",
			[]string{pod("", ""), pod("", deleted(now))}, []Excess{{"pods", "2", "1"}}},
		"grace period over": {map[string]string{"pods": "1"}, nil, "pods",
			[]string{pod("", ""), pod("", deleted(now.Add(-time.Minute)))}, nil},
		"scope": {map[string]string{"pods": "1"}, []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort},
			"pods", []string{pod(cpu, ""), pod("", ""), pod("", "")}, []Excess{{"pods", "2", "1"}}},
		"node ports": {map[string]string{"services.nodeports": "1", "services": "9"}, nil,
			"services", []string{service},
			[]Excess{{"services.nodeports", "2", "1"}}},
		"storage of a class": {map[string]string{"fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
			"slow.storageclass.storage.k8s.io/requests.storage": "1Gi"}, nil, "persistentvolumeclaims", []string{claim},
			[]Excess{{"fast.storageclass.storage.k8s.io/requests.storage", "2Gi", "1Gi"}}},
		"count": {map[string]string{"count/widgets.example.com": "1"}, nil, "widgets.example.com",
			[]string{"encrypted", "encrypted"}, []Excess{{"count/widgets.example.com", "2", "1"}}},
		"two names": {map[string]string{"count/secrets": "1", "secrets": "0"}, nil, "secrets", []string{"{}"},
			[]Excess{{"secrets", "1", "0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			of := schema.ParseGroupResource(tt.of)
			q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{}, Scopes: tt.scopes}}
			for name, hard := range tt.hard {
				q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(hard)
			}
			usage := NewQuota(q, now)
			require.True(t, usage.Counts(of))
			require.False(t, usage.Counts(schema.GroupResource{Resource: "configmaps"}))
			for _, value := range tt.values {
				require.NoError(t, usage.Add(of, []byte(value)))
			}
			require.Equal(t, tt.want, usage.Exceeded())
		})
	}
	usage := NewQuota(&corev1.ResourceQuota{}, now)
	require.Error(t, usage.Add(schema.GroupResource{Resource: "pods"}, []byte("k8s:enc:aescbc:v1:k:x")))
	require.Error(t, usage.Add(schema.GroupResource{Resource: "pods"},
		[]byte(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":7}}`)))
}
