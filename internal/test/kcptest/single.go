package kcptest

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const compactKey = "compact_rev_key" // each API server's own, in every etcd

// Single is a kcp in one process: shard root and its cache server in one etcd, below the prefixes
// /registry and /cache. What the cache has of shard-1 stays in it.
func Single(t testing.TB) (path string) {
	t.Helper()
	cache, _ := Dump(t, Recorded(t, Cache))
	return Edit(t, Recorded(t, Root), func(client *clientv3.Client) {
		for _, kv := range cache {
			if string(kv.Key) != compactKey {
				Put(t, client, string(kv.Key), kv.Value)
			}
		}
	})
}
