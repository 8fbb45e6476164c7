package sanitize

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/unpacked"
	"github.com/etcdshift/etcdshift/transform"
)

// Secrets in gzip, zip and all forms of base64 are not in a sanitized file.
func TestPackedSecrets(t *testing.T) {
	for _, name := range []string{"r1-applied-annotations", "r3-base64-forms", "r4-base64-forms-env", "r6-wrangler-secret",
		"r6-wrangler-secret-before"} {
		_, out := sanitized(t, "../../testdata/reports/"+name+".db.gz", "0123456789abcdef0123456789abcdef", transform.Options{})
		require.NotContains(t, unpacked.All(string(out), 6), "hunter2-MARK", name)
	}
}
