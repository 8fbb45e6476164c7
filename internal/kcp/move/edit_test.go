package move_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// edit is a change of a file, made through a real etcd.
type edit func(t testing.TB, client *clientv3.Client)

func edited(t testing.TB, path string, edits ...edit) string {
	t.Helper()
	return kcptest.Edit(t, path, func(client *clientv3.Client) {
		for _, change := range edits {
			change(t, client)
		}
	})
}

// recorded returns a recorded snapshot after edits.
func recorded(t testing.TB, name string, edits ...edit) string {
	t.Helper()
	if path := kcptest.Recorded(t, name); len(edits) == 0 {
		return path
	} else {
		return edited(t, path, edits...)
	}
}

func root(t testing.TB, edits ...edit) string   { return recorded(t, kcptest.Root, edits...) }
func shard1(t testing.TB, edits ...edit) string { return recorded(t, kcptest.Shard1, edits...) }

func put(key, value string) edit {
	return func(t testing.TB, client *clientv3.Client) { kcptest.Put(t, client, key, []byte(value)) }
}

// putAll puts records below another prefix than /registry, "" for /registry.
func putAll(kvs []etcdtest.KV, prefix string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		for _, kv := range kvs {
			key := string(kv.Key)
			if rest, ok := strings.CutPrefix(key, "/registry/"); ok && prefix != "" {
				key = prefix + "/" + rest
			}
			kcptest.Put(t, client, key, kv.Value)
		}
	}
}

// withShard adds the records of another shard, below a separate prefix.
func withShard(t testing.TB, shard, prefix string) edit {
	t.Helper()
	return putAll(dumped(t, shard, func(key []byte) bool { return bytes.HasPrefix(key, []byte("/registry/")) }), prefix)
}

// withCache adds the records of a recorded cache.
func withCache(t testing.TB, name string) edit {
	t.Helper()
	return putAll(dumped(t, kcptest.Recorded(t, name), inCache), "")
}

func drop(keys ...string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		for _, key := range keys {
			kcptest.Delete(t, client, key)
		}
	}
}

// dropAll deletes all keys for which meant is true.
func dropAll(meant func(key []byte) bool) edit {
	return func(t testing.TB, client *clientv3.Client) {
		r, err := client.Get(context.Background(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		require.NoError(t, err)
		for _, kv := range r.Kvs {
			if meant(kv.Key) {
				kcptest.Delete(t, client, string(kv.Key))
			}
		}
	}
}

// swap replaces texts of one value: pairs of old and new, each once.
func swap(key string, pairs ...string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		kcptest.Put(t, client, key, []byte(swapped(t, string(kcptest.Get(t, client, key)), pairs...)))
	}
}

func swapped(t testing.TB, value string, pairs ...string) string {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		require.Contains(t, value, pair[0])
		value = strings.Replace(value, pair[0], pair[1], 1)
	}
	return value
}

// replace puts another value under an existing key.
func replace(key, value string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		kcptest.Get(t, client, key)
		kcptest.Put(t, client, key, []byte(value))
	}
}

// derive puts the value of a key, with all texts of pairs replaced, under another key.
func derive(from, to string, pairs ...string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		value := strings.NewReplacer(pairs...).Replace(string(kcptest.Get(t, client, from)))
		kcptest.Put(t, client, to, []byte(value))
	}
}

// flip changes a byte of a value.
func flip(key string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		value := bytes.Clone(kcptest.Get(t, client, key))
		value[len(value)-3] ^= 1
		kcptest.Put(t, client, key, value)
	}
}

// leased attaches a key to a new lease; no TTL detaches it.
func leased(key string, ttl int64) edit {
	return func(t testing.TB, client *clientv3.Client) {
		value, options := kcptest.Get(t, client, key), []clientv3.OpOption{}
		if ttl > 0 {
			lease, err := client.Grant(context.Background(), ttl)
			require.NoError(t, err)
			options = append(options, clientv3.WithLease(lease.ID))
		}
		kcptest.Put(t, client, key, value, options...)
	}
}
