package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

// hostileNames are strings that forge lines or move a cursor.
func hostileNames() []string {
	return []string{
		"a\nFAKE   Ready   error: injected", "\nb", "c\r\nd", "e\ff\vg", "h\ti", "\"j\nk\"",
		"l\u2028m\u0085n", "o\x1b[2Jp\n",
	}
}

// hostileObjects are objects by key, with @ for a name and # for a text.
func hostileObjects() map[string]string {
	const (
		meta = `"metadata": {"name": "@", "uid": "@", "creationTimestamp": "2026-01-01T00:00:00Z",
			"labels": {"@": "@"}, "annotations": {"@": "#"}`
		inShop   = meta + `, "namespace": "shop"}`
		template = `"containers": [{"name": "@", "image": "#", "command": ["#"], "args": ["#"],
			"env": [{"name": "@", "value": "#"}],
			"livenessProbe": {"exec": {"command": ["#"]}}, "volumeMounts": [{"name": "@", "mountPath": "#"}]}]`
	)
	return map[string]string{
		"namespaces/shop":   `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`,
		"namespaces/@":      `{"apiVersion": "v1", "kind": "Namespace", ` + meta + `}, "status": {"phase": "#"}}`,
		"configmaps/shop/@": `{"apiVersion": "v1", "kind": "ConfigMap", ` + inShop + `, "data": {"@": "#"}}`,
		"pods/shop/@": `{"apiVersion": "v1", "kind": "Pod", ` + inShop + `, "spec": {"nodeName": "@", ` + template + `},
			"status": {"phase": "#", "reason": "@", "message": "#", "hostIP": "#", "conditions": [{"type": "@", "status": "#"}],
			"containerStatuses": [{"name": "@", "image": "#", "state": {"terminated": {"reason": "@",
			"message": "#"}}}]}}`,
		"minions/@": `{"apiVersion": "v1", "kind": "Node", ` + meta + `}, "spec": {"podCIDR": "#",
			"taints": [{"key": "#", "value": "#", "effect": "#"}]},
			"status": {"addresses": [{"type": "@", "address": "#"}], "nodeInfo": {"osImage": "#"},
			"conditions": [{"type": "@", "status": "#", "reason": "@", "message": "#"}]}}`,
		"events/shop/@": `{"apiVersion": "v1", "kind": "Event", ` + inShop + `, "type": "@", "reason": "@",
			"message": "#", "count": 1,
			"lastTimestamp": "2026-01-01T00:00:00Z", "source": {"component": "#"},
			"involvedObject": {"kind": "Pod", "namespace": "shop", "name": "@", "uid": "@"}}`,
		"deployments/shop/@": `{"apiVersion": "apps/v1", "kind": "Deployment", ` + inShop + `,
			"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
			"strategy": {"type": "@"}, "template": {"metadata": {"labels": {"@": "@"},
			"annotations": {"@": "#"}}, "spec": {` + template + `}}}}`,
		"validatingwebhookconfigurations/@": `{"apiVersion": "admissionregistration.k8s.io/v1",
			"kind": "ValidatingWebhookConfiguration", ` + meta + `},
			"webhooks": [{"name": "@", "clientConfig": {"url": "#"}, "sideEffects": "None",
			"admissionReviewVersions": ["#"]}]}`,
		"storageclasses/@": `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
			"metadata": {"name": "@", "annotations": {"@": "#"}}, "provisioner": "#"}`,
		"apiextensions.k8s.io/customresourcedefinitions/bells.example.com": `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": {"name": "bells.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
			"names": {"plural": "bells", "singular": "bell", "kind": "Bell", "listKind": "BellList"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "description": "#",
			"x-kubernetes-preserve-unknown-fields": true}}, "additionalPrinterColumns": [{"name": "A\nB",
			"type": "string", "jsonPath": ".spec.a"}]}]}}`,
		"example.com/bells/shop/@": `{"apiVersion": "example.com/v1", "kind": "Bell", ` + inShop + `,
			"spec": {"a": "#", "@": ["#", {"command": ["#"], "containers": [{"args": ["#"]}]}]}, "data": {"@": "#"}}`,
	}
}

// forging writes a snapshot with the objects; harmless replaces forging characters by ~.
func forging(t *testing.T, base, out string, harmless bool) {
	tame := func(s string) string {
		return strings.Map(func(r rune) rune {
			if harmless && (!unicode.IsPrint(r) || r == '"') {
				return '~'
			}
			return r
		}, s)
	}
	quoted := func(s string) string {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		return string(text[1 : len(text)-1])
	}
	const text = "one\ntwo\nthree"
	plan := func(ctx context.Context, v *transform.View) error {
		for key, object := range hostileObjects() {
			for _, name := range hostileNames() {
				name = tame(name)
				value := strings.NewReplacer("@", quoted(name), "#", quoted(text)).Replace(object)
				if err := v.Put(ctx, []byte("/registry/"+strings.ReplaceAll(key, "@", name)),
					[]byte(value+"\n")); err != nil {
					return err
				}
			}
		}
		return nil
	}
	_, err := transform.Run(t.Context(), transform.Options{Command: "edit", In: base, Out: out}, planFunc(plan))
	require.NoError(t, err)
}

// TestForgedLines: no object name adds a line of output. Outputs have as many lines as with
// harmless strings, and no control characters.
func TestForgedLines(t *testing.T) {
	dir := t.TempDir()
	base, hostile, harmless := recordedFile(t, dir, "reports/base.db", "base.db"), filepath.Join(dir, "hostile.db"),
		filepath.Join(dir, "harmless.db")
	forging(t, base, hostile, false)
	forging(t, base, harmless, true)
	const types = "ns,cm,pods,nodes,events,deploy,validatingwebhookconfigurations,storageclasses,crds,bells"
	lines := []string{"kubectl DB events -A", "kubectl DB rollout history deploy -n shop"}
	for _, get := range []string{"get DB " + types, "kubectl DB get " + types} {
		for _, format := range []string{
			"name", "wide --show-labels",
			"custom-columns=N:.metadata.name,L:.metadata.labels,A:.metadata.annotations," +
				"D:.data,S:.spec,R:.reason,M:.message",
			`jsonpath={range.items[*]}{.metadata.name}{.metadata.labels}{.involvedObject.name}{"\n"}{end}`,
			`go-template={{range.items}}{{.metadata.name}}{{.metadata.uid}}{{.metadata.labels}}{{"\n"}}{{end}}`,
		} {
			lines = append(lines, get+" -A -o "+format)
		}
	}
	for kind := range strings.SplitSeq(types, ",") {
		lines = append(lines, "kubectl DB describe "+kind+" -A")
	}
	for _, line := range lines {
		ran := func(db string) (out, shape string) {
			status, stdout, stderr := runWords(strings.Fields(strings.Replace(line, "DB", "-q "+db, 1))...)
			shape = fmt.Sprintf("status %d, %d lines, %d of errors", status, strings.Count(stdout, "\n"),
				strings.Count(stderr, "\n"))
			return stdout + stderr, shape
		}
		got, shape := ran(hostile)
		_, want := ran(harmless)
		require.Equal(t, want, shape, "%s\n%s", line, got)
		require.NotContains(t, strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u2028' {
				return 0
			}
			return r
		}, got), "\x00", line)
	}
}
