package calico

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/finding"
)

func TestV3Name(t *testing.T) {
	bare := metadata{}
	unnamed := metadata{annotated: true}
	named := func(name string) metadata { return metadata{annotated: true, inner: metav1.ObjectMeta{Name: name}} }
	spec := func(kv ...string) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, tt := range []struct {
		name, kind, stored string
		meta               metadata
		spec               map[string]any
		want, note         string
	}{
		{"no annotation: verbatim", "globalnetworkpolicies", "default.bare-raw", bare, spec("tier", "default"),
			"default.bare-raw", ""},
		{"name inside", "networkpolicies", "default.legacy-np", named("legacy-np"), spec("tier", "default"),
			"legacy-np", ""},
		{"name inside keeps its prefix", "globalnetworkpolicies", "default.explicit-prefix",
			named("default.explicit-prefix"), spec(), "default.explicit-prefix", ""},
		{"name inside, stored under the v3 name", "stagednetworkpolicies", "allow-dns", named("allow-dns"), spec(),
			"allow-dns", ""},
		{"default tier: stripped", "globalnetworkpolicies", "default.legacy-gnp", unnamed, spec("tier", "default"),
			"legacy-gnp", ""},
		{"no tier: stripped", "stagedglobalnetworkpolicies", "default.foo", unnamed, spec(), "foo", ""},
		{"empty tier: stripped", "globalnetworkpolicies", "default.foo", unnamed, spec("tier", ""), "foo", ""},
		{"stripped once", "globalnetworkpolicies", "default.default.foo", unnamed, spec("tier", "default"),
			"default.foo", ""},
		{"another tier: kept", "globalnetworkpolicies", "default.foo", unnamed, spec("tier", "security"),
			"default.foo", ""},
		{"another tier's prefix: kept", "globalnetworkpolicies", "security.foo", unnamed, spec("tier", "security"),
			"security.foo", ""},
		{"no rule for Kubernetes policies", "stagedkubernetesnetworkpolicies", "default.foo", unnamed, spec(),
			"default.foo", ""},
		{"no rule for other kinds", "tiers", "default.foo", unnamed, spec(), "default.foo", ""},
		{"a name inside counts for any kind", "networksets", "stored", named("seen"), spec(), "seen", ""},
		{"block", "ipamblocks", "10-0-0-0-26", unnamed, spec("cidr", "10.0.0.0/26"), "10-0-0-0-26", ""},
		{"block of IPv6", "ipamblocks", "fd00-10---122", unnamed, spec("cidr", "fd00:10::/122"), "fd00-10---122", ""},
		{"block with host bits", "ipamblocks", "10-0-0-5-26", unnamed, spec("cidr", "10.0.0.5/26"), "10-0-0-0-26",
			codeBlockName.Name},
		{"block under another name", "ipamblocks", "odd", bare, spec("cidr", "10.0.0.0/26"), "10-0-0-0-26",
			codeBlockName.Name},
		{"handle with upper case", "ipamhandles", "k8s-pod-network.abc", unnamed,
			spec("handleID", "k8s-pod-network.ABC"), "k8s-pod-network.abc", ""},
		{"handle under another name", "ipamhandles", "odd", unnamed, spec("handleID", "other"), "other",
			codeHandleName.Name},
		{"handle without an id", "ipamhandles", "odd", unnamed, spec(), "odd", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, ok := kinds().ofV1(tt.kind)
			require.True(t, ok)
			got, notes, err := v3Name(k, tt.stored, tt.meta, tt.spec)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			if tt.note == "" {
				require.Empty(t, notes)
				return
			}
			require.Len(t, notes, 1)
			require.Equal(t, tt.note, notes[0].Code.Name)
			require.Contains(t, notes[0].Reason, tt.want)
		})
	}
}

func TestV3NameRefusesWhatNoServerAccepts(t *testing.T) {
	for _, tt := range []struct {
		kind, stored string
		spec         map[string]any
		reason       string
	}{
		{"ipamhandles", "a", map[string]any{"handleID": "has_underscore"}, `metadata.name "has_underscore"`},
		{"ipamhandles", "a", map[string]any{"handleID": strings.Repeat("a", 254)}, "must be no more than 253"},
		{"ipamblocks", "a", map[string]any{"cidr": "10.0.0.0/99"}, "spec.cidr: invalid CIDR address"},
		{"ipamblocks", "a", map[string]any{}, "spec.cidr"},
		{"tiers", "Upper", nil, `metadata.name "Upper"`},
	} {
		k, _ := kinds().ofV1(tt.kind)
		_, _, err := v3Name(k, tt.stored, metadata{annotated: true}, tt.spec)
		r := finding.Of(err)
		require.NotNil(t, r, tt.reason)
		require.Equal(t, codeInvalid.Name, r.Code.Name)
		require.Contains(t, r.Reason, tt.reason)
	}
}
