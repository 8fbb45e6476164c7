package compare_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
)

func TestSameCluster(t *testing.T) {
	object := func(key, kind, uid string) string { return put(key, kind, uid, "") }
	const (
		same   = "put /registry/ranges/serviceips same"
		system = "/registry/namespaces/kube-system"
		shard  = "/registry/core.kcp.io/logicalclusters/customresources/system:shard/cluster"
		moved  = "/registry/core.kcp.io/logicalclusters/customresources/c1/cluster"
	)
	for name, c := range map[string]struct {
		a, b []string
		want compare.Same
		why  string
	}{
		"one uid, nothing else in common": {[]string{object(system, "Namespace", "u1")}, []string{same, same, object(system, "Namespace", "u1")}, compare.Yes, ""},
		"another prefix":                  {[]string{object(system, "Namespace", "u1")}, []string{same, object("/kube/namespaces/kube-system", "Namespace", "u1")}, compare.Yes, ""},
		"two uids, and the same record at one revision": {[]string{same, object(system, "Namespace", "u1")}, []string{same, object(system, "Namespace", "u2")}, compare.No,
			"namespace kube-system has the uid u1 in one and u2 in the other"},
		"a record in common, no uid":   {[]string{same}, []string{same, "put /registry/pods/a/b x"}, compare.Yes, ""},
		"nothing in common, no uid":    {[]string{"put /registry/events/a/b x"}, []string{"put /registry/events/a/c x"}, compare.Unknown, "they have no record in common, and hold nothing that names the cluster"},
		"a uid in one alone":           {[]string{object(system, "Namespace", "u1")}, []string{"put /registry/events/a/c x"}, compare.Unknown, "they have no record in common, and hold nothing that names the cluster"},
		"encrypted, nothing in common": {[]string{"put " + system + " k8s:enc:aescbc:v1:k:1"}, []string{"put " + system + " k8s:enc:aescbc:v1:k:2"}, compare.Unknown, "they have no record in common, and hold nothing that names the cluster"},
		"nothing in one":               {[]string{same}, []string{same, "del /registry/ranges/serviceips"}, compare.Unknown, ""},
		"two shards between which a logical cluster moved": {[]string{object(shard, "LogicalCluster", "s1"), object(moved, "LogicalCluster", "m")},
			[]string{object(moved, "LogicalCluster", "m"), object(shard, "LogicalCluster", "s2")}, compare.No, "LogicalCluster of system:shard has the uid s1 in one and s2 in the other"},
		"one shard": {[]string{object(shard, "LogicalCluster", "s1")}, []string{same, object(shard, "LogicalCluster", "s1")}, compare.Yes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sides := []*inspect.Reader{side(t, c.a...), side(t, c.b...)}
			got, why, err := compare.SameCluster(context.Background(), sides[0], sides[1])
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.why, why)
			got, _, err = compare.SameCluster(context.Background(), sides[1], sides[0])
			require.NoError(t, err)
			require.Equal(t, c.want, got, "the other way round")
		})
	}
}
