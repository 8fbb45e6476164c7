package calico

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

func TestSpecDifferences(t *testing.T) {
	for _, tt := range []struct {
		name, plural, a, b string
		want               []string
	}{
		{"equal", "tiers", `{"order":1}`, `{"order":1}`, nil},
		{"numbers by value", "tiers", `{"order":100}`, `{"order":100.0}`, nil},
		{"sequence numbers exactly", "ipamblocks", `{"sequenceNumber":1795202899322387071}`,
			`{"sequenceNumber":1795202899322387069}`, []string{"spec.sequenceNumber"}},
		{"empty lists are absent", "globalnetworkpolicies", `{"ingress":[]}`, `{}`, nil},
		{"but not of failsafe ports", "felixconfigurations", `{"failsafeInboundHostPorts":[]}`, `{}`,
			[]string{"spec.failsafeInboundHostPorts"}},
		{"empty rule sides", "networkpolicies", `{"ingress":[{"action":"Allow","source":{},"destination":{}}]}`,
			`{"ingress":[{"action":"Allow"}]}`, nil},
		{"empty selectors mean something", "stagedkubernetesnetworkpolicies",
			`{"ingress":[{"from":[{"podSelector":{}}]}]}`, `{"ingress":[{"from":[{}]}]}`,
			[]string{"spec.ingress[0].from[0].podSelector"}},
		{"but not this one", "stagedkubernetesnetworkpolicies", `{"podSelector":{}}`, `{}`, nil},
		{"switches", "kubecontrollersconfigurations", `{"controllers":{"node":{}}}`, `{"controllers":{}}`,
			[]string{"spec.controllers.node"}},
		{"what Go always writes", "felixconfigurations", `{"bpfLogLevel":""}`, `{}`, nil},
		{"a flag of IPAM", "ipamhandles", `{"deleted":false}`, `{}`, nil},
		{"durations", "felixconfigurations", `{"x":"300s"}`, `{"x":"5m0s"}`, nil},
		{"times", "ipamblocks", `{"affinityClaimTime":"2026-01-01T00:00:00.5Z"}`,
			`{"affinityClaimTime":"2026-01-01T00:00:00.500Z"}`, nil},
		{"ports and protocols", "networkpolicies", `{"ingress":[{"protocol":"6","ports":["80"]}]}`,
			`{"ingress":[{"protocol":6,"ports":[80]}]}`, nil},
		{"AS numbers with a dot", "bgppeers", `{"asNumber":"1.10"}`, `{"asNumber":65546}`, nil},
		{"texts", "networkpolicies", `{"selector":"a"}`, `{"selector":"b"}`, []string{"spec.selector"}},
		{"lists in order", "globalnetworksets", `{"nets":["a","b"]}`, `{"nets":["b","a"]}`,
			[]string{"spec.nets[0]", "spec.nets[1]"}},
		{"lists of other length", "globalnetworksets", `{"nets":["a"]}`, `{"nets":["a","b"]}`, []string{"spec.nets"}},
		{"another type", "tiers", `{"order":{}}`, `{"order":[1]}`, []string{"spec.order"}},
		{"no type of affinity is host", "blockaffinities", `{"type":"host"}`, `{}`, nil},
		{"nor is an empty one another", "blockaffinities", `{"type":""}`, `{"type":"host"}`, nil},
		{"a virtual affinity", "blockaffinities", `{"type":"virtual"}`, `{}`, []string{"spec.type"}},
		{"false is not absent", "felixconfigurations", `{"ipipEnabled":false}`, `{}`, []string{"spec.ipipEnabled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k, ok := kinds().ofV3(tt.plural)
			require.True(t, ok)
			a, _, err := encoding.DecodeObject([]byte(`{"spec":` + tt.a + `}`))
			require.NoError(t, err)
			b, _, err := encoding.DecodeObject([]byte(`{"spec":` + tt.b + `}`))
			require.NoError(t, err)
			require.Equal(t, tt.want, specDifferences(k, a, b))
			require.Equal(t, tt.want, specDifferences(k, b, a))
		})
	}
}
