package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const thingsYAML = `# a comment first
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
spec:
  group: example.com
  names: {plural: things, kind: Thing}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          big: {type: integer, default: 9007199254740993}
`

func TestParseManifest(t *testing.T) {
	stored := string(readFile(t, "crd.etcd"))
	crds, others, err := ParseManifest([]byte("---\n" + thingsYAML + `---
# nothing but a comment
---
apiVersion: v1
kind: Namespace
metadata: {name: calico-system}
---
` + stored + `
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"Namespace/calico-system", "ConfigMap/c"}, others)
	var names []string
	for _, crd := range crds {
		names = append(names, crd.Object().Name)
	}
	require.Equal(t, []string{"things.example.com", "widgets.demo.example.com", "a.b"}, names)

	data, err := encode(crds[0].internal)
	require.NoError(t, err)
	require.Contains(t, string(data), `"apiVersion":"apiextensions.k8s.io/v1beta1"`)
	require.Contains(t, string(data), `"default":9007199254740993`)
	require.Contains(t, string(data), `"listKind":"ThingList"`)
}

func TestParseManifestJSON(t *testing.T) {
	crds, others, err := ParseManifest(
		[]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","items":[
` + string(readFile(t, "ippools.etcd")) + `,` + string(readFile(t, "networkpolicies.etcd")) + `]}`))
	require.NoError(t, err)
	require.Empty(t, others)
	require.Len(t, crds, 2)
}

func TestParseManifestErrors(t *testing.T) {
	for manifest, want := range map[string]string{
		thingsYAML + "---\n" +
			thingsYAML: `document 2: CustomResourceDefinition "things.example.com" is there twice`,
		"a: [":                                "document 1: ",
		"just text":                           "document 1: ",
		"apiVersion: v1\nmetadata: {name: x}": "document 1: no kind",
		"apiVersion: a/b/c\nkind: X":          "document 1: unexpected GroupVersion string",
		strings.Replace(thingsYAML, "group: example.com", "group: [1]",
			1): "document 1: CustomResourceDefinition",
		"{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"kind\":\"X\"},{}]}": "document 1: item 2: no kind",
	} {
		_, _, err := ParseManifest([]byte(manifest))
		require.ErrorContains(t, err, want, manifest)
	}
	crds, others, err := ParseManifest(nil)
	require.NoError(t, err)
	require.Empty(t, crds)
	require.Empty(t, others)
}
