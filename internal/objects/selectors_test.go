package objects

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
)

func TestFields(t *testing.T) {
	of := func(group, resource string) []string {
		return SelectableFields(&inspect.Type{Resource: schema.GroupResource{Group: group, Resource: resource}}, "")
	}
	require.Equal(t, []string{"metadata.name", "metadata.namespace"}, of("", "configmaps"))
	require.Equal(t, []string{"metadata.name", "metadata.namespace", "status.successful"}, of("batch", "jobs"))
	require.Contains(t, of("", "events"), "involvedObject.name")
	require.Contains(t, of("events.k8s.io", "events"), "regarding.name")
	require.NotContains(t, of("events.k8s.io", "events"), "source")
}

// What a server leaves out when it writes is selected by its zero value.
func TestValues(t *testing.T) {
	for text, want := range map[string]bool{
		"spec.unschedulable=false": true, "spec.unschedulable=true": false, "status.successful=3": true, "status.successful=0": false, "status.phase=Running": true,
		"status.phase!=Running": false, "spec.nodeName=": true, "spec.nodeName!=n1": true, "source=kubelet": true,
	} {
		selector, err := fields.ParseSelector(text)
		require.NoError(t, err)
		content := map[string]any{"status": map[string]any{"phase": "Running", "succeeded": int64(3)}, "source": map[string]any{"component": "kubelet"}}
		require.Equal(t, want, selector.Matches(FieldValues(selector, content)), text)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]Word{
		"pods":           {{Type: "pods"}},
		"pods,svc":       {{Type: "pods,svc"}},
		"pods a b":       {{Type: "pods", Names: []string{"a", "b"}}},
		"pods,svc a":     {{Type: "pods,svc", Names: []string{"a"}}},
		"pod/a svc/b":    {{Type: "pod", Names: []string{"a"}}, {Type: "svc", Names: []string{"b"}}},
		"pod/a b":        nil,
		"pod/":           nil,
		"/a":             nil,
		"pods a svc/b c": nil,
	} {
		got, err := ParseWords(strings.Fields(text))
		require.Equal(t, want, got, text)
		require.Equal(t, want == nil, err != nil, text)
	}
}
