package rehearse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// TestCauses: doctor's findings for the release of the API server explain why it fails.
func TestCauses(t *testing.T) {
	for _, tc := range []struct {
		name, server, version string
		want                  string // the beginning of the finding
	}{
		{"p4-only-cronjob", "kube-apiserver", "1.36.3",
			"dead-version: 1 finding of doctor, the first: 1 object of batch/v2alpha1 CronJob: Kubernetes 1.36 " +
				"does not decode the version; 1.20 is the last that does; migrate storage-versions can rewrite it; " +
				"all of them: etcdshift doctor --kubernetes 1.36 "},
		{"p4-only-servicecidr", "kube-apiserver", "1.36.3", "dead-version: 1 finding of doctor, the first: 1 object "},
		{"p4-only-servicecidr", "kube-apiserver", "1.33.9", ""},
		{"p4-only-cronjob", "", "1.37.2", ""}, // this API server does not read CronJobs
	} {
		r := &rehearsal{reader: inspect.NewReader(open(t, file(t, "reports/"+tc.name+".db.gz")), nil),
			Config: Config{APIServer: tc.server}, storage: keys.Storage{Prefix: "/registry"}}
		r.Versions.Kubernetes, r.Found.Counts = tc.version, map[*finding.Code]int{}
		_, err := explainFailures(t.Context(), r)
		require.NoError(t, err)
		if found := r.Found.Findings; tc.want == "" {
			require.Empty(t, found, tc.name)
		} else {
			require.Len(t, found, 1)
			require.Equal(t, codeRecords, found[0].Code)
			require.True(t, strings.HasPrefix(found[0].Reason, tc.want), found[0].Reason)
		}
	}
}
