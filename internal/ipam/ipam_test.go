package ipam_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/ipam"
)

// TestNames compares with names that libcalico-go computed.
func TestNames(t *testing.T) {
	_, block, err := net.ParseCIDR("10.0.0.64/26")
	require.NoError(t, err)
	require.Equal(t, "10-0-0-64-26", ipam.BlockName(block))
	require.Equal(t, "n1-10-0-0-64-26", ipam.AffinityName("n1", block))
	require.Equal(t, "A3XPYDATRKB7Q4SM2O5FN4RXIHBFIL2PITFX26BAIP5XAB2X74CA", ipam.HostnameHash("node-1"))
	require.Equal(t, "R2PGA4ZUN5YLSHP45OTT5YDKKILIFGNFGBRAQ5WT3EH6XESLPNYQ", ipam.HostnameHash("my-host"))
	require.LessOrEqual(t, len(ipam.AffinityName(strings.Repeat("n", 253), block)), 253)
}
