package apiservers

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// The range of Services is that of the recorded cluster; older releases keep it elsewhere, for two
// IP families in two records.
func TestServiceRange(t *testing.T) {
	require.Equal(t, "10.0.0.0/24", ServiceRange(t.Context(), restored(t, "calico/before.db.gz").Client, "/registry", nil))

	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	at := func() string { return ServiceRange(t.Context(), etcd.Client, "/registry", nil) }
	require.Empty(t, at())
	etcdtest.Run(t, etcd, "put /registry/ranges/serviceips `{\"kind\":\"RangeAllocation\",\"apiVersion\":\"v1\",\"range\":\"10.0.0.0/24\"}`")
	require.Equal(t, "10.0.0.0/24", at())
	etcdtest.Run(t, etcd, "put /registry/ranges/secondaryserviceips `{\"kind\":\"RangeAllocation\",\"apiVersion\":\"v1\",\"range\":\"fd00::/112\"}`")
	require.Equal(t, "10.0.0.0/24,fd00::/112", at())
	etcdtest.Run(t, etcd, "put /registry/servicecidrs/kubernetes damaged")
	require.Equal(t, "10.0.0.0/24,fd00::/112", at())
}
