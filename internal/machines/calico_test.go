package machines_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/machines"
)

// TestCalicoNames compares with names computed by libcalico-go.
func TestCalicoNames(t *testing.T) {
	_, block, err := net.ParseCIDR("10.0.0.64/26")
	require.NoError(t, err)
	require.Equal(t, "10-0-0-64-26", machines.BlockName(block))
	require.Equal(t, "n1-10-0-0-64-26", machines.AffinityName("n1", block))
	require.Equal(t, "A3XPYDATRKB7Q4SM2O5FN4RXIHBFIL2PITFX26BAIP5XAB2X74CA", machines.HostnameHash("node-1"))
	require.Equal(t, "R2PGA4ZUN5YLSHP45OTT5YDKKILIFGNFGBRAQ5WT3EH6XESLPNYQ", machines.HostnameHash("my-host"))
	require.LessOrEqual(t, len(machines.AffinityName(strings.Repeat("n", 253), block)), 253)
}
