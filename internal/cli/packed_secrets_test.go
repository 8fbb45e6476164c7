package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
)

// packedObjects are the objects with secrets in gzip, zip and base64, by file.
func packedObjects() map[string][]string {
	return map[string][]string{
		"r1-applied-annotations": {
			"configmaps/results", "secrets/banzai", "secrets/banzai-zip", "secrets/hypershift",
			"secrets/metacontroller",
			"secrets/wrangler", "secrets/wrangler-plain", "pods/checker", "deployments/web",
		},
		"r3-base64-forms":     {"configmaps/cm"},
		"r4-base64-forms-env": {"pods/p"},
		"elsewhere": {"configmaps/notes", "pods/checker", "deployments/web", "events/failed",
			"widgets.example.com/w"},
		"r6-wrangler-secret":        {"secrets/db-login"},
		"r6-wrangler-secret-before": {"secrets/db-login"},
	}
}

// packedLines are command lines that read a file; lines with OBJECT run for each object. Commands
// that need only a snapshot, or IN and OUT, have a line if none is here.
func packedLines() []string {
	lines := []string{
		"get IN configmaps,secrets,pods,deployments -A -o json",
		"get IN configmaps,secrets,pods,deployments -A -o yaml",
		"get IN configmaps,secrets,pods,deployments -A -o name",
		"get IN configmaps,secrets,pods,deployments -A -o wide",
		"get IN configmaps,secrets,pods,deployments -A -o jsonpath={.items[*]}", "get IN OBJECT -n lab -o wide",
		"get IN OBJECT -n lab -o jsonpath={.metadata}",
		"get IN OBJECT -n lab -o custom-columns=A:.metadata.annotations,B:.data,C:.spec", "get IN OBJECT -n lab -o raw",
		"export IN OBJECT -n lab", "get IN OBJECT -n lab -o go-template={{.}}",
		"get IN OBJECT -n lab -o yaml --show-managed-fields",
		"keys IN --raw KEY", "history IN OBJECT -n lab", "history IN OBJECT -n lab -o json", "diff BASE IN",
		"diff --all -o json BASE IN",
		"diff IN BASE", "timeline IN", "timeline IN -o json", "export IN -n lab --all", "grep IN hunter2",
		"grep -o json IN MARK",
		"doctor IN", "kubectl IN get configmaps,secrets,pods,deployments -A -o yaml",
		"kubectl IN describe configmaps,secrets,pods,deployments -A",
		"kubectl IN get OBJECT -n lab -o json", "kubectl IN describe OBJECT -n lab", "kubectl IN get OBJECT -n lab",
		"kubectl IN get OBJECT -n lab -o jsonpath={.data}{.spec}{.message}", "kubectl IN events -n lab",
		"patch IN PATCHED.db OBJECT -n lab --dry-run --diff -p {\"metadata\":{\"annotations\":null}}",
		"report IN PAGE.html", "report IN BEFORE.html --before BASE", "report IN -o json",
		"policy check IN --from-snapshot", "policy check IN --from-snapshot -o json",
		"status IN", "status IN -o json", "status IN BASE",
		"restore IN --data-dir DATA.db", "restore IN --data-dir DATA.db --move-aside -o json",
		"salvage IN SALVAGED.db -o json",
		"history IN OBJECT -n lab --free-pages", "timeline IN --free-pages -o json",
		"get IN configmaps,secrets,pods,deployments -A -o json --deleted --free-pages",
		"crop IN CROPPED.db -n lab --needed --dry-run", "extract IN EXTRACTED.db -n lab --needed",
		"import BASE IN IMPORTED.db --allow not-an-archive --on-conflict take --dry-run --diff",
		"purge IN PURGED.db -n lab --dry-run --diff",
		"sanitize IN OUT.db", "sanitize --keep-names IN KEPT.db",
		"delete IN DELETED.db OBJECT -n lab --dry-run --diff",
		"rename-node IN RENAMED.db a=b --allow no-such-node --dry-run --diff",
		"policy apply IN APPLIED.db --from-snapshot --dry-run --diff",
	}
	others := slices.AppendSeq(slices.Clone(lines), maps.Keys(packedExceptions()))
	return slices.Concat(lines, plainLines("SNAPSHOT", others, "IN", "IN -o json"),
		plainLines("IN OUT", others, "IN PLAIN.db --dry-run --diff"))
}

// packedExceptions are the commands without a line, each with the reason.
func packedExceptions() map[string]string {
	noClusters := "the files have no logical clusters"
	return map[string]string{
		"rehearse": "starts etcd and an API server", "serve": "asked by served",
		"run": "its steps are commands with lines", "kcp list": noClusters, "kcp extract": noClusters,
		"kcp import": noClusters, "kcp purge": noClusters, "kcp verify": noClusters,
	}
}

// TestLinesPacked: each command that opens a snapshot has a line, or is an exception.
func TestLinesPacked(t *testing.T) {
	lacking(t, "packed_secrets_test.go: add a line of %s to packedLines", packedLines(), packedExceptions(),
		opensSnapshot)
}

// TestPackedSecrets: no command, page, answer of serve or sanitized file contains a secret in any
// form.
func TestPackedSecrets(t *testing.T) {
	for name, objects := range packedObjects() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in, base := filepath.Join(dir, "in.db"), recordedFile(t, dir, "reports/base.db", "base.db")
			if name == "elsewhere" {
				in = etcdtest.Build(t, secretsElsewhere(t))
			} else {
				recordedFile(t, dir, "reports/"+name+".db", "in.db")
			}
			without := func(text, from string) {
				require.NotContains(t, secrettest.Unpack(text, 6), "hunter2-MARK", from)
			}
			image, err := os.ReadFile(in)
			require.NoError(t, err)
			require.Contains(t, secrettest.Unpack(string(image), 6), "hunter2-MARK")
			for _, line := range packedLines() {
				for _, object := range objects {
					line := strings.NewReplacer("OBJECT", object, "KEY", keyOf(object)).Replace(line)
					args := strings.Fields(line)
					for i, arg := range args {
						switch file, isFile := map[string]string{"IN": in, "BASE": base}[arg]; {
						case isFile:
							args[i] = file
						case strings.HasSuffix(arg, ".html"), strings.HasSuffix(arg, ".db"):
							args[i] = filepath.Join(dir, arg)
						}
					}
					status, stdout, stderr := runWords(args...)
					require.NotEqual(t, exitUsage, status, "%s: %s", line, stderr)
					without(stdout+stderr, line)
					if !strings.Contains(line, object) && !strings.Contains(line, keyOf(object)) {
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

// keyOf returns the key of an object.
func keyOf(object string) string {
	kind, name, _ := strings.Cut(object, "/")
	if group, is := strings.CutPrefix(kind, "widgets."); is {
		kind = group + "/widgets"
	}
	return "/registry/" + kind + "/lab/" + name
}

// secretsElsewhere is a script of a file with credentials in other objects: the value of a Secret,
// its superseded value, and a token of OpenShift.
func secretsElsewhere(t *testing.T) string {
	t.Helper()
	const now, old, token = "Xq7!hunter2-MARK-77", "Old.9-hunter2-MARK", "Tok_5-hunter2-MARK"
	std := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("greet with " + now))
	require.NoError(t, errors.Join(err, z.Close()))
	var script strings.Builder
	put := func(key string, object map[string]any) {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		fmt.Fprintf(&script, "put %q %q\n", "/registry/"+key, text)
	}
	meta := func(name string, annotations map[string]any) map[string]any {
		return map[string]any{"name": name, "namespace": "lab", "uid": "u-" + name, "annotations": annotations,
			"managedFields": []any{map[string]any{
				"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:list": map[string]any{`v:"` + now + `"`: map[string]any{}}}}}}
	}
	object := func(version, kind, name string, more map[string]any) map[string]any {
		more["apiVersion"], more["kind"], more["metadata"] = version, kind,
			meta(name, map[string]any{"note": "it is " + token})
		return more
	}
	put("namespaces/lab", map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "lab"}})
	for _, value := range []string{old, now} {
		put("secrets/lab/db", object("v1", "Secret", "db",
			map[string]any{"data": map[string]any{"greeting": std(value)}}))
		put("configmaps/lab/notes", object("v1", "ConfigMap", "notes", map[string]any{
			"data": map[string]any{"plain": "say " + value, "first": old, "base64": std("x " + now),
				"gzip": std(packed.String()), "json": `{"greet": "` + now + `"}`},
			"binaryData": map[string]any{"gzip": std(packed.String())}}))
	}
	put("oauth.openshift.io/oauthaccesstokens/t", map[string]any{"apiVersion": "oauth.openshift.io/v1",
		"kind": "OAuthAccessToken", "metadata": map[string]any{"name": "t"}, "authorizeToken": token})
	pod := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "reg.example.com/" + now + "/c",
		"args": []any{"--greet", now}, "env": []any{map[string]any{"name": "GREETING", "value": now}}}}}
	put("pods/lab/checker", object("v1", "Pod", "checker", map[string]any{"spec": pod}))
	put("deployments/lab/web", object("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "web"}}, "spec": pod}}}))
	put("events/lab/failed", object("v1", "Event", "failed",
		map[string]any{"message": "no greeting " + now, "reason": "Failed", "type": "Warning",
			"involvedObject": map[string]any{"kind": "Pod", "name": "checker", "namespace": "lab"}}))
	put("apiextensions.k8s.io/customresourcedefinitions/widgets.example.com",
		map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "widgets.example.com"},
			"spec": map[string]any{"group": "example.com", "scope": "Namespaced",
				"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget",
					"listKind": "WidgetList"},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
					"additionalPrinterColumns": []any{map[string]any{"name": "Greeting", "type": "string",
						"jsonPath": ".spec.greeting"}},
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
						"x-kubernetes-preserve-unknown-fields": true}}}}},
			"status": map[string]any{"acceptedNames": map[string]any{"plural": "widgets", "singular": "widget",
				"kind": "Widget", "listKind": "WidgetList"},
				"conditions": []any{map[string]any{"type": "Established", "status": "True"},
					map[string]any{"type": "NamesAccepted", "status": "True"}},
				"storedVersions": []any{"v1"}}})
	put("admissionregistration.k8s.io/validatingadmissionpolicies/quotes",
		map[string]any{"apiVersion": "admissionregistration.k8s.io/v1",
			"kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "quotes"}, "spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{"apiGroups": []any{""},
					"apiVersions": []any{"v1"}, "operations": []any{"*"}, "resources": []any{"configmaps", "pods"}}}},
				"validations": []any{map[string]any{"expression": "false",
					"messageExpression": "'it ' + string(has(object.data) ? object.data.plain : " +
						"object.spec.containers[0].args[1])"}}}})
	put("admissionregistration.k8s.io/validatingadmissionpolicybindings/quotes",
		map[string]any{"apiVersion": "admissionregistration.k8s.io/v1",
			"kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": "quotes"},
			"spec": map[string]any{"policyName": "quotes", "validationActions": []any{"Deny"}}})
	put("example.com/widgets/lab/w", object("example.com/v1", "Widget", "w",
		map[string]any{"spec": map[string]any{"greeting": now}}))
	return script.String()
}

// served returns the answers of serve with an object.
func served(t *testing.T, file, object string) (answers string) {
	socket := filepath.Join(t.TempDir(), "s")
	stop := serving(t, socket, "--unix", socket, file)
	defer stop()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	kind, name, _ := strings.Cut(object, "/")
	api := "/api/v1"
	if kind == "deployments" {
		api = "/apis/apps/v1"
	}
	if group, is := strings.CutPrefix(kind, "widgets."); is {
		api, kind, object = "/apis/"+group+"/v1", "widgets", "widgets/"+name
	}
	for _, path := range []string{"/" + kind, "/namespaces/lab/" + object, "/" + kind + "?watch=1&timeoutSeconds=1"} {
		for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf",
			"application/json;as=Table;v=v1;g=meta.k8s.io"} {
			if kind == "widgets" && strings.HasSuffix(accept, "protobuf") {
				continue // custom resources have no protobuf form
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+api+path, nil)
			require.NoError(t, err)
			request.Header.Set("Accept", accept)
			var resp *http.Response
			require.Eventually(t, func() bool { // the socket exists shortly before it listens
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
