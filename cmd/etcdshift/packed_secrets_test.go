package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/unpacked"
)

// packedObjects are the objects with secrets in gzip, zip and base64, by their files.
func packedObjects() map[string][]string {
	return map[string][]string{
		"r1-applied-annotations": {
			"configmaps/results", "secrets/banzai", "secrets/banzai-zip", "secrets/hypershift", "secrets/metacontroller",
			"secrets/wrangler", "secrets/wrangler-plain", "pods/checker", "deployments/web",
		},
		"r3-base64-forms":           {"configmaps/cm"},
		"r4-base64-forms-env":       {"pods/p"},
		"r6-wrangler-secret":        {"secrets/db-login"},
		"r6-wrangler-secret-before": {"secrets/db-login"},
	}
}

// packedLines are command lines that read a file; those with OBJECT are for each object.
func packedLines() []string {
	return []string{
		"get IN configmaps,secrets,pods,deployments -A -o json", "get IN configmaps,secrets,pods,deployments -A -o yaml",
		"get IN configmaps,secrets,pods,deployments -A -o name", "get IN configmaps,secrets,pods,deployments -A -o wide",
		"get IN configmaps,secrets,pods,deployments -A -o jsonpath={.items[*]}", "get IN OBJECT -n lab -o jsonpath={.metadata}",
		"get IN OBJECT -n lab -o custom-columns=A:.metadata.annotations,B:.data,C:.spec", "get IN OBJECT -n lab -o raw",
		"history IN OBJECT -n lab", "history IN OBJECT -n lab -o json", "diff BASE IN", "diff --all -o json BASE IN",
		"diff IN BASE", "timeline IN", "timeline IN -o json", "export IN -n lab --all", "grep IN hunter2", "grep -o json IN MARK",
		"doctor IN", "kubectl IN get configmaps,secrets,pods,deployments -A -o yaml", "kubectl IN describe configmaps,secrets,pods,deployments -A",
		"kubectl IN get OBJECT -n lab -o json", "report IN PAGE.html", "report IN BEFORE.html --before BASE", "report IN -o json",
		"migrate sanitize IN OUT.db", "migrate sanitize --keep-names IN KEPT.db",
	}
}

// TestPackedSecrets: no command prints a secret in any form, and none is in a page, in an answer of
// serve and in a sanitized file.
func TestPackedSecrets(t *testing.T) {
	for name, objects := range packedObjects() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in, base := recordedFile(t, dir, "reports/"+name+".db", "in.db"), recordedFile(t, dir, "reports/base.db", "base.db")
			without := func(text, from string) {
				require.NotContains(t, unpacked.All(text, 6), "hunter2-MARK", from)
			}
			image, err := os.ReadFile(in)
			require.NoError(t, err)
			require.Contains(t, unpacked.All(string(image), 6), "hunter2-MARK")
			for _, line := range packedLines() {
				for _, object := range objects {
					line := strings.NewReplacer("OBJECT", object).Replace(line)
					args := append([]string{"etcdshift"}, strings.Fields(line)...)
					for i, arg := range args {
						switch file, isFile := map[string]string{"IN": in, "BASE": base}[arg]; {
						case isFile:
							args[i] = file
						case strings.HasSuffix(arg, ".html"), strings.HasSuffix(arg, ".db"):
							args[i] = filepath.Join(dir, arg)
						}
					}
					var stdout, stderr bytes.Buffer
					require.NotEqual(t, exitUsage, run(t.Context(), args, nil, &stdout, &stderr), "%s: %s", line, stderr.String())
					without(stdout.String()+stderr.String(), line)
					if !strings.Contains(line, object) {
						break
					}
				}
			}
			for _, written := range []string{"PAGE.html", "BEFORE.html", "OUT.db", "KEPT.db"} {
				data, err := os.ReadFile(filepath.Join(dir, written))
				require.NoError(t, err)
				without(string(data), written)
			}
			for _, object := range objects {
				without(served(t, in, object), "serve: "+object)
			}
		})
	}
}

// served returns the answers of serve with an object.
func served(t *testing.T, file, object string) (answers string) {
	socket := filepath.Join(t.TempDir(), "s")
	stop := serving(t, socket, "--unix", socket, file)
	defer stop()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	kind, name, _ := strings.Cut(object, "/")
	api := "/api/v1"
	if kind == "deployments" {
		api = "/apis/apps/v1"
	}
	for _, path := range []string{"/" + kind, "/namespaces/lab/" + object, "/" + kind + "?watch=1&timeoutSeconds=1"} {
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+api+path, nil)
			require.NoError(t, err)
			request.Header.Set("Accept", accept)
			var resp *http.Response
			require.Eventually(t, func() bool { // the socket is there a moment before it listens
				resp, err = client.Do(request)
				return err == nil
			}, 10*time.Second, 10*time.Millisecond, "%v", err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode, "%s: %s", path, body)
			require.Contains(t, string(body), name)
			answers += string(body)
		}
	}
	return answers
}
