package calico

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// silentCase is a record without migration, and its finding.
type silentCase struct {
	name   string
	record v1
	value  string // in place of the record's own
	code   string
	reason string
}

func silentCases(t *testing.T) []silentCase {
	set := v1{kind: "GlobalNetworkSet", name: "bad", inner: "{}", spec: `{"nets":["192.0.2.0/24"]}`}
	with := func(change func(*v1)) v1 { r := set; change(&r); return r }
	return []silentCase{
		{name: "empty annotation", record: with(func(r *v1) { r.inner = "" }), code: codeBadMetadata.Name,
			reason: "annotation projectcalico.org/metadata: unexpected end"},
		{name: "malformed annotation", record: with(func(r *v1) { r.inner = `{"name":` }), code: codeBadMetadata.Name,
			reason: "unexpected end of JSON input"},
		{name: "no UUID", record: with(func(r *v1) { r.uid = "not-a-uid" }), code: codeBadUID.Name,
			reason: `metadata.uid "not-a-uid": not a UUID`},
		{name: "the UID of another record",
			record: with(func(r *v1) { r.uid = "eb3f6a84-8e70-43ce-a662-3113296b095f" }), code: codeBadUID.Name,
			reason: "/registry/crd.projectcalico.org/tiers/security has the same"},
		{name: "an owner's UID is no UUID", record: with(func(r *v1) {
			r.inner =
				`{"ownerReferences":[{"apiVersion":"crd.projectcalico.org/v1","kind":"Tier","name":"security",` +
					`"uid":"x"}]}`
		}), code: codeBadUID.Name, reason: `owner reference to Tier "security": uid "x": not a UUID`},
		{name: "truncated", record: set, value: `{"apiVersion":"crd.projectcalico.org/v1","kind":`,
			code: finding.Undecodable.Name, reason: "JSON value"},
		{name: "not an object at all", record: set, value: "nonsense", code: finding.Undecodable.Name,
			reason: "8 bytes"},
		{name: "another kind", record: set, value: string(v1{kind: "Tier", name: "bad", inner: "{}"}.json(t)),
			code: finding.Undecodable.Name, reason: "is a crd.projectcalico.org/v1 Tier"},
		{name: "encrypted", record: set, value: "k8s:enc:aescbc:v1:k2:xxxxxxxxxxxxxxxx", code: finding.Encrypted.Name,
			reason: "value is encrypted by aescbc:v1:k2"},
		{name: "named unlike its key", record: set, value: string(with(func(r *v1) { r.name = "other" }).json(t)),
			code: codeBadMetadata.Name, reason: `metadata names it "other"`},
		{name: "duplicates in a set", record: with(func(r *v1) { r.spec = `{"nets":["192.0.2.0/24","192.0.2.0/24"]}` }),
			code: codeInvalid.Name, reason: `spec.nets[1]: Duplicate value: "192.0.2.0/24"`},
		{name: "a spec of another type", record: with(func(r *v1) { r.spec = `"x"` }), code: codeInvalid.Name,
			reason: "spec: not an object"},
		{name: "a label no server takes", record: with(func(r *v1) { r.inner = `{"labels":{"a":"not a value!"}}` }),
			code: codeInvalid.Name, reason: "metadata.labels: Invalid value"},
		{name: "a name no server takes", record: with(func(r *v1) { r.inner = `{"name":"Upper"}` }),
			code: codeInvalid.Name, reason: `metadata.name "Upper"`},
		{name: "deleted is garbage", record: v1{kind: "BlockAffinity", name: "bad", inner: "{}",
			spec: `{"cidr":"10.0.0.0/26","node":"n","state":"confirmed","deleted":"yes"}`},
			code: codeInvalid.Name, reason: "spec.deleted: yes is neither true nor false"},
		{name: "an affinity state of its own", record: v1{kind: "BlockAffinity", name: "bad", inner: "{}",
			spec: `{"cidr":"10.0.0.0/26","node":"n","state":"odd","deleted":"false"}`},
			code: codeInvalid.Name, reason: `spec.state: Unsupported value: "odd"`},
		{name: "an affinity outside the pattern", record: v1{kind: "IPAMBlock", name: "10-9-0-0-32", inner: "{}",
			spec: `{"cidr":"10.9.0.0/32","affinity":"host:a b","allocations":[null],"unallocated":[0],` +
				`"attributes":[],"strictAffinity":false}`},
			code: codeInvalid.Name, reason: "spec.affinity"},
		{name: "no CIDR", record: v1{kind: "IPAMBlock", name: "bad", inner: "{}",
			spec: `{"cidr":"10.9.0.0","allocations":[]}`}, code: codeInvalid.Name,
			reason: "spec.cidr: invalid CIDR address: 10.9.0.0"},
		{name: "no handle id", record: v1{kind: "IPAMHandle", name: "bad", inner: "{}", spec: `{"block":{}}`},
			code: codeInvalid.Name, reason: "spec.handleID: Required value"},
		{name: "more blocks than v3 allows", record: v1{kind: "IPAMConfig", name: "bad", inner: "{}",
			spec: `{"strictAffinity":false,"autoAllocateBlocks":true,"maxBlocksPerHost":2147483647}`},
			code: codeInvalid.Name, reason: "spec.maxBlocksPerHost"},
		{name: "a namespace", record: v1{kind: "Tier", namespace: "team-a", name: "inside", inner: "{}"},
			code: finding.Undecodable.Name, reason: "the key does not fit the scope of Tier"},
		{name: "no owner left", record: with(func(r *v1) {
			r.inner = `{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"gone","uid":"u"}]}`
		}), code: codeDanglingOwner.Name, reason: `owner v1 Namespace "gone" (uid u): it does not exist`},
	}
}

// TestNothingSilent: an obstacle in a record refuses the run with key and reason; if allowed, the
// record and all v1 records stay. The live controller skips most of these records with a log line,
// or wedges on them.
func TestNothingSilent(t *testing.T) {
	tests := silentCases(t)
	in := newInput(t)
	codes := map[string]bool{}
	for i := range tests {
		tt, n := &tests[i], fmt.Sprintf("%02d", i)
		tt.value = strings.ReplaceAll(tt.value, storedUID, "aaaaaa"+n+"-0000-4000-8000-000000000000")
		tt.record.name += n
		if tt.record.uid == "" {
			tt.record.uid = "aaaaaa" + n + "-0000-4000-8000-000000000000"
		}
		in.record(tt.record)
		if tt.value != "" {
			in.put(tt.record.key(), []byte(tt.value))
		}
		codes[tt.code] = true
	}
	path := in.write()
	refused := planOn(t, path, New(Options{}))
	require.ErrorIs(t, refused.err, transform.ErrRefused)
	_, refusing := refused.Errors()
	require.Equal(t, len(tests), refusing, "%v", refused.Problems)
	allowed := planOn(t, path, New(Options{}), slices.Collect(maps.Keys(codes))...)
	keepsV1(t, allowed, tests[0].record.key(), len(tests))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			key := tt.record.key()
			require.True(t, refused.has(finding.Error, tt.code, key), "%v", refused.Problems)
			require.Contains(t, refused.reason(t, tt.code, key), tt.reason)
			require.Equal(t, allowed.in[key], allowed.out[key])
			require.NotContains(t, allowed.out, tt.record.v3())
		})
	}
	require.Contains(t, allowed.out, secure, "all others are migrated")
	require.Equal(t, 15, allowed.count("GlobalNetworkSet").Skipped)
	require.Equal(t, 2, allowed.count("GlobalNetworkSet").Migrated)
}

// TestUnreadableOnce: an unreadable value is one problem, regardless of the number of reads.
func TestUnreadableOnce(t *testing.T) {
	const apiService = "/registry/apiregistration.k8s.io/apiservices/v3.projectcalico.org"
	keys := []string{
		"/registry/daemonsets/kube-system/calico-node", "/registry/deployments/kube-system/calico-typha",
		"/registry/configmaps/kube-system/calico-config",
		apiService, migrationKey, crdDir + "bgpfilters.projectcalico.org", recordsV3 + "ippools/lb-pool",
		recordsV1 + "bgppeers/tor-r1", "/registry/secrets/team-a/token",
	}
	for code, value := range map[string]string{finding.Encrypted.Name: "k8s:enc:aescbc:v1:k2:xxxxxxxxxxxxxxxx",
		finding.Undecodable.Name: `{"apiVersion":"projectcalico.org/v3",`} {
		t.Run(code, func(t *testing.T) {
			in := newInput(t)
			for _, key := range keys {
				in.put(key, []byte(value))
			}
			path := in.write()
			got := planOn(t, path, New(Options{SetAPIGroup: true}))
			require.ErrorIs(t, got.err, transform.ErrRefused)
			var found []string
			for _, p := range got.Problems {
				if p.Code.Name == code {
					found = append(found, p.Key)
				}
			}
			require.ElementsMatch(t, keys, found)

			got = planOn(t, path, New(Options{SetAPIGroup: true}), code, codeConflict.Name, codeCRDMissing.Name)
			require.NoError(t, got.err, "%v", got.Problems)
			for _, key := range keys {
				require.Equal(t, value, got.out[key])
			}
			steps := strings.Join(got.Steps, "\n")
			require.Contains(t, steps, "initContainer of DaemonSet kube-system/calico-node")
			require.Contains(t, steps, "check that cni_network_config of ConfigMap kube-system/calico-config")
			require.Contains(t, steps, "delete APIService v3.projectcalico.org if it names a service")
		})
	}
}

func TestMissingCRDRefusesItsRecords(t *testing.T) {
	in := newInput(t)
	in.del("/registry/apiextensions.k8s.io/customresourcedefinitions/tiers.projectcalico.org")
	got := planOn(t, in.write(), New(Options{}))
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.True(t, got.has(finding.Error, codeCRDMissing.Name, recordsV1+"tiers/security"))
	require.Equal(t, 5, got.count("Tier").Skipped)
}

// TestKeepV1 keeps the v1 group, like the live controller until its cleanup.
func TestKeepV1(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{KeepV1: true}))
	require.NoError(t, got.err)
	for key, value := range got.in {
		if strings.HasPrefix(key, recordsV1) && key != recordsV1+"clusterinformations/default" {
			require.Equal(t, value, got.out[key], key)
		}
	}
	require.Contains(t, got.out, "/registry/apiextensions.k8s.io/customresourcedefinitions/tiers.crd.projectcalico.org")
	require.NotContains(t, strings.Join(got.Steps, "\n"), "were not migrated")

	live := contents(t, recorded(t, "after.db"))
	const lock = recordsV1 + "clusterinformations/default"
	for _, at := range diffJSON(t, live[lock], got.out[lock]) {
		require.True(t, strings.HasPrefix(at, "metadata.managedFields"), "locked as the live controller does: %s", at)
	}
}

func TestLockedDatastore(t *testing.T) {
	in := newInput(t)
	in.edit(recordsV1+"clusterinformations/default", func(obj map[string]any) {
		obj["spec"].(map[string]any)["datastoreReady"] = false
	})
	got := planOn(t, in.write(), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	require.True(t, got.has(finding.Warning, codeDatastoreLocked.Name, recordsV1+"clusterinformations/default"))
	require.Contains(t, got.out[recordsV3+"clusterinformations/default"], `"datastoreReady":true`)
}
