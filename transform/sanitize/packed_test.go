package sanitize

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

// Secrets in gzip, zip and all forms of base64 are not in a sanitized file.
func TestPackedSecrets(t *testing.T) {
	var marks [][]byte
	for _, mark := range []string{"hunter2-MARK", "aHVudGVyMi1NQVJL", "h1bnRlcjItTUFSS", "odW50ZXIyLU1BUk", "UEsDBBQA"} { // the last is a zip
		marks = append(marks, []byte(mark))
	}
	gzipRun := regexp.MustCompile(`H4sI[A-Za-z0-9+/]+={0,2}`)
	for _, name := range []string{"r1-applied-annotations", "r3-base64-forms", "r4-base64-forms-env", "r6-wrangler-secret",
		"r6-wrangler-secret-before"} {
		_, out := sanitized(t, "../../testdata/reports/"+name+".db.gz", "0123456789abcdef0123456789abcdef", transform.Options{})
		data := out
		for _, run := range gzipRun.FindAll(out, -1) {
			packed, _ := base64.StdEncoding.DecodeString(string(run))
			unzip, err := gzip.NewReader(bytes.NewReader(packed))
			require.NoError(t, err, name)
			plain, _ := io.ReadAll(unzip)
			data = append(data, plain...)
		}
		for _, mark := range marks {
			require.False(t, bytes.Contains(data, mark), "%s: %s", name, mark)
		}
	}
}
