package native

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestNewest checks that the newest time in a message is the newest time in its content.
func TestNewest(t *testing.T) {
	dated := map[schema.GroupVersionKind]int{}
	for gvk, is := range scheme.Scheme.AllKnownTypes() {
		for seed := range int64(5) {
			if !isMessage(is) || convertible()[gvk] == nil {
				continue
			}
			v := random(t, gvk, seed)
			var newest time.Time
			if content, err := DecodeParsed(v); err == nil && convertible()[gvk].newest(v.Raw, &newest) {
				require.Equal(t, newestOf(content, time.Time{}), newest, "%s, seed %d", gvk, seed)
				if !newest.IsZero() {
					dated[gvk]++
				}
			}
		}
	}
	require.Greater(t, len(dated), 100)
}

// TestNewestInMap checks that the content decides if an entry of a map has the name of such a time.
func TestNewestInMap(t *testing.T) {
	for name, sure := range map[string]bool{"time": false, "times": true} {
		raw, err := (&corev1.ConfigMap{Data: map[string]string{name: "2030-01-02T03:04:05Z"}}).Marshal()
		require.NoError(t, err)
		m := convertible()[corev1.SchemeGroupVersion.WithKind("ConfigMap")]
		require.Equal(t, sure, m.newest(raw, new(time.Time)), name)
	}
}
