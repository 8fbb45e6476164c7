package redact_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/etcdshift/etcdshift/internal/redact"
)

// BenchmarkObject redacts a Pod, and a ConfigMap with a dashboard of 100 KB, as get -A does.
func BenchmarkObject(b *testing.B) {
	pod := parse(b,
		`{apiVersion: v1, kind: Pod, metadata: {name: web-7d4b9c, namespace: shop, labels: {app: web}}, spec: `+
			`{containers: [`+
			strings.TrimSuffix(strings.Repeat(
				`{name: c, image: "registry.example.com/shop/web:v1.2.3", args: [--listen=:8080, --log-level, info], `+
					`env: [{name: HOST, value: db.example.com}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: a, `+
					`key: b}}}], volumeMounts: [{mountPath: /data, name: data}]}, `, 8), ", ")+
			`], serviceAccountName: default}, status: {phase: Running, podIP: 10.1.2.3, conditions: [{type: Ready, `+
			`status: "True", message: all is well}]}}`)
	var panels []string
	for i := range 400 {
		panels = append(panels,
			fmt.Sprintf(
				`{"title":"panel %d","targets":[{"expr":"sum(rate(http_requests_total{job=\"web\"}[5m])) by (key)",`+
					`"legendFormat":"{{key}}"}],"gridPos":{"x":0,"y":%d}}`, i, i))
	}
	dashboard := configMap("dashboard.json", `{"panels":[`+strings.Join(panels, ",\n")+
		`],"templating":{"list":[{"name":"token","type":"query"}]}}`)
	for name, obj := range map[string]map[string]any{"pod": pod, "dashboard": dashboard} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text(b, obj))))
			for b.Loop() {
				if redact.NewShared().Object([]byte(corpusKey), obj) {
					b.Fatal("nothing of it is a secret")
				}
			}
		})
	}
}

// BenchmarkTexts redacts Pods with many texts of their own, in a file with many Secrets.
func BenchmarkTexts(b *testing.B) {
	const hexadecimal, coded = "0123456789abcdef", "BCDEFGHJLMNQRTVXYZ23456789"
	words := strings.Fields("secret image history volume token database condition schedule cluster mount node owner")
	r := rand.New(rand.NewPCG(1, 2))
	of := func(letters string, n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = letters[r.IntN(len(letters))]
		}
		return string(out)
	}
	shared := redact.NewShared()
	for range 10000 {
		shared.Add(redact.Secret{Text: of(hexadecimal+coded, 24), Named: true})
	}
	shared.Settle(nil)
	var pods []map[string]any
	for range 4000 {
		var env []any
		for range 16 {
			value := words[r.IntN(len(words))] + " " + words[r.IntN(len(words))] + " " + words[r.IntN(len(words))]
			env = append(env, map[string]any{"name": "ENV_" + of(coded, 8), "value": value})
		}
		name, image := "web-"+of(hexadecimal, 10)+"-"+of(coded, 5), "registry.example.com/team/app:"+of(hexadecimal, 12)
		pods = append(pods, map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": name, "namespace": "shop", "uid": of(hexadecimal, 8) + "-4dcf-aa1e-" +
				of(hexadecimal, 12)},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": image, "env": env}}},
			"status": map[string]any{"phase": "Running", "containerStatuses": []any{map[string]any{
				"image": image, "containerID": "containerd://" + of(hexadecimal, 64),
				"imageID": "app@sha256:" + of(hexadecimal, 64)}}}})
	}
	for i := 0; b.Loop(); i++ {
		if shared.Object([]byte(corpusKey), pods[i%len(pods)]) {
			b.Fatal("nothing of it is a secret")
		}
	}
}
