package doctor

import (
	"context"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// webhooks returns a configuration with one webhook of Service team/SERVICE.
func webhooks(kind, service, rest string) record {
	return object(strings.ToLower(kind)+"webhookconfigurations/guard", "admissionregistration.k8s.io/v1",
		kind+"WebhookConfiguration",
		`},"webhooks":[{"name":"guard.example.com","clientConfig":{"service":{"namespace":"team","name":"`+service+
			`"}},`+rest+`}]`)
}

const (
	allPods  = `"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]`
	allKinds = `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]`
	fail     = `"failurePolicy":"Fail",`
	ofTeam   = `{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"team","name":"%s"}},` +
		`"conversionReviewVersions":["v1"]}}`
)

func widget(name, version string) record {
	return object("example.com/widgets/team/"+name, "example.com/"+version, "Widget", "")
}

func owned1(key, kind, ownerVersion, ownerKind, id string) record {
	return object(key, "v1", kind, `,"ownerReferences":[{"apiVersion":"`+ownerVersion+`","kind":"`+ownerKind+
		`","name":"o","uid":"`+id+`"}]}`)
}

// TestEveryCode: each code of a check has a row in a table of defects, or its own test.
func TestEveryCode(t *testing.T) {
	tested := map[*finding.Code]bool{}
	for _, code := range []*finding.Code{
		CodeDamaged, codeNoLiveKey, codeNoDigest, codeBumpRevision, codeOverQuota, codeNearQuota, codeAlarmNoSpace,
		codeAlarmCorrupt, // file_test.go
		codeEtcdTooOld, codeEtcdOlder, codeEtcdVersion, codeLeaseGone, codeMasterUnlisted, finding.Encrypted,
		codeForeignKeys, codeLayoutUnchecked, codeCalicoEmpty, codeCalicoMigrating, codeCalicoLocked,
		machines.CodeOldNodes, machines.CodeNotInFile, // TestNewMachines
		codePrunedField, // TestReleaseOfRestore
	} {
		tested[code] = true
	}
	for _, d := range slices.Concat(defects(), machineDefects()) {
		tested[d.code] = true
	}
	for _, d := range kcpDefects() {
		for _, code := range append(d.also, d.code) {
			tested[code] = true
		}
	}
	for _, code := range Codes() {
		if code.Remedy == "" {
			t.Errorf("finding/codes/%s.md: write the page of the code, with its remedy", code.Name)
		}
		if !tested[code] {
			t.Errorf("defects_test.go: add a row for %q", code.Name)
		}
	}
}

// TestFindings: records with a defect have one finding of its code and key; sound ones have only
// the findings of every file and those that the row names. The same holds for objects in protobuf.
func TestFindings(t *testing.T) {
	on := base(t)
	for _, tc := range defects() {
		t.Run(tc.code.Name, func(t *testing.T) {
			sound, others := tc.sound()
			with, damaged := append(healthy(), tc.with...), tc.code == finding.Undecodable
			for _, records := range [][]record{with, asProtobuf(t, with, damaged)} {
				found := examined(t, written(t, on, records...), Options{}).Of(tc.code)
				require.Len(t, found, 1, "does the entry in doctor.go keep the types that the check reads?")
				require.Equal(t, "/registry/"+tc.key, found[0].Key)
				require.Contains(t, found[0].Reason, tc.says)
			}
			require.Empty(t, examined(t, written(t, on, with...), Options{Ignore: []string{tc.code.Name}}).Of(tc.code))
			for _, records := range [][]record{sound, asProtobuf(t, sound, damaged)} {
				counts := examined(t, written(t, on, records...), Options{}).Counts
				found := finding.Names(slices.Collect(maps.Keys(counts))...)
				slices.Sort(found)
				if !slices.Equal(others, found) {
					t.Errorf("defects_test.go: the records without %q have the findings %s; the row names %s, by also",
						tc.code.Name, found, others)
				}
			}
		})
	}
	t.Run("a definition of many bytes", func(t *testing.T) {
		padding := `"metadata":{"annotations":{"a":"` + strings.Repeat("x", mostSchemas) + `"},`
		large := record{crds, strings.Replace(portCRD().value, `"metadata":{`, padding, 1)}
		wrong := object(teamWidgets+"a", "example.com/v1", "Widget", `},"spec":{"ports":[{"port":1}]}`)
		require.Len(t, examined(t, written(t, on, append(healthy(), large, wrong)...), Options{}).Of(CodeUpdateRefused),
			1)
	})
	t.Run("rules that cost much", func(t *testing.T) {
		list := `[` + strings.Repeat("1,", 44) + `1]`
		rule := `{"rule":"` + list + `.all(a, ` + list + `.all(b, ` + list + `.all(c, a + b + c > 0)))"}`
		slow := record{crds, strings.Replace(portCRD().value, `"openAPIV3Schema":{`,
			`"openAPIV3Schema":{"x-kubernetes-validations":[`+rule+`],`, 1)}
		records := append(healthy(), slow)
		for i := range 40 {
			records = append(records, widget(fmt.Sprintf("a%02d", i), "v1"))
		}
		found := examined(t, written(t, on, records...), Options{}).Of(CodeUpdateRefused)
		require.Len(t, found, 28)
		require.Equal(t, "/registry/"+teamWidgets+"a12", found[0].Key)
		for _, f := range found {
			require.Equal(t, "its updates cannot be checked: the schemas and rules of CustomResourceDefinitions cost "+
				"10769278 units of CEL for the first 13 objects, "+
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
	require.Equal(t, []any{finding.Info, "/other/a/b/c/d/e/f", 2},
		[]any{foreign[0].Level, foreign[0].Key, foreign[0].Objects})
	require.Len(t, stray, 1)
	require.Equal(t, []any{finding.Warning, "/registry/stray", 1},
		[]any{stray[0].Level, stray[0].Key, stray[0].Objects})
}

// asProtobuf returns records in the form stored by an API server. Damaged records have none.
func asProtobuf(t *testing.T, records []record, damaged bool) []record {
	t.Helper()
	encoder, encoded := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), slices.Clone(records)
	for i, r := range records {
		obj, kind, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(balanced(r.value)), nil, nil)
		if err != nil {
			custom := kind == nil || !scheme.Scheme.Recognizes(*kind) // or an APIService
			require.True(t, custom || damaged, "%s has no form in protobuf: %v", r.key, err)
			continue
		}
		var out strings.Builder
		require.NoError(t, encoder.Encode(obj, &out))
		encoded[i].value = out.String()
	}
	return encoded
}

// record is a key below /registry/ and its value.
type record struct{ key, value string }

// object is a value with the name and namespace of its key; rest follows them, for example
// `,"uid":"x"},"spec":{}`.
func object(key, apiVersion, kind, rest string) record {
	of, _ := keys.Kubernetes{Prefix: "/registry"}.Parse([]byte("/registry/" + key)) // none for a key of kcp
	ns := ""
	if of.Namespace != "" {
		ns = fmt.Sprintf(`,"namespace":%q`, of.Namespace)
	}
	if rest == "" {
		rest = "}"
	}
	return record{key, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s%s}`, apiVersion, kind,
		path.Base(key), ns, rest)}
}

func apiServiceObject(name, spec, status string) record {
	return object("apiregistration.k8s.io/apiservices/"+name, "apiregistration.k8s.io/v1", "APIService",
		`},"spec":`+spec+`,"status":`+status)
}

// crd defines widgets.example.com, served at v1beta1 and v1. extra is additional metadata.
func crd(extra, conversion, stored string) record {
	return object("apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", "apiextensions.k8s.io/v1",
		"CustomResourceDefinition", extra+
			`},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},`+
			`"versions":[{"name":"v1beta1","served":true,"storage":false},{"name":"v1","served":true,"storage":true}],`+
			`"conversion":`+conversion+
			`},"status":{"acceptedNames":{"plural":"widgets","kind":"Widget"},"storedVersions":`+
			stored+`}`)
}

const noConversion = `{"strategy":"None"}`

// healthy returns a cluster with only the findings of every file.
func healthy() []record {
	return []record{
		object("namespaces/default", "v1", "Namespace", ""), object("namespaces/kube-system", "v1", "Namespace",
			`,"labels":{"kubernetes.io/metadata.name":"kube-system"}}`),
		object("namespaces/kube-node-lease", "v1", "Namespace", ""), object("namespaces/team", "v1", "Namespace", ""),
		apiServiceObject("v1.", `{"version":"v1"}`, `{}`),
		apiServiceObject("v1.apps", `{"group":"apps","version":"v1"}`, `{}`),
		apiServiceObject("v1.example.com", `{"group":"example.com","version":"v1"}`, `{}`),
		crd("", noConversion, `["v1"]`),
		object("example.com/widgets/team/w", "example.com/v1", "Widget", `,"uid":"`+uidOf(1)+`"}`),
		object("services/specs/team/hook", "v1", "Service", `},"spec":{"selector":{"app":"hook"}}`),
		object("services/endpoints/team/hook", "v1", "Endpoints", `},"subsets":[{"addresses":[{"ip":"10.0.0.1"}]}]`),
		object("pods/team/hook-0", "v1", "Pod", `,"labels":{"app":"hook"}}`),
		object("serviceaccounts/team/sa", "v1", "ServiceAccount", `,"uid":"`+uidOf(2)+`"}`),
	}
}

func uidOf(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// base returns a snapshot of a real etcd, the basis of other snapshots.
func base(t testing.TB) *snapshot.Snapshot {
	t.Helper()
	return opened(t, etcdtest.Build(t, "put compact_rev_key 1"))
}

func opened(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// written returns a snapshot with records on top of another; an empty value deletes.
func written(t testing.TB, on *snapshot.Snapshot, records ...record) *snapshot.Snapshot {
	t.Helper()
	last, order := map[string]string{}, []string(nil)
	for _, r := range records {
		if _, twice := last[r.key]; !twice {
			order = append(order, r.key)
		}
		last[r.key] = r.value
	}
	path, reader := filepath.Join(t.TempDir(), "written.db"), inspect.NewReader(on, nil)
	_, err := snapshot.Write(context.Background(), path, on, func(yield func(snapshot.Change, error) bool) {
		for _, key := range order {
			c := snapshot.Change{Key: []byte("/registry/" + key), Value: []byte(balanced(last[key])),
				Delete: last[key] == ""}
			e, err := reader.Get(context.Background(), c.Key)
			if e != nil {
				c.Prior = e.ModRevision
			}
			if (e != nil || !c.Delete) && !yield(c, err) {
				return
			}
		}
	}, snapshot.WriteConfig{})
	require.NoError(t, err)
	return opened(t, path)
}

// balanced adds the closing braces omitted by object.
func balanced(value string) string {
	if !strings.HasPrefix(value, `{"`) {
		return value
	}
	return value + strings.Repeat("}", strings.Count(value, "{")-strings.Count(value, "}"))
}

func examined(t testing.TB, s *snapshot.Snapshot, o Options) *finding.Report {
	t.Helper()
	report, err := Examine(context.Background(), inspect.NewReader(s, nil), o)
	require.NoError(t, err)
	for _, f := range report.Findings {
		require.Contains(t, Codes(), f.Code, "doctor.go: add %q to checks", f.Code.Name)
		require.Equal(t, f.Code.Level, f.Level)
		require.NotEmpty(t, f.Reason, f.Code)
		require.NotEmpty(t, f.Code.Remedy, f.Code)
		require.NotContains(t, f.Reason, "%!")
	}
	return report
}

// TestReports: files of bug reports have the findings that were missing.
func TestReports(t *testing.T) {
	for name, tc := range map[string]struct {
		code *finding.Code
		says string
	}{
		"h2-only-a-namespaces":      {codeWebhookCore, "namespaces of the system"},
		"h2-only-b-tokens":          {codeWebhookDeadlock, "the tokens of its Pods"},
		"h2-only-c-nodes-create":    {codeWebhookCore, "joining nodes"},
		"h2-only-d-endpointslices":  {codeWebhookDeadlock, "its EndpointSlices"},
		"h2-only-e-pods-conditions": {codeWebhookCore, "what the API server writes at its start"},
		"h2-only-f-replicasets":     {codeWebhookDeadlock, "its ReplicaSets"},
		"s1-services":               {codeAddressTwice, "cluster IP "},
		"g1-k3s-nodes":              {codeDeleting, "the attacher detaches the volume"},
		"crash-mixed-nocrd":         {finding.Undecodable, "a v1 ConfigMap, under the key of one of widgets.h.example"},
		"j1-ghost-field":            {codeHiddenField, "the schema of its version lacks spec.turbo"},
	} {
		t.Run(name, func(t *testing.T) {
			found := examined(t, opened(t, "../../testdata/reports/"+name+".db.gz"), Options{}).Of(tc.code)
			require.Len(t, found, 1)
			require.Contains(t, found[0].Reason, tc.says)
		})
	}
	all := examined(t, opened(t, "../../testdata/reports/h1-webhooks.db.gz"), Options{})
	require.Len(t, slices.Concat(all.Of(codeWebhookCore), all.Of(codeWebhookDeadlock)), 12,
		"all but one webhook block both")
}

// FuzzDecode: decoding any value gives an object or an error.
func FuzzDecode(f *testing.F) {
	for _, r := range append(healthy(),
		webhooks("Validating", "hook", fail+allKinds),
		object("leases/kube-node-lease/n1", "coordination.k8s.io/v1", "Lease",
			`},"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}`),
		record{"", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a"},
		record{"", "\xd9\xd9\xf7\xa1\x61a\x01"},
	) {
		f.Add([]byte(balanced(r.value)))
	}
	ctx := context.Background()
	r := inspect.NewReader(written(f, base(f), healthy()...), nil)
	_, err := r.Layouts(ctx)
	require.NoError(f, err)
	finder, err := machines.NewFinder(ctx, r, "/registry")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, value []byte) {
		e := &inspect.Entry{Key: []byte("/registry/things/x"), Stored: value}
		require.NoError(t, r.Decrypt(ctx, e))
		_, _ = decode(e)
		_, _ = decodeAs[corev1.Namespace](e)
		_, _ = decodeAs[corev1.Service](e)
		_, _ = decodeAs[corev1.Endpoints](e) //nolint:staticcheck // as in the code
		_, _ = decodeAs[corev1.Secret](e)
		_, _ = decodeAs[discoveryv1.EndpointSlice](e)
		_, _ = decodeAs[coordinationv1.Lease](e)
		_, _ = decodeAs[admissionv1.MutatingWebhookConfiguration](e)
		_, _ = decodeAs[machines.APIService](e)
		for _, key := range []string{"cronjobs/team/c", "pods/team/p",
			"apiextensions.k8s.io/customresourcedefinitions/a.b.c"} {
			e := &inspect.Entry{Key: []byte("/registry/" + key), Stored: value}
			require.NoError(t, r.Decrypt(ctx, e))
			_ = finder.Ties(e)
		}
	})
}

func TestManagedVersions(t *testing.T) {
	const text = `{"metadata":{"managedFields":[{"apiVersion":"b/v1"},{"apiVersion":"a/v1",` +
		`"fieldsV1":{"apiVersion":{}}},{"apiVersion":"b/v1"},{}]}}`
	obj, _, err := encoding.DecodeObject([]byte(text))
	require.NoError(t, err)
	cbor, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	for _, data := range [][]byte{[]byte(text), cbor} {
		require.Equal(t, [][]byte{{}, []byte("a/v1"), []byte("b/v1")}, managedVersions(data))
	}
	for _, bad := range []string{"{", `{"metadata":1}`, `{"metadata":{"managedFields":{}}}`,
		`{"metadata":{"managedFields":[1]}}`, `{"metadata":{"managedFields":[{"apiVersion":1}]}}`, `{"metadata":{}}`} {
		require.Empty(t, managedVersions([]byte(bad)), bad)
	}
}
