package storageversion_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// shape is a CRD with two versions, and the parts of its objects.
type shape struct {
	plural, kind string
	cluster      bool   // scope
	status       bool   // subresource
	old, new     string // spec's schema at the two versions, JSON
	spec         string // of a full object, JSON, with a "text"
	unserved     bool   // the old version is unserved once the new one is the storage version
	injected     string // the CRD's value in etcd, if no API server would accept it, JSON
	drifting     bool   // the new version's schema has fields that the old one lacks
}

func (s *shape) crdName() string { return s.plural + "." + group }

func (s *shape) namespace() string {
	if s.cluster {
		return ""
	}
	return "default"
}

func (s *shape) key(name string) string {
	if s.cluster {
		return "/registry/" + group + "/" + s.plural + "/" + name
	}
	return "/registry/" + group + "/" + s.plural + "/default/" + name
}

// relic is a definition that no API server accepts any more.
const relic = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",` +
	`"metadata":{"name":"relics.demo.example.com","uid":"5c0e1c1e-0000-4000-8000-000000000001",` +
	`"generation":1,"creationTimestamp":"2018-01-02T03:04:05Z"},"spec":{"group":"demo.example.com",` +
	`"version":"v1alpha1","names":{"plural":"relics","kind":"Relic","listKind":"RelicList",` +
	`"singular":"relic"},` +
	`"scope":"Namespaced","preserveUnknownFields":true,"versions":[{"name":"v1alpha1","served":true,` +
	`"storage":true},{"name":"v1beta1","served":true,"storage":false}],"conversion":{"strategy":"None"}},` +
	`"status":{"storedVersions":["v1alpha1"]}}`

// shapes returns the CRDs of the server tests.
func shapes() []*shape {
	const text = `"text":{"type":"string"}`
	widget := `"type":"object","properties":{"size":{"type":"integer"},` + text +
		`,"ratio":{"type":"number"},"big":{"type":"integer","format":"int64"},` +
		`"nul":{"type":"string","nullable":true},"nonnull":{"type":"string"},"free":{"type":"object",` +
		`"x-kubernetes-preserve-unknown-fields":true},` +
		`"ios":{"x-kubernetes-int-or-string":true},"tmpl":{"type":"object","x-kubernetes-embedded-resource":true,` +
		`"x-kubernetes-preserve-unknown-fields":true},`
	return []*shape{
		// the CRD of the recorded snapshots: every kind of value; the new version loses a field and
		// has its own defaults
		{
			plural: "widgets", kind: "Widget", status: true, drifting: true,
			old: `{` + widget + `"oldOnly":{"type":"string"},"alphaDefault":{"type":"string","default":"from-alpha"},` +
				`"list":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},` +
				`"v":{"type":"integer","default":7}}}}}}`,
			new: `{` + widget +
				`"betaDefault":{"type":"string","default":"from-beta"},"alphaDefault":{"type":"string"},` +
				`"list":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},` +
				`"v":{"type":"integer","default":7},"w":{"type":"integer","default":8}}}}}}`,
			spec: `{"size":3,"oldOnly":"bye","ratio":1.50,"big":9007199254740993,"text":"héllo <&> \u2028 \u0007",` +
				`"nul":null,"nonnull":null,` +
				`"free":{"z":1,"a":[1.0,2.5,1e3,null,{"x":null}],"<k>":true},"ios":"80%","tmpl":{"apiVersion":"v1",` +
				`"kind":"Pod","metadata":{"name":"p","bogus":1,"creationTimestamp":null},"spec":{"q":1}},` +
				`"list":[{"name":"one"},{"name":"two","v":1}],"unknownField":"x"}`,
		},
		{ // cluster-scoped; defaults below defaults, in maps and in lists with keys; nullable fields
			plural: "rigs", kind: "Rig", cluster: true, status: true, drifting: true,
			old: `{"type":"object","properties":{` + text +
				`,"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port",` +
				`"protocol"],` +
				`"items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},` +
				`"protocol":{"type":"string","default":"TCP"},"note":{"type":"string"}}}},` +
				`"byName":{"type":"object","additionalProperties":{"type":"object",` +
				`"properties":{"n":{"type":"integer"}}}},"maybe":{"type":"string","nullable":true},` +
				`"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}`,
			new: `{"type":"object","properties":{` + text +
				`,"ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port",` +
				`"protocol"],` +
				`"items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},` +
				`"protocol":{"type":"string","default":"TCP"},"note":{"type":"string"},"weight":{"type":"integer",` +
				`"default":10}}}},` +
				`"byName":{"type":"object","additionalProperties":{"type":"object",` +
				`"properties":{"n":{"type":"integer","default":1},"x":{"type":"number","default":0.5}}}},` +
				`"maybe":{"type":"string","nullable":true,"default":"yes"},"tags":{"type":"array",` +
				`"x-kubernetes-list-type":"set","items":{"type":"string"}},` +
				`"deep":{"type":"object","default":{},"properties":{"er":{"type":"object","default":{"a":1},` +
				`"properties":{"a":{"type":"integer"},"b":{"type":"string","default":"<&>"}}}}}}}`,
			spec: `{"text":"t","ports":[{"port":80},{"port":53,"protocol":"UDP","note":"dns"}],"byName":{"b":{},` +
				`"a":{"n":5},"c":{"n":7}},"maybe":null,"tags":["b","a"]}`,
		},
		{ // equal schemas: the value in etcd has the schema once, outside versions
			plural: "twins", kind: "Twin", status: true,
			old:  `{"type":"object","properties":{` + text + `,"n":{"type":"integer","default":1}}}`,
			new:  `{"type":"object","properties":{` + text + `,"n":{"type":"integer","default":1}}}`,
			spec: `{"text":"same","gone":true}`,
		},
		{ // keeps unknown fields, yet has defaults; no status subresource
			plural: "blobs", kind: "Blob",
			old: `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{` + text + `}}`,
			new: `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{` + text +
				`,"extra":{"type":"object","default":{"on":true},"x-kubernetes-preserve-unknown-fields":true}}}`,
			spec: `{"text":"t","any":{"a":[{"b":null},1.25,-0.0,1e21,123456789012345678]},"nul":null}`,
		},
		{ // the old version is unserved during the migration
			plural: "hermits", kind: "Hermit", status: true, unserved: true, drifting: true,
			old: `{"type":"object","properties":{` + text + `,"mode":{"type":"string"}}}`,
			new: `{"type":"object","properties":{` + text +
				`,"mode":{"type":"string","default":"auto"},"since":{"type":"string","default":"2024-01-01"}}}`,
			spec: `{"text":"t"}`,
		},
		{ // created when v1beta1 was the only API: no schema, unknown fields kept
			plural: "relics", kind: "Relic",
			injected: relic,
			spec:     `{"text":"t","x":{"creationTimestamp":null,"y":[null,{}]},"z":1.0}`,
		},
	}
}

// definition returns the shape's CRD as a user writes it.
func (s *shape) definition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	scope, status := "Namespaced", ""
	if s.cluster {
		scope = "Cluster"
	}
	if s.status {
		status = `"subresources":{"status":{}},`
	}
	version := func(name, storage, spec string) string {
		return fmt.Sprintf(
			`{"name":%q,"served":true,"storage":%s,%s"schema":{"openAPIV3Schema":{"type":"object",`+
				`"properties":{"spec":%s,`+
				`"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}}`, name, storage, status, spec)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, json.Unmarshal(fmt.Appendf(nil,
		`{"metadata":{"name":%q},"spec":{"group":%q,"scope":%q,"names":{"plural":%q,"kind":%q},"versions":[%s,%s]}}`,
		s.crdName(), group, scope, s.plural, s.kind, version(oldName, "true", s.old), version(newName, "false", s.new)),
		crd))
	return crd
}

// full returns a full object at the old version.
func (s *shape) full(t *testing.T, name string) map[string]any {
	t.Helper()
	namespace := ""
	if !s.cluster {
		namespace = `"namespace":"default",`
	}
	return object(t,
		fmt.Sprintf(
			`{"apiVersion":"%s/%s","kind":%q,"metadata":{"name":%q,%s"labels":{"k":"v"},`+
				`"annotations":{"html":"<a>&b\u2028"},"finalizers":["%s/fin"]},"spec":%s}`,
			group, oldName, s.kind, name, namespace, group, s.spec))
}

// bare returns a minimal object.
func (s *shape) bare(version, name string) map[string]any {
	meta := map[string]any{"name": name}
	if !s.cluster {
		meta["namespace"] = "default"
	}
	return map[string]any{"apiVersion": group + "/" + version, "kind": s.kind, "metadata": meta}
}

func (c *cluster) of(s *shape, version string) dynamic.ResourceInterface {
	return c.client(s.plural, version, s.namespace())
}

// define creates the CRDs, all before the first object: a server delays creates by two seconds in a
// new CRD.
func (c *cluster) define(t *testing.T, all []*shape) {
	t.Helper()
	for _, s := range all {
		if s.injected != "" {
			continue
		}
		_, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), s.definition(t),
			metav1.CreateOptions{})
		require.NoError(t, err, s.plural)
	}
	require.Eventually(t, func() bool {
		for _, s := range all {
			if crd := c.crd(t, s.crdName()); !isEstablished(crd) {
				return false
			}
		}
		return true
	}, 30*time.Second, 20*time.Millisecond)
	c.establish(t)
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

// flip makes the new version the storage version of all.
func (c *cluster) flip(t *testing.T, all []*shape) {
	t.Helper()
	for _, s := range all {
		require.NoError(t, c.updateCRD(t, s.crdName(), func(crd *apiextensionsv1.CustomResourceDefinition) {
			storeAt(newName)(crd)
			setServed(oldName, !s.unserved)(crd)
		}), s.plural)
	}
}

// requests returns the no-op requests. The first three leave pure bytes, the others insert the new
// version's defaults immediately.
func requests(s *shape) []string {
	all := []string{"apply"}
	if s.status {
		all = append(all, "status")
	}
	if !s.unserved {
		all = append(all, "oldput")
	}
	return append(all, "put", "merge", "jsonpatch")
}

// isPure reports whether a request omits the new version's defaults.
func isPure(request string) bool { return !strings.Contains("put merge jsonpatch", request) }
