package calico

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// definitionOf returns a CRD of a kind unknown to Calico Open Source.
func definitionOf(t *testing.T, group, version, plural, kind, scope string) []byte {
	t.Helper()
	text, kindOf := map[string]any{"type": "string"}, map[string]any{"type": "object"}
	spec := map[string]any{"type": "object", "properties": map[string]any{"summary": text,
		"severity": map[string]any{"type": "integer", "maximum": 100}}}
	names := map[string]any{"plural": plural, "singular": strings.ToLower(kind), "kind": kind,
		"listKind": kind + "List"}
	conditions := []any{
		map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": ""},
		map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": ""},
	}
	value, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group, "uid": thereUID,
			"creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec": map[string]any{
			"group": group, "scope": scope, "names": names,
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"apiVersion": text, "kind": text,
						"metadata": kindOf, "spec": spec},
				}},
			}},
		},
		"status": map[string]any{"acceptedNames": names, "storedVersions": []any{version}, "conditions": conditions},
	})
	require.NoError(t, err)
	return append(value, '\n')
}

// alerts adds two kinds to a snapshot: a cluster-scoped kind with a record, and a namespaced kind
// with a record owned by the first one.
func alerts(t *testing.T, in *input, v3 bool) (alert, report string) {
	t.Helper()
	for _, kd := range []struct{ plural, kind, scope string }{{"globalalerts", "GlobalAlert", "Cluster"},
		{"alertreports", "AlertReport", "Namespaced"}} {
		in.put(crdDir+kd.plural+"."+groupV1, definitionOf(t, groupV1, "v1", kd.plural, kd.kind, kd.scope))
		if v3 {
			in.put(crdDir+kd.plural+"."+groupV3, definitionOf(t, groupV3, "v3", kd.plural, kd.kind, kd.scope))
		}
	}
	in.put(recordsV1+"globalalerts/dns", v1{kind: "GlobalAlert", name: "dns",
		inner: `{"labels":{"team":"net"},"finalizers":["example.com/f"]}`,
		spec:  `{"summary":"x","severity":90}`}.json(t))
	owned := v1{kind: "AlertReport", namespace: "team-a", name: "one", uid: "22345678-9abc-4def-8123-456789abcdef",
		inner: `{"ownerReferences":[` + ref(apiVersionV1, "GlobalAlert", "dns", storedUID) + `]}`,
		spec:  `{"summary":"y"}`}
	in.put(recordsV1+"alertreports/team-a/one", owned.json(t))
	in.put("/registry/configmaps/team-a/owned-by-alert",
		configMapOwnedBy(t, ref(apiVersionV1, "GlobalAlert", "dns", storedUID)))
	return recordsV3 + "globalalerts/dns", recordsV3 + "alertreports/team-a/one"
}

func configMapOwnedBy(t *testing.T, owner string) []byte {
	t.Helper()
	var refs []map[string]any
	require.NoError(t, json.Unmarshal([]byte("["+owner+"]"), &refs))
	value, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "owned-by-alert", "namespace": "team-a", "uid": thereUID,
			"creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": refs},
	})
	require.NoError(t, err)
	return append(value, '\n')
}

// TestGenericKinds: a kind with a CRD in both groups gets v3 records with the UID, metadata and
// owners seen by clients, and its v1 records and CRD are deleted.
func TestGenericKinds(t *testing.T) {
	in := newInput(t)
	alert, report := alerts(t, in, true)
	got := planOn(t, in.write(), New(Options{}))
	obj := got.written(t, alert)
	require.Equal(t, "GlobalAlert", obj["kind"])
	require.Equal(t, clientUID, at(obj, "metadata", "uid"))
	require.Equal(t, map[string]any{"team": "net"}, at(obj, "metadata", "labels"))
	require.Equal(t, []any{"example.com/f"}, at(obj, "metadata", "finalizers"))
	require.Equal(t, map[string]any{"summary": "x", "severity": 90.0}, obj["spec"])
	owner := at(got.written(t, report), "metadata", "ownerReferences").([]any)[0].(map[string]any)
	require.Equal(t, apiVersionV3, owner["apiVersion"])
	require.Equal(t, clientUID, owner["uid"])
	require.Contains(t, got.out["/registry/configmaps/team-a/owned-by-alert"], clientUID)
	require.NotContains(t, got.out, crdDir+"globalalerts."+groupV1)
	require.NotContains(t, got.out, recordsV1+"globalalerts/dns")
	require.Contains(t, got.out, crdDir+"globalalerts."+groupV3)
	require.Equal(t, transform.KindCount{Kind: "GlobalAlert", From: apiVersionV1, To: apiVersionV3, Migrated: 1},
		got.count("GlobalAlert"))
	require.Contains(t, got.reason(t, codeGenericKind.Name, crdDir+"globalalerts."+groupV3), "as its CRDs say")
	require.Equal(t, "ClusterInformation", got.Kinds[len(got.Kinds)-1].Kind)

	again := planOn(t, got.Output.Path, New(Options{}))
	require.NoError(t, again.err)
	require.Empty(t, again.changed())
}

// TestGenericKindWithoutV3: a kind found only in the v1 group is refused.
func TestGenericKindWithoutV3(t *testing.T) {
	in := newInput(t)
	alerts(t, in, false)
	path := in.write()
	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeUnknownKind.Name, recordsV1+"globalalerts/dns"), "GlobalAlert has no kind")

	manifest := append(definitionOf(t, groupV3, "v3", "globalalerts", "GlobalAlert", "Cluster"), "---\n"...)
	manifest = append(manifest, definitionOf(t, groupV3, "v3", "alertreports", "AlertReport", "Namespaced")...)
	got = planOn(t, path, New(Options{V3CRDs: manifest}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Contains(t, got.out, recordsV3+"globalalerts/dns")
	require.Contains(t, got.out, crdDir+"globalalerts."+groupV3)
}

// TestGenericKindUnfit: the run refuses a v3 CRD of the wrong scope, and a record invalid under its
// v3 CRD.
func TestGenericKindUnfit(t *testing.T) {
	in := newInput(t)
	alerts(t, in, true)
	in.put(crdDir+"alertreports."+groupV3, definitionOf(t, groupV3, "v3", "alertreports", "AlertReport", "Cluster"))
	in.put(recordsV1+"globalalerts/dns", v1{kind: "GlobalAlert", name: "dns", inner: "{}",
		spec: `{"severity":101}`}.json(t))
	got := planOn(t, in.write(), New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeCRDUnfit.Name, crdDir+"alertreports."+groupV3), "spec.scope")
	require.True(t, got.has(finding.Error, codeInvalid.Name, recordsV1+"globalalerts/dns"))
}

// TestGenericKindsAborted: a live migration of generic kinds is taken back too.
func TestGenericKindsAborted(t *testing.T) {
	in := completed(t)
	alert, report := alerts(t, in, true)
	mark := `"annotations":{"` + migratedByAnnotation + `":"` + migrationUID + `"},`
	in.put(alert, []byte(strings.Replace(string(there("GlobalAlert", "dns", mark, `{}`)), `"generation":4`,
		`"generation":1`, 1)))
	in.put(report, []byte(strings.Replace(string(there("AlertReport", "one", mark+`"namespace":"team-a",`, `{}`)),
		`"generation":4`, `"generation":1`, 1)))
	got := abortOf(t, in.write())
	require.NoError(t, got.err, "%v", got.Problems)
	require.NotContains(t, got.out, alert)
	require.NotContains(t, got.out, report)
}
