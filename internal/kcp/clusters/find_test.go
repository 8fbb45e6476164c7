package clusters

import (
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// TestFind: a name is found, and whatever else someone gives is answered with what helps.
func TestFind(t *testing.T) {
	rootPath, shard1Path := kcptest.LiveMigrated(t)
	root, shard1 := theShard(t, readFile(t, rootPath)), theShard(t, readFile(t, shard1Path))
	purged := theShard(t, edited(t, func(client *clientv3.Client) {
		for _, key := range []string{kcptest.LogicalClusterKey(kcptest.Child), kcptest.LogicalClusterKey(kcptest.Provider)} {
			kcptest.Delete(t, client, key)
		}
	}))
	purged.orphans = nil
	c, err := root.Find(kcptest.Other)
	require.NoError(t, err)
	require.Equal(t, "root:other", c.Path)
	for name, c := range map[string]struct {
		shard *Shard
		says  string
	}{
		"root:other":     {root, `"root:other" is the path of "11iehthilu5atzgl", which is the name to give`},
		kcptest.Consumer: {root, `"2y3qvnqz5ga11oc4" lives on shard "shard-1", as its Workspace "consumer" says`},
		"root:consumer": {root,
			`"root:consumer" is the path of "2y3qvnqz5ga11oc4", which lives on shard "shard-1", as its Workspace "consumer" says`},
		kcptest.Other:          {shard1, `"11iehthilu5atzgl" does not live on this shard; keys of it that are left here (orphans): 4`},
		kcptest.Provider:       {purged, `"zgf51depsgjhepex" does not live on this shard, where its Workspace "provider" is`},
		"root:consumer:child":  {purged, `"root:consumer:child" is the path of "1n7wq48mavio4f0j", which does not live on this shard, where its Workspace "child" is`},
		"other":                {root, `"other"; there is "11iehthilu5atzgl" (root:other)`},
		"11iehthi":             {root, `"11iehthi"; there is "11iehthilu5atzgl" (root:other)`},
		"11iehthilu5atzgl\x1b": {root, `"11iehthilu5atzgl\x1b"; there is "11iehthilu5atzgl" (root:other)`},
		"nothing-like-it":      {root, `"nothing-like-it"`},
		"":                     {root, `""`},
	} {
		_, err := c.shard.Find(name)
		require.ErrorIs(t, err, ErrNoCluster)
		require.Equal(t, "no such logical cluster: "+c.says, err.Error())
	}
}

// TestShardAndCache: a file is taken for what it is.
func TestShardAndCache(t *testing.T) {
	shard, cache := readFile(t, kcptest.Recorded(t, kcptest.Root)), readFile(t, kcptest.Recorded(t, kcptest.Cache))
	_, err := cache.Shard(nil)
	require.ErrorIs(t, err, ErrNoShard)
	require.ErrorContains(t, err, `the file holds kcp-cache below "/cache"`)
	_, err = shard.Cache(nil)
	require.ErrorIs(t, err, ErrNoCache)
	require.ErrorContains(t, err, `the file holds kcp-shard below "/registry"`)
	_, err = shard.Shard([]string{"/elsewhere"})
	require.ErrorIs(t, err, ErrNoShard)
	_, err = (&File{}).Shard(nil)
	require.EqualError(t, err, "no shard of kcp: nothing that is known lies in the file")
	s, err := shard.Shard([]string{"/elsewhere", "/registry"})
	require.NoError(t, err)
	require.Equal(t, "root", s.Name)
	_, err = (&File{Caches: []*Cache{{Prefix: "/a"}, {Prefix: "/b"}}}).Cache(nil)
	require.ErrorIs(t, err, ErrSeveralCaches)
	require.ErrorContains(t, err, `below "/a" and "/b"`)
}
