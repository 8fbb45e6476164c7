package serve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi3"
)

// TestOpenAPI checks that both documents describe built-in and custom kinds, with their texts.
func TestOpenAPI(t *testing.T) {
	s := start(t, everyKey)
	client, err := discovery.NewDiscoveryClientForConfig(s.Config)
	require.NoError(t, err)
	root := openapi3.NewRoot(openapi.NewClient(client.RESTClient()))
	versions, err := root.GroupVersions()
	require.NoError(t, err)
	groups := map[string]bool{}
	for _, gv := range versions {
		_, err := root.GVSpec(gv)
		require.NoError(t, err, gv)
		groups[gv.Group] = true
	}
	for _, gvr := range s.resources(t) {
		require.True(t, groups[gvr.Group] || gvr.Group == "apiregistration.k8s.io", gvr)
	}
	v2, err := client.OpenAPISchema()
	require.NoError(t, err)
	require.Greater(t, len(v2.GetDefinitions().GetAdditionalProperties()), 500)
	for _, path := range []string{"/openapi/v3/", "/openapi/v3/apis/nothing", "/openapi/v3/apis/nothing/v1"} {
		resp, _ := s.do(t, "GET", path, "")
		require.Equal(t, 404, resp.StatusCode, path)
	}
	_, text := s.do(t, "GET", "/openapi/v3/api/v1", "")
	document := struct {
		Components struct {
			Schemas map[string]struct {
				Description string
				Required    []string
				Properties  map[string]struct{ Description, Type, Format string }
			}
		}
	}{}
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	found := 0
	for name, schema := range document.Components.Schemas {
		if strings.HasSuffix(name, ".ContainerPort") {
			found++
			require.Equal(t, []string{"containerPort"}, schema.Required)
			require.Contains(t, schema.Properties["containerPort"].Description,
				"Number of port to expose on the pod's IP address.")
			require.Equal(t, "int32", schema.Properties["containerPort"].Format)
		}
	}
	require.Equal(t, 1, found)
}
