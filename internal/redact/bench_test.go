package redact_test

import (
	"fmt"
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
