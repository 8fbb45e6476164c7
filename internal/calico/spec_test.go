package calico

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// parseObject parses JSON as an unstructured object; all numbers are float64.
func parseObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	return m
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestAdmitPolicy(t *testing.T) {
	for _, tt := range []struct{ name, plural, spec, want, label string }{
		{"nothing set", "networkpolicies", `{}`, `{"tier":"default","types":["Ingress"]}`, "default"},
		{"empty tier", "networkpolicies", `{"tier":"","types":["Egress"]}`, `{"tier":"default","types":["Egress"]}`,
			"default"},
		{"explicit tier", "globalnetworkpolicies", `{"tier":"security","types":["Egress"]}`,
			`{"tier":"security","types":["Egress"]}`, "security"},
		{"both directions", "globalnetworkpolicies", `{"ingress":[{}],"egress":[{}]}`,
			`{"tier":"default","ingress":[{}],"egress":[{}],"types":["Ingress","Egress"]}`, "default"},
		{"egress alone", "stagedglobalnetworkpolicies", `{"egress":[{}]}`,
			`{"tier":"default","egress":[{}],"types":["Egress"]}`, "default"},
		{"ingress alone", "stagednetworkpolicies", `{"ingress":[{}]}`,
			`{"tier":"default","ingress":[{}],"types":["Ingress"]}`, "default"},
		{"empty lists are absent", "globalnetworkpolicies", `{"types":[],"ingress":[],"egress":[{}]}`,
			`{"tier":"default","ingress":[],"egress":[{}],"types":["Egress"]}`, "default"},
		{"both empty", "globalnetworkpolicies", `{"ingress":[],"egress":[]}`,
			`{"tier":"default","ingress":[],"egress":[],"types":["Ingress"]}`, "default"},
		{"null types", "globalnetworkpolicies", `{"types":null}`, `{"tier":"default","types":["Ingress"]}`, "default"},
		{"Kubernetes policy: nothing set", "stagedkubernetesnetworkpolicies", `{}`, `{"policyTypes":["Ingress"]}`, ""},
		{"Kubernetes policy: egress alone isolates both", "stagedkubernetesnetworkpolicies", `{"egress":[{}]}`,
			`{"egress":[{}],"policyTypes":["Ingress","Egress"]}`, ""},
		{"Kubernetes policy: empty types", "stagedkubernetesnetworkpolicies",
			`{"policyTypes":[],"ingress":[{}],"egress":[{}]}`,
			`{"ingress":[{}],"egress":[{}],"policyTypes":["Ingress","Egress"]}`, ""},
		{"Kubernetes policy: types set", "stagedkubernetesnetworkpolicies", `{"egress":[{}],"policyTypes":["Egress"]}`,
			`{"egress":[{}],"policyTypes":["Egress"]}`, ""},
		{"the field of another kind does not count", "globalnetworkpolicies", `{"policyTypes":["Egress"]}`,
			`{"policyTypes":["Egress"],"tier":"default","types":["Ingress"]}`, "default"},
		{"Kubernetes policy: nor here", "stagedkubernetesnetworkpolicies", `{"types":["Egress"]}`,
			`{"policyTypes":["Ingress"],"types":["Egress"]}`, ""},
		{"a tier of another type is for validation", "networkpolicies", `{"tier":5,"types":["Egress"]}`,
			`{"tier":5,"types":["Egress"]}`, "-"},
		{"no policy", "tiers", `{}`, `{}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, ok := kinds().ofV3(tt.plural)
			require.True(t, ok)
			meta, spec := map[string]any{}, parseObject(t, tt.spec)
			admitPolicy(k, meta, spec)
			require.JSONEq(t, tt.want, asJSON(t, spec))
			if tt.label == "" {
				require.Empty(t, meta)
				return
			}
			require.Equal(t, map[string]any{tierLabel: strings.Trim(tt.label, "-")}, meta["labels"])
		})
	}
}

func TestAdmitPolicyOverwritesTheTierLabel(t *testing.T) {
	k, _ := kinds().ofV3("networkpolicies")
	meta := map[string]any{"labels": map[string]any{tierLabel: "stale", "other": "kept"}}
	admitPolicy(k, meta, map[string]any{"tier": "security"})
	require.Equal(t, map[string]any{tierLabel: "security", "other": "kept"}, meta["labels"])
}

// convertAs converts the spec of a kind.
func convertAs(t *testing.T, name string, spec map[string]any) {
	k, ok := kinds().called(name)
	require.True(t, ok)
	require.NoError(t, convertSpec(k, map[string]any{}, spec))
}

func TestDefaultTierFields(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{}`, `{"order":1000000,"defaultAction":"Deny"}`},
		{`{"order":null,"defaultAction":""}`, `{"order":1000000,"defaultAction":"Deny"}`},
		{`{"order":0,"defaultAction":"Pass"}`, `{"order":0,"defaultAction":"Pass"}`},
		{`{"order":1.5}`, `{"order":1.5,"defaultAction":"Deny"}`},
	} {
		spec := parseObject(t, tt.in)
		convertAs(t, "Tier", spec)
		require.JSONEq(t, tt.want, asJSON(t, spec))
	}
}

func TestConvertAffinity(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text false", `{"deleted":"false","node":"node-1","type":"host"}`,
			`{"deleted":false,"node":"node-1","type":"host"}`},
		{"no type", `{"deleted":"true","node":"my-host"}`, `{"deleted":true,"node":"my-host"}`},
		{"empty type, no deleted", `{"node":"node-a","type":""}`, `{"deleted":false,"node":"node-a","type":""}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := parseObject(t, tt.in)
			convertAs(t, "BlockAffinity", spec)
			require.JSONEq(t, tt.want, asJSON(t, spec))
		})
	}
}

func TestHostnameHash(t *testing.T) {
	for node, hash := range map[string]string{
		"node-1":  "A3XPYDATRKB7Q4SM2O5FN4RXIHBFIL2PITFX26BAIP5XAB2X74CA",
		"my-host": "R2PGA4ZUN5YLSHP45OTT5YDKKILIFGNFGBRAQ5WT3EH6XESLPNYQ",
		"node-a":  "PY3TQE2E3XMTETLM2MJO3UITKPFB27YUJ4T4E5XGPEJON3SM4QAA",
	} {
		require.Equal(t, hash, machines.HostnameHash(node))
	}
}

func TestParseDeleted(t *testing.T) {
	for _, tt := range []struct {
		in   any
		want bool
	}{
		{nil, false}, {"", false}, {"false", false}, {"true", true}, {"True", true}, {"1", true}, {"t", true},
		{"0", false}, {"F", false}, {true, true}, {false, false},
	} {
		got, err := parseDeleted(tt.in)
		require.NoError(t, err, "%v", tt.in)
		require.Equal(t, tt.want, got, "%v", tt.in)
	}
	for _, in := range []any{"yes", "tRUE", " true", int64(1), map[string]any{}} {
		_, err := parseDeleted(in)
		r := finding.Of(err)
		require.NotNil(t, r, "%v", in)
		require.Equal(t, codeInvalid.Name, r.Code.Name)
	}
}

func TestConvertIPAMConfig(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{}`, `{"autoAllocateBlocks":false,"strictAffinity":false}`},
		{`{"autoAllocateBlocks":true,"strictAffinity":true,"maxBlocksPerHost":20}`,
			`{"autoAllocateBlocks":true,"strictAffinity":true,"maxBlocksPerHost":20}`},
		{`{"autoAllocateBlocks":null}`, `{"autoAllocateBlocks":false,"strictAffinity":false}`},
	} {
		spec := parseObject(t, tt.in)
		convertAs(t, "IPAMConfiguration", spec)
		require.JSONEq(t, tt.want, asJSON(t, spec))
	}
}

func TestConvertHandle(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"handleID":"A"}`, `{"handleID":"A","block":{}}`},
		{`{"handleID":"A","block":null}`, `{"handleID":"A","block":{}}`},
		{`{"handleID":"A","block":{"10.0.0.0/26":2},"deleted":true}`,
			`{"handleID":"A","block":{"10.0.0.0/26":2},"deleted":true}`},
	} {
		spec := parseObject(t, tt.in)
		convertAs(t, "IPAMHandle", spec)
		require.JSONEq(t, tt.want, asJSON(t, spec))
	}
}

func TestConvertBlock(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"all kept",
			`{"cidr":"10.0.0.0/30","allocations":[0,null,null,null],"attributes":[{"handle_id":"h\r",` +
				`"releasedAt":"2026-01-01T00:00:00Z"}],"unallocated":[1,2,3],"strictAffinity":true,"deleted":true}`,
			`{"cidr":"10.0.0.0/30","allocations":[0,null,null,null],"attributes":[{"handle_id":"h\r",` +
				`"releasedAt":"2026-01-01T00:00:00Z"}],"unallocated":[1,2,3],"strictAffinity":true,"deleted":true}`},
		{"lists and boolean filled in", `{"cidr":"10.0.0.0/32","allocations":[null],"unallocated":null}`,
			`{"cidr":"10.0.0.0/32","allocations":[null],"attributes":[],"unallocated":[],"strictAffinity":false}`},
		{"CIDR as Calico prints it", `{"cidr":"FD00:0::5/122","attributes":[],"unallocated":[],"strictAffinity":false}`,
			`{"cidr":"fd00::/122","attributes":[],"unallocated":[],"strictAffinity":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := parseObject(t, tt.in)
			convertAs(t, "IPAMBlock", spec)
			require.JSONEq(t, tt.want, asJSON(t, spec))
		})
	}
	require.Error(t, convertBlock(map[string]any{"cidr": "nonsense"}))
}
