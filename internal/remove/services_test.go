package remove

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestServices: with a Service go its Endpoints and the IPAddress objects that are its own.
func TestServices(t *testing.T) {
	service := func(name string, ips string) string {
		return `put /registry/services/specs/a/` + name + ` "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"` + name +
			`\",\"namespace\":\"a\",\"uid\":\"u-` + name + `\"},\"spec\":{\"clusterIPs\":` + ips + `}}"`
	}
	address := func(ip, of string) string {
		return `put /registry/ipaddresses/` + ip + ` "{\"apiVersion\":\"networking.k8s.io/v1\",\"kind\":\"IPAddress\",\"metadata\":{\"name\":\"` + ip +
			`\"},\"spec\":{\"parentRef\":{\"resource\":\"services\",\"namespace\":\"a\",\"name\":\"` + of + `\"}}}"`
	}
	in := etcdtest.Build(t, strings.Join([]string{
		put("Namespace", "namespaces", "", "a", ""), service("x", `[\"010.000.0.1\",\"fd00::01\",\"10.0.0.2\",\"10.0.0.9\"]`), service("y", `[\"None\"]`),
		put("Endpoints", "services/endpoints", "a", "x", ""), put("Endpoints", "services/endpoints", "a", "y", ""), put("Endpoints", "services/endpoints", "a", "z", ""),
		address("10.0.0.1", "x"), address("fd00::1", "x"), address("10.0.0.2", "y"), address("10.0.0.3", "x"),
	}, "\n"))
	r, out := run1(t, in, "svc x --namespace=a")
	require.Empty(t, problems(r))
	require.Equal(t, []string{
		"ipaddresses/10.0.0.2", "ipaddresses/10.0.0.3", "namespaces/a", "services/endpoints/a/y", "services/endpoints/a/z", "services/specs/a/y",
	}, keysOf(t, out))
	_, out = run1(t, in, "ns a")
	require.Equal(t, []string{"ipaddresses/10.0.0.2", "ipaddresses/10.0.0.3"}, keysOf(t, out))
}
