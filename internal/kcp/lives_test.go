package kcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
)

// edited reads the recorded shard root after a change.
func edited(t *testing.T, change func(client *clientv3.Client)) *File {
	t.Helper()
	return readFile(t, kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), change))
}

// swap replaces a text of a value, once.
func swap(t *testing.T, client *clientv3.Client, key, from, to string) {
	t.Helper()
	value := string(kcptest.Get(t, client, key))
	require.Contains(t, value, from)
	kcptest.Put(t, client, key, []byte(strings.Replace(value, from, to, 1)))
}

// configMap returns a ConfigMap in a readable form that kcp never stores.
func configMap(name, namespace string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q}}`,
		name, namespace)
}

// TestOneEtcd checks that a shard and a cache below two prefixes of one etcd give the same results
// as in two etcds.
func TestOneEtcd(t *testing.T) {
	f := readFile(t, kcptest.Single(t))
	alone := theShard(t, readFile(t, kcptest.Recorded(t, kcptest.Root)))
	both := theShard(t, f)
	require.Equal(t, alone, both)
	want, got := theCache(t, readFile(t, kcptest.Recorded(t, kcptest.Cache))), theCache(t, f)
	for _, c := range slices.Concat(want.Copies, got.Copies) {
		slices.Sort(c.Keys) // another order of writes
		slices.Sort(c.Exports)
	}
	require.Equal(t, want, got)
	require.Len(t, f.Unknown, 1)
	require.Empty(t, f.Others)
}

// TestLivesHere checks that records of another logical cluster that a live migration moved are
// orphans on the destination, and their cluster lives on its own shard without them.
func TestLivesHere(t *testing.T) {
	rootPath, shard1Path := kcptest.LiveMigrated(t)
	root, shard1 := theShard(t, readFile(t, rootPath)), theShard(t, readFile(t, shard1Path))
	require.Empty(t, root.Orphans)
	require.Nil(t, root.Cluster(kcptest.Consumer))
	require.Equal(t, 36, shard1.Cluster(kcptest.Consumer).Keys)
	require.Len(t, shard1.Orphans, 1)
	o := shard1.Orphans[0]
	require.Equal(t, kcptest.Other, o.Name)
	require.ElementsMatch(t, kcptest.Trapped(), o.Keys)
	require.Equal(t, 4, o.Amount.Keys)
	var what []string
	for _, r := range o.Resources {
		what = append(what, fmt.Sprintf("%d %s", r.Keys, r.Resource))
	}
	require.Equal(t, []string{"2 configmaps", "1 pods", "1 serviceaccounts"}, what)
	require.Empty(t, o.Problems)
	require.Nil(t, shard1.Cluster(kcptest.Other))
}

// TestLivesWhateverItSays checks that the existence of the LogicalCluster's key counts, not the
// value, and no similar key.
func TestLivesWhateverItSays(t *testing.T) {
	const gone, ghost = "gone000000000000", "ghost00000000000"
	f := edited(t, func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.LogicalClusterKey(kcptest.Consumer), []byte("no JSON"))
		kcptest.Put(t, client, kcptest.LogicalClusterKey(kcptest.Other),
			[]byte("k8s:enc:aescbc:v1:key1:0123456789abcdef"))
		kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcptest.Child))
		// of another name, below an identity, and of the cache server's layout
		kcptest.Put(t, client, "/registry/core.kcp.io/logicalclusters/customresources/"+gone+"/other", nil)
		kcptest.Put(t, client, "/registry/core.kcp.io/logicalclusters/"+kcptest.Tenancy+"/"+gone+"/cluster", nil)
		kcptest.Put(t, client, "/registry/core.kcp.io/logicalclusters/customresources/root/"+gone+"/cluster", nil)
		kcptest.Put(t, client, "/registry/core/configmaps/"+ghost+"/default/cluster", configMap("cluster", "default"))
		kcptest.Put(t, client, "/registry/core/configmaps/system:mine/default/cm", configMap("cm", "default"))
	})
	s := theShard(t, f)
	require.Equal(t, 36, s.Cluster(kcptest.Consumer).Keys)
	require.Equal(t, 38, s.Cluster(kcptest.Other).Keys)
	require.NotNil(t, s.Cluster("system:mine"), "each shard has system:* of its own")
	var orphans []string
	for _, o := range s.Orphans {
		orphans = append(orphans, fmt.Sprint(o.Name, o.Amount.Keys))
	}
	require.Equal(t, []string{kcptest.Child + "25", ghost + "1", gone + "2"}, orphans)
	require.Equal(t, 66, s.Cluster("root").Keys, "one more, as its namespace would be called "+gone)
}

// TestNamesThatBeginAlike checks that logical clusters stay separate if one name is the beginning
// of another.
func TestNamesThatBeginAlike(t *testing.T) {
	const longer, shorter = kcptest.Consumer + "2", "2y3qvnqz5ga11oc"
	f := edited(t, func(client *clientv3.Client) {
		for _, name := range []string{longer, shorter} {
			kcptest.Put(t, client, kcptest.LogicalClusterKey(name),
				kcptest.Get(t, client, kcptest.LogicalClusterKey(kcptest.Consumer)))
			kcptest.Put(t, client, "/registry/core/configmaps/"+name+"/"+kcptest.Consumer+"/a",
				configMap("a", kcptest.Consumer))
			kcptest.Put(t, client, "/registry/pods/"+kcptest.ExampleDev+"/"+name+"/"+kcptest.Consumer+"/a",
				configMap("a", kcptest.Consumer))
			kcptest.Put(t, client, "/registry/core/namespaces/"+name+"/"+kcptest.Consumer,
				configMap(kcptest.Consumer, ""))
		}
	})
	s := theShard(t, f)
	require.Equal(t, []int{36, 4, 4}, []int{s.Cluster(kcptest.Consumer).Keys, s.Cluster(longer).Keys,
		s.Cluster(shorter).Keys})
	require.Len(t, s.Cluster(longer).Problems, 1, "its LogicalCluster says that it is another")
	require.Equal(t, CodeKeyMismatch, s.Cluster(longer).Problems[0].Code)
}

// TestMalformedKeys checks that keys that kcp never writes belong to no logical cluster, and no
// such key is lost or decrypted.
func TestMalformedKeys(t *testing.T) {
	malformed := []string{
		"/registry/g/r/customresources", "/registry/g.io/widgets/customresources", "/registry/a", "/registry/a/b",
		"/registry/g.io/widgets/customresources/c", "/registry/core/configmaps/c",
		"/registry/core/configmaps/c/n/a/m/e",
		"/registry/core.kcp.io/logicalclusters/customresources/customresources/cluster",
		"/registry/core//configmaps/c/n/x",
		"/registry/core.kcp.io/logicalclusters/customresources//cluster", "/registry/core/configmaps/../n/x",
		"/registry/example.com/things/c/n/x", "/registry/\xff\xfe/x", "/elsewhere/x", "x",
	}
	f := edited(t, func(client *clientv3.Client) {
		for _, key := range malformed {
			kcptest.Put(t, client, key, []byte("12345"))
		}
	})
	var unknown []string
	for _, u := range f.Unknown {
		unknown = append(unknown, u.Key)
		require.NotEmpty(t, u.Reason)
		require.NotContains(t, u.Reason, "12345")
		require.Equal(t, u.Key == "compact_rev_key", u.Expected)
		if !u.Expected {
			require.Equal(t, int64(len(u.Key)+5), u.Bytes)
		}
		if strings.Contains(u.Key, "\xff") {
			require.Equal(t, u.Key, string(u.KeyBytes))
		}
	}
	require.ElementsMatch(t, append(malformed, "compact_rev_key"), unknown)
	s := theShard(t, f)
	require.Empty(t, s.Orphans)
	require.Equal(t, theShard(t, readFile(t, kcptest.Recorded(t, kcptest.Root))), s)
}

// TestSeveralShards checks that shards below separate prefixes of one etcd, as in
// sharded-test-server, are separated.
func TestSeveralShards(t *testing.T) {
	path := kcptest.Edit(t, etcdtest.Build(t, "put x y"), func(client *clientv3.Client) {
		for name, file := range map[string]string{"root": kcptest.Root, "shard-1": kcptest.Shard1} {
			kvs, _ := kcptest.Dump(t, kcptest.Recorded(t, file))
			for _, kv := range kvs {
				if rest, ok := strings.CutPrefix(string(kv.Key), "/registry/"); ok {
					kcptest.Put(t, client, "/shard/"+name+"/"+rest, kv.Value)
				}
			}
		}
		kcptest.Put(t, client, "/registry/namespaces/default", configMap("default", ""))
		kcptest.Put(t, client, "/registry/configmaps/default/a", configMap("a", "default"))
	})
	f := readFile(t, path)
	require.Len(t, f.Shards, 2)
	_, err := f.Shard(nil)
	require.ErrorIs(t, err, ErrSeveralShards)
	require.Contains(t, err.Error(), `"/shard/root"`)
	require.Contains(t, err.Error(), `"/shard/shard-1"`)
	s, err := f.Shard([]string{"/shard/shard-1"})
	require.NoError(t, err)
	require.Equal(t, "shard-1", s.Name)
	require.Equal(t, 31, s.Cluster(kcptest.Consumer1).Keys)
	require.Empty(t, s.Orphans)
	require.True(t, strings.HasPrefix(s.Definitions[0].Key, "/shard/shard-1/"))
	_, err = f.Shard([]string{"/registry"})
	require.ErrorIs(t, err, ErrNoShard)
	require.Len(t, f.Others, 1)
	require.Equal(t, keys.FlavourKubernetes, f.Others[0].Flavour)
	require.Equal(t, 2, f.Others[0].Keys)
	require.Len(t, f.Unknown, 1, "x")
}

// TestPartial checks that an etcd with only Events is not a whole shard, although all its keys look
// like orphans.
func TestPartial(t *testing.T) {
	events := readFile(t, kcptest.Edit(t, etcdtest.Build(t, "put x y"), func(client *clientv3.Client) {
		kvs, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Root))
		for _, kv := range kvs {
			if strings.HasPrefix(string(kv.Key), "/registry/core/events/") {
				kcptest.Put(t, client, string(kv.Key), kv.Value)
			}
		}
	}))
	s := theShard(t, events)
	require.True(t, s.Partial)
	require.Empty(t, s.Clusters)
	require.NotEmpty(t, s.Orphans)
	whole := edited(t, func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.LogicalClusterKey(SystemShard), []byte("no JSON"))
	})
	require.False(t, theShard(t, whole).Partial, "whatever it says")
}

// TestEveryKeyOnce checks for any file that the counts add up to the number of keys, and each
// listed key is listed once.
func TestEveryKeyOnce(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	mixed := kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcptest.Other))
		for _, key := range []string{"x", "/registry/a/b", "/elsewhere/a", "/cache/g/r/customresources/s/c",
			"/kubernetes.io/pods/a/b"} {
			kcptest.Put(t, client, key, []byte("text"))
		}
		kcptest.Put(t, client, "/kubernetes.io/apiextensions.k8s.io/customresourcedefinitions/a.b.c", []byte("text"))
	})
	for name, path := range map[string]string{"root": root, "shard-1": shard1, "mixed": mixed,
		"cache": kcptest.Recorded(t, kcptest.Cache)} {
		f := readFile(t, path)
		sum, listed := len(f.Unknown), map[string]bool{}
		once := func(keys ...string) {
			for _, key := range keys {
				require.False(t, listed[key], "%s: %s", name, key)
				listed[key] = true
			}
		}
		for _, u := range f.Unknown {
			once(u.Key)
		}
		for _, o := range f.Others {
			sum += o.Keys
		}
		for _, s := range f.Shards {
			for _, c := range s.Clusters {
				sum += c.Keys
			}
			for _, o := range s.Orphans {
				sum += o.Amount.Keys
				require.Len(t, o.Keys, o.Amount.Keys)
				once(o.Keys...)
			}
		}
		for _, c := range f.Caches {
			sum += c.Own.Keys
			for _, copied := range c.Copies {
				sum += copied.Amount.Keys
				once(copied.Keys...)
			}
		}
		want, err := reader(t, path, nil).Snapshot().Keys(context.Background())
		require.NoError(t, err)
		require.Equal(t, want, sum, name)
	}
}

// TestDeterminism checks that the same file gives the same result, in the same order.
func TestDeterminism(t *testing.T) {
	path := kcptest.Single(t)
	var first []byte
	for range 5 {
		f := readFile(t, path)
		text, err := json.Marshal([]any{f, Survey([]Named{{path, f}}, []Named{{path, f}})})
		require.NoError(t, err)
		if first == nil {
			first = text
		}
		require.Equal(t, string(first), string(text))
	}
	require.Greater(t, len(first), 10000)
}

// TestAnotherRevision checks that the result is the content at the reader's revision.
func TestAnotherRevision(t *testing.T) {
	ctx := context.Background()
	path := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcptest.Child))
	})
	now := reader(t, path, nil)
	f, err := Read(ctx, now)
	require.NoError(t, err)
	require.Len(t, theShard(t, f).Orphans, 1)
	revision, err := now.Snapshot().Revision(ctx)
	require.NoError(t, err)
	f, err = Read(ctx, now.At(revision-1))
	require.NoError(t, err)
	require.Empty(t, theShard(t, f).Orphans)
}
