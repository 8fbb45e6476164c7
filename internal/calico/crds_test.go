package calico

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

const crdDir = "/registry/apiextensions.k8s.io/customresourcedefinitions/"

// loading returns a plan that loads the CRDs, passes them to look, and injects the missing ones.
func loading(manifest []byte, look func(s *crdSet)) planFunc {
	return func(ctx context.Context, v *transform.View) error {
		s, err := loadCRDs(storeOf(ctx, v), manifest)
		if err != nil {
			return err
		}
		look(s)
		return s.inject()
	}
}

func usable(s *crdSet) (plurals []string) {
	for _, kd := range kinds() {
		if s.accept[kd.Plural] != nil {
			plurals = append(plurals, kd.Plural)
		}
	}
	return plurals
}

func TestLoadCRDsRecorded(t *testing.T) {
	r := planOn(t, recorded(t, "before.db"), loading(nil, func(s *crdSet) {
		require.Len(t, usable(s), 22)
		require.Len(t, s.old, 22)
		require.True(t, slices.IsSorted(s.old))
		require.Contains(t, s.old, "ipamconfigs")
		require.Zero(t, s.strange)
		require.Nil(t, s.accept["ipamconfigs"])
		require.NotNil(t, s.accept["ippools"])
	}))
	require.NoError(t, r.err)
	require.Equal(t, transform.Unchanged, r.Outcome)
	require.Empty(t, r.Problems)
	require.Empty(t, r.changed())
}

// TestLoadCRDsUnfit: each defect of a v3 CRD is refused under the CRD's key, and all are listed.
func TestLoadCRDsUnfit(t *testing.T) {
	field := func(path string, value any) func(obj map[string]any) {
		return func(obj map[string]any) { set(obj, path, value) }
	}
	for name, tc := range map[string]struct {
		plural string
		change func(obj map[string]any)
		reason string
		usable bool // once allowed
	}{
		"kind": {"tiers", field("spec.names.kind", "Level"), `spec.names.kind is "Level", must be "Tier"`,
			false},
		"scope": {"networksets", field("spec.scope", "Cluster"), `spec.scope is "Cluster", must be "Namespaced"`,
			false},
		"plural": {"tiers", field("status.acceptedNames.plural", "levels"),
			`status.acceptedNames.plural is "levels"`, false},
		"group":       {"tiers", field("spec.group", "example.com"), `spec.group is "example.com"`, false},
		"terminating": {"tiers", field("metadata.deletionTimestamp", "2026-11-20T20:00:00Z"), "being deleted", false},
		"no v3": {"tiers", field("spec.versions",
			[]any{map[string]any{"name": "v4", "served": true, "storage": true}}), "no version v3", false},
		"not served": {"tiers", field("spec.versions",
			[]any{map[string]any{"name": "v3", "served": false, "storage": true}}), "v3 is not served", false},
		"not storage": {"tiers", field("spec.versions",
			[]any{map[string]any{"name": "v3", "served": true, "storage": false},
				map[string]any{"name": "v4", "served": true, "storage": true}}), "not the storage version", false},
		"status": {"ippools", func(obj map[string]any) { delete(obj["spec"].(map[string]any), "subresources") },
			"no status subresource", true},
		"names": {"tiers", field("status.conditions",
			[]any{map[string]any{"type": "NamesAccepted", "status": "False", "message": "taken"}}),
			"names were not accepted: taken", true},
		"never served": {"tiers", field("status.conditions", []any{}), "no conditions", true},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			key := crdDir + tc.plural + ".projectcalico.org"
			in.edit(key, tc.change)
			path := in.write()
			r := planOn(t, path, loading(nil, func(s *crdSet) { require.Nil(t, s.accept[tc.plural]) }))
			require.ErrorIs(t, r.err, transform.ErrRefused)
			require.Equal(t, []string{"error crd-unfit " + key}, r.problems())
			require.Contains(t, r.reason(t, codeCRDUnfit.Name, key), tc.reason)

			r = planOn(t, path, loading(nil, func(s *crdSet) {
				require.Equal(t, tc.usable,
					s.accept[tc.plural] != nil)
			}), codeCRDUnfit.Name)
			require.NoError(t, r.err)
		})
	}
}

// set sets a value at a dotted path of an object.
func set(obj map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		next, ok := obj[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			obj[name] = next
		}
		obj = next
	}
	obj[names[len(names)-1]] = value
}

func TestLoadCRDsUnreadable(t *testing.T) {
	in := newInput(t)
	in.put(crdDir+"tiers.projectcalico.org", []byte(`{"kind":"CustomResourceDefinition"`))
	in.put(crdDir+"ippools.projectcalico.org", []byte("k8s:enc:aescbc:v1:key1:0123"))
	r := planOn(t, in.write(), loading(nil, func(s *crdSet) { require.Len(t, usable(s), 20) }))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, []string{"error undecodable " + crdDir + "tiers.projectcalico.org",
		"error encrypted " + crdDir + "ippools.projectcalico.org"}, r.problems())
}

// manifestOf returns a release manifest: the v3 CRDs of a snapshot as YAML without status, and
// other objects.
func manifestOf(t testing.TB, path string, more string) []byte {
	t.Helper()
	var out strings.Builder
	for key, value := range contents(t, path) {
		plural, ok := strings.CutSuffix(strings.TrimPrefix(key, crdDir), ".projectcalico.org")
		if _, known := kinds().ofV3(plural); !ok || !known {
			continue
		}
		crd, err := schema.ParseCRD([]byte(value))
		require.NoError(t, err)
		obj := crd.Object().DeepCopy()
		obj.APIVersion, obj.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		obj.UID, obj.Generation, obj.ManagedFields = "", 0, nil
		raw, err := json.Marshal(obj)
		require.NoError(t, err)
		var tree map[string]any
		require.NoError(t, json.Unmarshal(raw, &tree))
		delete(tree, "status")
		delete(tree["metadata"].(map[string]any), "creationTimestamp")
		document, err := yaml.Marshal(tree)
		require.NoError(t, err)
		out.WriteString("---\n" + string(document))
	}
	return []byte(out.String() + more)
}

// TestInjectCRDs: CRDs missing in the snapshot come from the manifest, stored like a create and
// equal in every run; existing CRDs stay unchanged.
func TestInjectCRDs(t *testing.T) {
	manifest := manifestOf(t, recorded(t, "before.db"), `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: tierlabel.policy.projectcalico.org}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec: {group: example.com, names: {plural: things, kind: Thing}, scope: Cluster, versions: []}
`)
	in := newInput(t)
	for _, kd := range kinds() {
		if kd.Plural != "tiers" {
			in.del(crdDir + kd.Plural + ".projectcalico.org")
		}
	}
	path := in.write()
	plan := loading(manifest, func(s *crdSet) { require.Len(t, usable(s), 22) })
	r := planOn(t, path, plan)
	require.NoError(t, r.err)
	require.Empty(t, r.Problems)
	require.Len(t, r.changed(), 21)
	require.Equal(t, []string{"MutatingAdmissionPolicy/tierlabel.policy.projectcalico.org",
		"CustomResourceDefinition/things.example.com"}, stepObjects(r))

	key := crdDir + "ippools.projectcalico.org"
	crd, err := schema.ParseCRD([]byte(r.out[key]))
	require.NoError(t, err)
	obj := crd.Object()
	require.Equal(t, objects.MintUID(digestOf(t, path), []byte(key)), string(obj.UID))
	require.EqualValues(t, 1, obj.Generation)
	require.False(t, obj.CreationTimestamp.IsZero())
	require.Equal(t, []string{"v3"}, crd.StoredVersions())
	require.Empty(t, obj.Status.AcceptedNames.Plural, "a server accepts the names and sets the conditions")
	require.Contains(t, r.out[key], `"apiVersion":"apiextensions.k8s.io/v1beta1"`)

	again := planOn(t, path, plan)
	require.Equal(t, r.out, again.out)
}

// stepObjects returns the objects to apply after the restore.
func stepObjects(r result) (objects []string) {
	for _, step := range r.Steps {
		if rest, ok := strings.CutPrefix(step, "after the restore, apply "); ok {
			object, _, _ := strings.Cut(rest, " ")
			objects = append(objects, object)
		}
	}
	return objects
}

func digestOf(t testing.TB, path string) (digest [32]byte) {
	r := planOn(t, path, planFunc(func(ctx context.Context, v *transform.View) (err error) {
		digest, err = v.InputDigest(ctx)
		return err
	}))
	require.NoError(t, r.err)
	return digest
}

func TestLoadCRDsMissing(t *testing.T) {
	in := newInput(t)
	in.del(crdDir + "tiers.projectcalico.org")
	in.del(crdDir + "ipamconfigurations.projectcalico.org")
	path := in.write()
	r := planOn(t, path, loading(nil, func(s *crdSet) { require.Len(t, usable(s), 20) }))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, []string{"error crd-missing " + crdDir + "tiers.projectcalico.org",
		"error crd-missing " + crdDir + "ipamconfigurations.projectcalico.org"}, r.problems())

	r = planOn(t, path, loading([]byte("kind: [\n"), func(*crdSet) {}))
	require.ErrorContains(t, r.err, "manifest of v3 CRDs: document 1")
}

// TestLoadCRDsNoCalico: without Calico's v1 group nothing is missing.
func TestLoadCRDsNoCalico(t *testing.T) {
	in := newInput(t)
	in.delPrefix("/registry/crd.projectcalico.org/")
	in.delPrefix("/registry/apiextensions.k8s.io/")
	r := planOn(t, in.write(), loading(nil, func(s *crdSet) { require.Empty(t, s.old) }))
	require.NoError(t, r.err)
	require.Empty(t, r.Problems)
}

// TestUnknownKind: a v1 record without a v3 kind refuses the run, with or without a CRD.
func TestUnknownKind(t *testing.T) {
	in := newInput(t)
	alert := "/registry/crd.projectcalico.org/globalalerts/noisy"
	stray := "/registry/crd.projectcalico.org/globalfelixconfigs/LogLevel"
	odd := "/registry/crd.projectcalico.org/odd"
	crd, err := os.ReadFile(filepath.Join("testdata", "globalalerts.crd.json"))
	require.NoError(t, err)
	in.put(crdDir+"globalalerts.crd.projectcalico.org", crd)
	in.put(alert, []byte(`{"apiVersion":"crd.projectcalico.org/v1","kind":"GlobalAlert","metadata":{"name":"noisy"}}`+
		"\n"))
	in.put(stray, []byte("{}"))
	in.put(odd, []byte("{}"))
	path := in.write()
	r := planOn(t, path, loading(nil, func(s *crdSet) { require.Contains(t, s.old, "globalalerts") }))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, []string{"error no-v3-kind " + alert, "error no-v3-kind " + stray, "error no-v3-kind " + odd},
		r.problems())
	require.Equal(t, "GlobalAlert has no kind in projectcalico.org/v3", r.reason(t, codeUnknownKind.Name, alert))
	require.Contains(t, r.reason(t, codeUnknownKind.Name, stray), "nor a CRD")
	require.Contains(t, r.reason(t, codeUnknownKind.Name, odd), "not the key of an object")

	r = planOn(t, path, New(Options{}), codeUnknownKind.Name)
	keepsV1(t, r, alert, 3)
	for _, key := range []string{stray, odd, crdDir + "globalalerts.crd.projectcalico.org"} {
		require.Equal(t, r.in[key], r.out[key])
	}
	r.written(t, secure)
}

// TestUnknownKindAlone: records of unknown kinds are reported even if there is nothing else to
// migrate.
func TestUnknownKindAlone(t *testing.T) {
	in := newInput(t)
	in.delPrefix(recordsV1)
	for _, kd := range kinds() {
		in.del(crdDir + kd.V1Plural + "." + groupV1)
	}
	stray := recordsV1 + "globalfelixconfigs/loglevel"
	in.put(stray, []byte("{}"))
	r := planOn(t, in.write(), New(Options{}), codeUnknownKind.Name)
	require.NoError(t, r.err)
	require.Equal(t, []string{"error no-v3-kind " + stray, "warning apiservice-left " + aggregated}, r.problems())
	require.Empty(t, r.changed())
}

// forget removes a property from the schema of a CRD.
func (in *input) forget(crd string, path ...string) {
	in.edit(crdDir+crd, func(obj map[string]any) {
		at := obj["spec"].(map[string]any)["validation"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		for _, name := range path[:len(path)-1] {
			at = at[name].(map[string]any)
		}
		require.Contains(in.t, at, path[len(path)-1])
		delete(at, path[len(path)-1])
	})
}

// TestNothingIsPruned: a v3 CRD without a field of a record, or of the migration, must not be used.
// Fields unknown to the v1 CRD too were invisible to clients.
func TestNothingIsPruned(t *testing.T) {
	const attributes = "properties spec properties attributes items properties releasedAt"
	block, status, policy := "ipamblocks/192-168-174-128-26", "caliconodestatuses/node-a-status",
		"stagedkubernetesnetworkpolicies/team-a/bare"
	in := newInput(t)
	in.record(v1{kind: "StagedKubernetesNetworkPolicy", namespace: "team-a", name: "bare",
		uid: "22345678-9abc-4def-8123-456789abcdef", inner: "{}"})
	in.forget("ipamblocks.projectcalico.org", strings.Split(attributes, " ")...)
	in.forget("caliconodestatuses.projectcalico.org", "properties", "status")
	in.forget("stagedkubernetesnetworkpolicies.projectcalico.org", "properties", "spec", "properties", "policyTypes")
	path := in.write()
	got := planOn(t, path, New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeCRDUnfit.Name, recordsV1+block),
		"the v3 CRD of IPAMBlock does not know spec.attributes[1].releasedAt, which would be lost")
	require.Contains(t, got.reason(t, codeCRDUnfit.Name, recordsV1+status), "does not know status,")
	require.Contains(t, got.reason(t, codeCRDUnfit.Name, recordsV1+policy), "does not know spec.policyTypes,",
		"which the record lacks")

	got = planOn(t, path, New(Options{}), codeCRDUnfit.Name)
	require.NoError(t, got.err, "%v", got.Problems)
	for _, name := range []string{block, status, policy} {
		require.Equal(t, got.in[recordsV1+name], got.out[recordsV1+name])
		require.NotContains(t, got.out, recordsV3+name)
	}

	in.forget("ipamblocks.crd.projectcalico.org", strings.Split(attributes, " ")...)
	in.del(crdDir + "caliconodestatuses.crd.projectcalico.org")
	null := v1{kind: "GlobalNetworkSet", name: "null", inner: "{}", spec: `{"allowedEgressDomains":null}`}
	in.record(null).edit(crdDir+"globalnetworksets.crd.projectcalico.org", func(obj map[string]any) {
		set(obj, "spec.validation.openAPIV3Schema.properties.spec.properties.allowedEgressDomains.nullable", true)
	})
	in.edit(crdDir+"stagedkubernetesnetworkpolicies.crd.projectcalico.org",
		func(obj map[string]any) { set(obj, "spec.preserveUnknownFields", true) })
	got = planOn(t, in.write(), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.True(t, got.has(finding.Warning, codePrunedField.Name, recordsV1+policy),
		"its v1 CRD keeps all, junk too, and tells nothing")
	require.True(t, got.has(finding.Warning, codePrunedField.Name, recordsV1+block))
	require.NotContains(t, got.out[recordsV3+block], "releasedAt")
	require.True(t, got.has(finding.Warning, codePrunedField.Name, recordsV1+status),
		"without its v1 CRD nobody can tell")
	require.NotContains(t, got.written(t, null.v3())["spec"], "allowedEgressDomains", "nothing is lost with a null")
}

// TestRulesHaveABudget: the rules of a v3 CRD have one budget for all records. The records beyond
// the budget are the same in every run.
func TestRulesHaveABudget(t *testing.T) {
	in := newInput(t)
	list := `[` + strings.Repeat("1,", 44) + `1]`
	rule := list + `.all(a, ` + list + `.all(b, ` + list + `.all(c, a + b + c > 0)))`
	in.edit(crdDir+"globalnetworksets.projectcalico.org", func(obj map[string]any) {
		set(obj, "spec.validation.openAPIV3Schema.x-kubernetes-validations", []any{map[string]any{"rule": rule}})
	})
	for i := range 40 {
		in.record(v1{kind: "GlobalNetworkSet", name: fmt.Sprintf("s%02d", i),
			uid: fmt.Sprintf("22345678-9abc-4def-8123-4567890000%02d", i), inner: "{}"})
	}
	path := in.write()
	r := planOn(t, path, New(Options{}))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, r.problems(), planOn(t, path, New(Options{})).problems())
	left := 0
	for _, p := range r.Problems {
		if p.Code == codeInvalid {
			left++
			require.Contains(t, p.Reason, "the schemas and rules of CustomResourceDefinitions cost ")
		}
	}
	require.Greater(t, left, 20)
	require.Less(t, left, 35)
}
