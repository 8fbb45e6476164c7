package cli

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

// TestProblemLines checks that many keys with one reason share a line, also with other indexes in
// the paths.
func TestProblemLines(t *testing.T) {
	code := finding.Lookup("pruned-field")
	var all []finding.Finding
	for i := range 30 {
		f := code.Because("v1 Pod of Kubernetes 1.32 cannot hold a[0].b, a[%d].b, c", i)
		f.Key, f.Outcome = fmt.Sprintf("/registry/pods/ns/%02d", i), finding.Noted
		all = append(all, *f)
	}
	other := code.Because("v1 Pod of Kubernetes 1.32 cannot hold c")
	other.Key, other.Outcome = "/registry/pods/ns/other", finding.Noted
	require.Equal(t, []string{
		"error pruned-field: 30 keys: v1 Pod of Kubernetes 1.32 cannot hold a[].b, c: /registry/pods/ns/00, " +
			"/registry/pods/ns/01, /registry/pods/ns/02 and 27 more; --report lists them all",
		"error pruned-field: /registry/pods/ns/other: v1 Pod of Kubernetes 1.32 cannot hold c",
	}, problemLines("error pruned-field", append(all, *other)))
	require.Len(t, problemLines("error pruned-field", all[:20]), 20)
}
