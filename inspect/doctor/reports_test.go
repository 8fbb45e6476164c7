package doctor

import (
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
	} {
		t.Run(name, func(t *testing.T) {
			found := examined(t, opened(t, "../../testdata/reports/"+name+".db.gz"), Options{}).Of(tc.code)
			require.Len(t, found, 1)
			require.Contains(t, found[0].Reason, tc.says)
		})
	}
}
