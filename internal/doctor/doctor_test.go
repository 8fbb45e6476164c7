package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// webhooks is a configuration with one webhook of Service team/SERVICE.
func webhooks(kind, service, rest string) record {
	return object(strings.ToLower(kind)+"webhookconfigurations/guard", "admissionregistration.k8s.io/v1", kind+"WebhookConfiguration",
		`},"webhooks":[{"name":"guard.example.com","clientConfig":{"service":{"namespace":"team","name":"`+service+`"}},`+rest+`}]`)
}

const (
	allPods  = `"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]`
	allKinds = `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]`
	fail     = `"failurePolicy":"Fail",`
	ofTeam   = `{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"team","name":"%s"}},"conversionReviewVersions":["v1"]}}`
)

func widget(name, version string) record {
	return object("example.com/widgets/team/"+name, "example.com/"+version, "Widget", "")
}

func owned1(key, kind, ownerVersion, ownerKind, id string) record {
	return object(key, "v1", kind, `,"ownerReferences":[{"apiVersion":"`+ownerVersion+`","kind":"`+ownerKind+`","name":"o","uid":"`+id+`"}]}`)
}

// TestEveryCode: each code of a check has a row in a table of defects, or a test of its own.
func TestEveryCode(t *testing.T) {
	tested := map[*finding.Code]bool{}
	for _, code := range slices.Concat(Codes()[len(Codes())-13:], []*finding.Code{ // of kcp: kcp_test.go
		CodeDamaged, codeNoLiveKey, codeNoDigest, codeBumpRevision, codeOverQuota, codeNearQuota, codeAlarmNoSpace, codeAlarmCorrupt, // file_test.go
		codeEtcdTooOld, codeEtcdVersion, codeLeaseGone, codeMasterUnlisted, finding.Encrypted,
		codeForeignKeys, codeLayoutUnchecked, codeCalicoEmpty, codeCalicoMigrating, codeCalicoLocked,
		machines.CodeOldNodes, machines.CodeNotInFile, // TestNewMachines
	}) {
		tested[code] = true
	}
	for _, d := range slices.Concat(defects(), machineDefects()) {
		tested[d.code] = true
	}
	for _, code := range Codes() {
		require.True(t, tested[code], "no row of defects_test.go is for the code %s", code.Name)
		require.NotEmpty(t, code.Remedy, "finding/codes/%s.md has no remedy", code.Name)
	}
}

// TestFindings: records with a defect have one finding of its code and key; sound ones have none.
func TestFindings(t *testing.T) {
	on := base(t)
	for _, tc := range defects() {
		t.Run(tc.code.Name, func(t *testing.T) {
			found := examined(t, written(t, on, append(healthy(), tc.with...)...), Options{}).Of(tc.code)
			require.Len(t, found, 1)
			require.Equal(t, "/registry/"+tc.key, found[0].Key)
			require.Contains(t, found[0].Reason, tc.says)
			require.Empty(t, examined(t, written(t, on, append(healthy(), tc.without...)...), Options{}).Of(tc.code))
			require.Empty(t, examined(t, written(t, on, append(healthy(), tc.with...)...), Options{Ignore: []string{tc.code.Name}}).Of(tc.code))
		})
	}
	t.Run("a definition of many bytes", func(t *testing.T) {
		padding := `"metadata":{"annotations":{"a":"` + strings.Repeat("x", mostSchemas) + `"},`
		large := record{crds, strings.Replace(portCRD().value, `"metadata":{`, padding, 1)}
		wrong := object(teamWidgets+"a", "example.com/v1", "Widget", `},"spec":{"ports":[{"port":1}]}`)
		require.Len(t, examined(t, written(t, on, append(healthy(), large, wrong)...), Options{}).Of(CodeUpdateRefused), 1)
	})
	t.Run("rules that cost much", func(t *testing.T) {
		list := `[` + strings.Repeat("1,", 44) + `1]`
		rule := `{"rule":"` + list + `.all(a, ` + list + `.all(b, ` + list + `.all(c, a + b + c > 0)))"}`
		slow := record{crds, strings.Replace(portCRD().value, `"openAPIV3Schema":{`, `"openAPIV3Schema":{"x-kubernetes-validations":[`+rule+`],`, 1)}
		records := append(healthy(), slow)
		for i := range 40 {
			records = append(records, widget(fmt.Sprintf("a%02d", i), "v1"))
		}
		found := examined(t, written(t, on, records...), Options{}).Of(CodeUpdateRefused)
		require.Len(t, found, 28)
		require.Equal(t, "/registry/"+teamWidgets+"a12", found[0].Key)
		for _, f := range found {
			require.Equal(t, "its updates cannot be checked: the schemas and rules of CustomResourceDefinitions cost 10769278 units of CEL for the first 13 objects, "+
				"the most of it by widgets.example.com", f.Reason)
		}
	})
	t.Run("healthy", func(t *testing.T) {
		var codes []*finding.Code
		for _, f := range examined(t, written(t, on, healthy()...), Options{}).Findings {
			codes = append(codes, f.Code)
		}
		require.Equal(t, []*finding.Code{codeBumpRevision, codeEtcdVersion}, slices.Compact(codes))
	})
}

// TestForeignKeys: keys of other programs are a warning only below a storage prefix.
func TestForeignKeys(t *testing.T) {
	records := append(healthy(), record{"stray", "x"})
	on := opened(t, etcdtest.Build(t, "put compact_rev_key 1\nput /other/a/b/c/d/e/f 1\nput vault/x 1"))
	report := examined(t, written(t, on, records...), Options{})
	foreign, stray := report.Of(codeForeignKeys), report.Of(codeStrayKeys)
	require.Len(t, foreign, 1)
	require.Equal(t, []any{finding.Info, "/other/a/b/c/d/e/f", 2}, []any{foreign[0].Level, foreign[0].Key, foreign[0].Objects})
	require.Len(t, stray, 1)
	require.Equal(t, []any{finding.Warning, "/registry/stray", 1}, []any{stray[0].Level, stray[0].Key, stray[0].Objects})
}

// TestProtobuf: objects in JSON and in protobuf have the same findings.
func TestProtobuf(t *testing.T) {
	records := append(healthy(), webhooks("Mutating", "hook", fail+allKinds), webhooks("Validating", "gone", fail+allPods),
		object("minions/n1", "v1", "Node", ""),
		object("leases/kube-node-lease/n1", "coordination.k8s.io/v1", "Lease", `},"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}`),
		object("leases/kube-node-lease/n2", "coordination.k8s.io/v1", "Lease", `},"spec":{"renewTime":"2026-01-01T01:00:00.000000Z"}`),
		object("secrets/team/token", "v1", "Secret", `,"annotations":{"kubernetes.io/service-account.name":"gone"}},"type":"kubernetes.io/service-account-token"`),
		owned1("configmaps/team/a", "ConfigMap", "v1", "Pod", uidOf(9)),
		object("namespaces/old", "v1", "Namespace", `,"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]}`),
	)
	encoded, converted := asProtobuf(t, records)
	require.Greater(t, converted, 15)
	on := base(t)
	inJSON, inProtobuf := examined(t, written(t, on, records...), Options{}), examined(t, written(t, on, encoded...), Options{})
	require.Equal(t, inJSON.Findings, inProtobuf.Findings)
	for _, code := range []*finding.Code{codeWebhookDeadlock, codeWebhookCore, codeWebhookServiceGone, codeNodeSilent, codeTokenWithoutUse, codeOwnerGone, codeNamespaceTerminating} {
		require.Len(t, inProtobuf.Of(code), 1, code)
	}
}

// asProtobuf returns records as an API server stores them, and how many it stores in protobuf.
func asProtobuf(t *testing.T, records []record) (encoded []record, converted int) {
	t.Helper()
	encoder, encoded := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), slices.Clone(records)
	for i, r := range records {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(balanced(r.value)), nil, nil)
		if err != nil {
			continue // a custom resource, or an APIService
		}
		var out strings.Builder
		require.NoError(t, encoder.Encode(obj, &out))
		encoded[i].value = out.String()
		converted++
	}
	return encoded, converted
}
