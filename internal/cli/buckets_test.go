package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotKnown: if it is unknown whether the output was written, no report denies the output.
func TestNotKnown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusGatewayTimeout)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	}))
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": "a",
		"AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "us-east-1", "AWS_PROFILE": "", "AWS_CA_BUNDLE": "", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	in := recordedFile(t, t.TempDir(), "calico/before.db", "before.db")
	status, stdout, stderr := runWords("migrate", "calico-v3", "--report", report, in, "s3://bkt/out.db")
	require.Equal(t, exitFailed, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "s3://bkt/out.db: it is unknown whether the object was written: ")
	require.Contains(t, stderr, "run the command again")
	require.NotContains(t, stderr, "nothing was written")
	require.NoFileExists(t, report)
}
