package doctor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

// TestReports: files that people reported have the findings that were missing.
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
	require.Len(t, slices.Concat(all.Of(codeWebhookCore), all.Of(codeWebhookDeadlock)), 12, "all but one webhook block both")
}
