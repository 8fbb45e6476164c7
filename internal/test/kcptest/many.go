package kcptest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// ManyName returns the name of the ith logical cluster of Many, as long as kcp's names.
func ManyName(i int) string { return fmt.Sprintf("bench%011d", i) }

// Many returns the recorded shard root with n more logical clusters, named by ManyName: each has
// the keys and values of Consumer, except for its child, with another name and path, five more
// ConfigMaps, and its Workspace in root. The same n gives the same file.
func Many(t testing.TB, n int) (path string) {
	t.Helper()
	ctx := context.Background()
	recorded := Recorded(t, Root)
	pattern := manyPattern(t, recorded)
	src, err := snapshot.Open(ctx, recorded, snapshot.Config{})
	require.NoError(t, err)
	defer src.Close()
	path = filepath.Join(t.TempDir(), "many.db")
	_, err = snapshot.Write(ctx, path, src, manyChanges(pattern, n), snapshot.WriteConfig{})
	require.NoError(t, err)
	return path
}

// manyPattern returns the records of one logical cluster, still named Consumer.
func manyPattern(t testing.TB, recorded string) (pattern []etcdtest.KV) {
	t.Helper()
	kvs, _ := Dump(t, recorded)
	for _, kv := range kvs {
		key := string(kv.Key)
		if liveClusterOf(key, Consumer) != Consumer || strings.Contains(key, Other) ||
			strings.HasSuffix(key, "/child") {
			continue
		}
		pattern = append(pattern, kv)
		if name, isSettings := strings.CutSuffix(key, "/default/settings"); isSettings {
			for i := range 5 {
				more := fmt.Sprintf("setting%d", i) // the same length keeps protobuf lengths valid
				value := bytes.ReplaceAll(kv.Value, []byte("settings"), []byte(more))
				pattern = append(pattern, etcdtest.KV{Key: []byte(name + "/default/" + more), Value: value})
			}
		}
	}
	require.Len(t, pattern, 35+5)
	for _, kv := range kvs {
		if string(kv.Key) == WorkspaceKey("consumer") {
			pattern = append(pattern, kv)
		}
	}
	require.Len(t, pattern, 35+5+1)
	return pattern
}

func manyChanges(pattern []etcdtest.KV, n int) iter.Seq2[snapshot.Change, error] {
	return func(yield func(snapshot.Change, error) bool) {
		for i := range n {
			names := strings.NewReplacer(Consumer, ManyName(i), `consumer"`, fmt.Sprintf(`c%07d"`, i), "/consumer",
				fmt.Sprintf("/c%07d", i))
			for _, kv := range pattern {
				c := snapshot.Change{Key: []byte(names.Replace(string(kv.Key))),
					Value: []byte(names.Replace(string(kv.Value))), Lease: kv.Lease}
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

const compactKey = "compact_rev_key" // written by each API server, in every etcd

// Single returns a kcp in one process: shard root and its cache server in one etcd, below the
// prefixes /registry and /cache. The cache keeps its copies from shard-1.
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
