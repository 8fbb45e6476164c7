package calico

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGenerations migrates one policy in the stored form of each generation of Calico. Calico
// rewrites old records only on update, so a snapshot may hold all forms.
func TestGenerations(t *testing.T) {
	const owned = `"ownerReferences":[`
	tests := []struct {
		release, stored string
		outer, inner    string
		name            string // of the v3 object
		labels          map[string]any
	}{
		{"v3.27.4 and before", "default.gen1", `"labels":{"user":"1"},`,
			`{"uid":"11111111-2222-4333-8444-555555555555","creationTimestamp":"2020-01-01T00:00:00Z",` + owned +
				ref(apiVersionV3, "Tier", "security", tierStored) + `]}`,
			"gen1", map[string]any{"user": "1", tierLabel: "default"}},
		{"v3.27.5", "default.gen2", `"labels":{"user":"1"},`,
			`{"creationTimestamp":"2020-01-01T00:00:00Z",` + owned + ref(apiVersionV3, "Tier", "security", tierSeen) +
				`]}`,
			"gen2", map[string]any{"user": "1", tierLabel: "default"}},
		{"v3.28, v3.29", "default.gen3", `"labels":{"projectcalico.org/tier":"default"},`,
			`{"creationTimestamp":"2020-01-01T00:00:00Z","labels":{"user":"1","projectcalico.org/tier":"default"},` +
				owned + ref(apiVersionV1, "Tier", "security", tierStored) + `]}`,
			"gen3", map[string]any{"user": "1", tierLabel: "default"}},
		{"v3.30, v3.31", "default.gen4", `"labels":{"projectcalico.org/tier":"default"},`,
			`{"name":"gen4","creationTimestamp":"2020-01-01T00:00:00Z","labels":{"user":"1"},` + owned +
				ref(apiVersionV1, "Tier", "security", tierStored) + `]}`,
			"gen4", map[string]any{"user": "1", tierLabel: "default"}},
		{"v3.32 and later", "gen5", "",
			`{"name":"gen5","creationTimestamp":"2020-01-01T00:00:00Z","labels":{"user":"1"},` + owned +
				ref(apiVersionV1, "Tier", "security", tierStored) + `]}`,
			"gen5", map[string]any{"user": "1", tierLabel: "default"}},
	}
	in := newInput(t)
	for i, tt := range tests {
		in.record(v1{kind: "GlobalNetworkPolicy", name: tt.stored, meta: tt.outer, inner: tt.inner,
			spec: `{"selector":"all()"}`, uid: "aaaaaaa" + string(rune('0'+i)) + "-0000-4000-8000-000000000000"})
	}
	got := planOn(t, in.write(), New(Options{}))
	for _, tt := range tests {
		t.Run(tt.release, func(t *testing.T) {
			obj := got.written(t, recordsV3+"globalnetworkpolicies/"+tt.name)
			require.Equal(t, tt.name, at(obj, "metadata", "name"))
			require.Equal(t, "2020-01-01T00:00:00Z", at(obj, "metadata", "creationTimestamp"))
			require.Equal(t, tt.labels, at(obj, "metadata", "labels"))
			require.Nil(t, at(obj, "metadata", "annotations"))
			require.Equal(t, []any{map[string]any{"apiVersion": apiVersionV3, "kind": "Tier", "name": "security",
				"uid": tierSeen}}, at(obj, "metadata", "ownerReferences"))
		})
	}
}
