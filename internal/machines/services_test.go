package machines

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestUnallocatable checks the limits of node ports and cluster IPs.
func TestUnallocatable(t *testing.T) {
	ranges := []string{"10.96.0.0/16", "fd00::/108"}
	for what, ok := range map[string]bool{
		"node port 1": true, "node port 65535": true, "node port 65536": false, "node port -1": false,
		"cluster IP 10.96.255.1": true, "cluster IP fd00::9": true, "cluster IP 10.97.0.1": false,
		"cluster IP fd01::9": false,
	} {
		require.Equal(t, ok, Unallocatable(what, ranges) == "", what)
	}
	require.Empty(t, Unallocatable("cluster IP 192.168.9.9", nil), "no range is known")
}

// TestClashes: an address is one in any spelling, and of one Service for several protocols.
func TestClashes(t *testing.T) {
	service := func(name, spec string) string {
		return `put /registry/services/specs/a/` + name +
			` "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"` + name +
			`\",\"namespace\":\"a\"},\"spec\":` + spec + `}"` + "\n"
	}
	in := etcdtest.Build(t, service("a",
		`{\"clusterIP\":\"10.0.0.1\",\"clusterIPs\":[\"10.0.0.1\",\"fd00::1\"],\"ports\":[{\"nodePort\":30001},`+
			`{\"nodePort\":30001,\"protocol\":\"UDP\"}]}`)+
		service("b", `{\"clusterIP\":\"fd00:0::1\",\"healthCheckNodePort\":30001}`)+
		service("c", `{\"clusterIP\":\"None\",\"ports\":[{\"port\":1}]}`)+
		service("d", `{\"clusterIP\":\"None\",\"ports\":[{\"port\":1}]}`)+
		service("f", `{\"clusterIP\":\"10.0.0.9\"}`)+service("g", `{\"clusterIP\":\"010.000.0.9\"}`)+
		service("h", `{\"clusterIP\":\"::FFFF:10.0.0.9\"}`)+
		service("e", `{\"type\":\"ExternalName\",\"clusterIP\":\"10.0.0.1\"}`))
	s, err := snapshot.Open(t.Context(), in, snapshot.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	storage := Storage{Source: inspect.NewReader(s, nil), Prefix: "/registry"}
	clashes, err := storage.Clashes(t.Context())
	require.NoError(t, err)
	both := []string{"/registry/services/specs/a/a", "/registry/services/specs/a/b"}
	sloppy := []string{"/registry/services/specs/a/f", "/registry/services/specs/a/g", "/registry/services/specs/a/h"}
	require.Equal(t, []Clash{
		{What: "cluster IP fd00::1", Keys: both}, {What: "node port 30001", Keys: both},
		{What: "cluster IP 10.0.0.9", Keys: sloppy},
	}, clashes)
}
