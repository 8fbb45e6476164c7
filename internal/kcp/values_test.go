package kcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
)

const (
	bindingKey = "/registry/apis.kcp.io/apibindings/customresources/" + kcptest.Consumer + "/example.dev"
	exportKey  = "/registry/apis.kcp.io/apiexports/customresources/" + kcptest.Provider + "/example.dev"
	boundKey   = "/registry/apiextensions.k8s.io/customresourcedefinitions/system:bound-crds/" +
		"af5b5003-97ab-4fd4-a293-6e98034dc20c"
	secretText = "TopSecretText"
)

// TestVersions checks that APIBindings and APIExports are read at both of their versions, and in
// CBOR.
func TestVersions(t *testing.T) {
	before := theShard(t, readFile(t, kcptest.Recorded(t, kcptest.Root)))
	s := theShard(t, edited(t, func(client *clientv3.Client) {
		for _, key := range []string{bindingKey, exportKey} {
			swap(t, client, key, "apis.kcp.io/v1alpha2", "apis.kcp.io/v1alpha1")
		}
		key := kcptest.LogicalClusterKey(kcptest.Consumer)
		object, _, err := encoding.DecodeObject(kcptest.Get(t, client, key))
		require.NoError(t, err)
		inCBOR, err := encoding.EncodeObject(object, encoding.FormatCBOR)
		require.NoError(t, err)
		kcptest.Put(t, client, key, inCBOR)
	}))
	require.Equal(t, before.Cluster(kcptest.Consumer).Bindings, s.Cluster(kcptest.Consumer).Bindings)
	require.Equal(t, before.Cluster(kcptest.Provider).Exports, s.Cluster(kcptest.Provider).Exports)
	require.Equal(t, "root:consumer", s.Cluster(kcptest.Consumer).Path)
	require.Empty(t, s.Cluster(kcptest.Consumer).Problems)
}

// TestStates checks the state fields of a LogicalCluster.
func TestStates(t *testing.T) {
	put := func(client *clientv3.Client, name, from, to string) {
		swap(t, client, kcptest.LogicalClusterKey(name), from, to)
	}
	const annotations = `"annotations":{`
	s := theShard(t, edited(t, func(client *clientv3.Client) {
		put(client, kcptest.Consumer, annotations, annotations+`"internal.kcp.io/migrating":"root:move",`)
		put(client, kcptest.Other, annotations, annotations+`"core.kcp.io/inactive":"true",`)
		put(client, kcptest.Child, annotations, annotations+`"internal.kcp.io/inactive":"true",`)
		put(client, kcptest.Provider, `"generation":1`, `"generation":1,"deletionTimestamp":"2026-11-20T20:00:00Z"`)
		put(client, SystemShard, `"core.kcp.io/shard":"root",`, ``)
	}))
	require.Equal(t, "root:move", s.Cluster(kcptest.Consumer).Migrating)
	require.True(t, s.Cluster(kcptest.Other).Inactive)
	require.True(t, s.Cluster(kcptest.Child).Inactive)
	require.Equal(t, "2026-11-20T20:00:00Z", s.Cluster(kcptest.Provider).Terminating)
	require.Empty(t, s.Name, "nothing says it any more")
}

// TestVirtual checks that a bound type without storage versions is virtual.
func TestVirtual(t *testing.T) {
	s := theShard(t, edited(t, func(client *clientv3.Client) {
		swap(t, client, bindingKey, `"storageVersions":["v1"]`, `"storageVersions":[]`)
	}))
	bound := s.Cluster(kcptest.Consumer).Bindings[0].Bound
	require.Equal(t, []bool{true, false, false}, []bool{bound[0].Virtual, bound[1].Virtual, bound[2].Virtual})
}

// TestNothingGuessed checks that an unreadable value is a problem of the logical cluster and leaves
// its fields empty; no reason quotes the value.
func TestNothingGuessed(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		code  *finding.Code
	}{
		"text":    {secretText, CodeUndecodable},
		"empty":   {"", CodeUndecodable},
		"cut off": {`{"apiVersion":"x","kind":"` + secretText, CodeUndecodable},
		"a list":  {`["` + secretText + `"]`, CodeUndecodable},
		"another kind": {`{"apiVersion":"v1","kind":"` + secretText + `","metadata":{"name":"cluster"}}`,
			CodeUndecodable},
		"wrong types": {`{"kind":"KIND","metadata":{"name":{"a":"` + secretText + `"}}}`, CodeUndecodable},
		"wrong status": {`{"kind":"KIND","metadata":{},"status":"` + secretText + `","spec":"` + secretText + `"}`,
			CodeUndecodable},
		"protobuf":      {"k8s\x00\x0a\x08" + secretText, CodeUndecodable},
		"CBOR cut off":  {"\xd9\xd9\xf7\xa1\x61", CodeUndecodable},
		"nested deeply": {strings.Repeat(`{"kind":`, 20000), CodeUndecodable},
		"encrypted":     {"k8s:enc:aescbc:v1:key1:" + secretText + "0123456789", CodeEncrypted},
		"half of that":  {"k8s:enc:", CodeEncrypted},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := kcptest.WorkspaceKey("other")
			s := theShard(t, edited(t, func(client *clientv3.Client) {
				for key, kind := range map[string]string{
					kcptest.LogicalClusterKey(kcptest.Consumer): "LogicalCluster", bindingKey: "APIBinding",
					exportKey: "APIExport",
					boundKey:  "CustomResourceDefinition", workspace: "Workspace",
				} {
					kcptest.Put(t, client, key, []byte(strings.Replace(c.value, "KIND", kind, 1)))
				}
			}))
			for cluster, key := range map[string]string{provider(): exportKey, BoundCRDs: boundKey,
				rootCluster: workspace} {
				require.Len(t, s.Cluster(cluster).Problems, 1, cluster)
				require.Equal(t, key, s.Cluster(cluster).Problems[0].Key)
				require.Equal(t, c.code, s.Cluster(cluster).Problems[0].Code)
			}
			consumer := s.Cluster(kcptest.Consumer)
			require.Len(t, consumer.Problems, 2)
			require.Equal(t, &Cluster{Name: kcptest.Consumer, Records: consumer.Records,
				Bindings: consumer.Bindings, Workspaces: consumer.Workspaces}, consumer)
			require.Equal(t, 36, consumer.Keys)
			require.Len(t, consumer.Bindings, 2, "two that can be read")
			require.Empty(t, s.Cluster(kcptest.Provider).Exports)
			d := s.Definition("af5b5003-97ab-4fd4-a293-6e98034dc20c")
			require.NotEmpty(t, d.Problem)
			require.Equal(t, &Definition{Key: boundKey, Name: d.Name, Problem: d.Problem}, d)
			require.Contains(t, s.Cluster(rootCluster).Workspaces,
				Workspace{Key: workspace, Name: "other", Identity: kcptest.Tenancy})
			require.NotContains(t, fmt.Sprintf("%+v %+v", consumer, d), secretText)
		})
	}
}

func provider() string { return kcptest.Provider }

// kcpDecrypter decrypts the kinds that Read needs, and fails for any other kind.
type kcpDecrypter struct{ decrypted map[string]int }

func (o kcpDecrypter) Decrypt(_ context.Context, gr schema.GroupResource, key, stored []byte) ([]byte, bool, error) {
	o.decrypted[gr.String()]++
	switch gr.String() {
	case "logicalclusters.core.kcp.io", "apibindings.apis.kcp.io", "apiexports.apis.kcp.io",
		"workspaces.tenancy.kcp.io", "shards.core.kcp.io", "customresourcedefinitions.apiextensions.k8s.io":
		return stored, false, nil
	}
	return nil, false, errors.New("decrypted " + string(key))
}

// TestReadsNoOtherKind checks that Read decrypts only the kinds that describe logical clusters, and
// only kcp's own definitions.
func TestReadsNoOtherKind(t *testing.T) {
	decrypter := kcpDecrypter{map[string]int{}}
	path := kcptest.Single(t)
	f, err := Read(context.Background(), reader(t, path, decrypter))
	require.NoError(t, err)
	require.Equal(t, map[string]int{
		"logicalclusters.core.kcp.io": 6, "apibindings.apis.kcp.io": 18, "apiexports.apis.kcp.io": 12,
		"workspaces.tenancy.kcp.io": 5, "shards.core.kcp.io": 4, "customresourcedefinitions.apiextensions.k8s.io": 21,
	}, decrypter.decrypted)
	checked := readFile(t, path)
	require.Equal(t, checked, f, "where nothing is wrong, both say the same")
	_, err = ReadChecked(context.Background(), reader(t, path, decrypter))
	require.ErrorContains(t, err, "decrypted ", "which reads all of them")
	require.Equal(t, checked, checkedBy(t, reader(t, path, nil)))
}

// checkedBy returns the result of Checking for a caller that reads the entries.
func checkedBy(t *testing.T, r *inspect.Reader) *File {
	t.Helper()
	add, file, err := Checking(context.Background(), r)
	require.NoError(t, err)
	for e, err := range r.Live(context.Background(), nil) {
		require.NoError(t, err)
		require.NoError(t, add(e))
	}
	return file()
}

// TestUndecryptable checks that undecryptable records are counted if they had to be decrypted, and
// reported if they describe logical clusters.
func TestUndecryptable(t *testing.T) {
	const secret = "/registry/core/secrets/" + kcptest.Consumer + "/default/sec"
	path := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, secret, []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef"))
	})
	c := theShard(t, readFile(t, path)).Cluster(kcptest.Consumer)
	require.Equal(t, 1, c.Undecryptable)
	require.Equal(t, readFile(t, path), checkedBy(t, reader(t, path, nil)))
	require.Empty(t, c.Problems)
	f, err := Read(context.Background(), reader(t, path, nil))
	require.NoError(t, err)
	require.Zero(t, theShard(t, f).Cluster(kcptest.Consumer).Undecryptable)
}

// FuzzValues checks for any value of the kinds that describe logical clusters that reading ends,
// and an unreadable value sets no field. A value agrees with its key only if decoding confirms it.
func FuzzValues(f *testing.F) {
	for e, err := range reader(f, kcptest.Recorded(f, kcptest.Root), nil).Live(context.Background(), nil) {
		require.NoError(f, err)
		switch key, _ := (keys.KCPShard{Prefix: "/registry"}).Parse(e.Key); key.Resource.Resource {
		case "logicalclusters", "apibindings", "apiexports", "workspaces", "shards":
			f.Add(append([]byte{}, e.Value...))
		}
	}
	f.Add(
		[]byte(
			`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"a"},` +
				`"spec":{"version":"v1"}}`))
	f.Add([]byte("\xd9\xd9\xf7\xa1\x44kind\x49Workspace"))
	f.Add([]byte("k8s\x00\x0a\x00"))
	f.Add([]byte(
		`{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"a":"\u003c","kcp.io/cluster":"c"},"name":"n"}}`))
	f.Add(inProtobuf(f, "n", "", map[string]string{"a": "b", "kcp.io/cluster": "c", "kcp.io/shard": "s"}))
	f.Fuzz(func(t *testing.T, value []byte) {
		c, d := Cluster{Workspaces: make([]Workspace, 1)}, Definition{}
		var exports []Export
		var registered []RegisteredShard
		key := keys.Key{Cluster: "c", Name: "n"}
		x := examination{pass: &pass{}, key: key, entry: inspect.Entry{Value: value}}
		if m, err := encoding.ReadMeta(value); x.agrees() {
			require.NoError(t, err)
			require.Empty(t, differs(key, m.Name, m.Namespace, m.Annotations))
		}
		taken := ""
		for _, read := range []reading{
			c.reading(), c.readBinding(key, names{}), readExport(key, &exports), c.readWorkspace(0),
			readShard(key, &registered), d.reading(),
		} {
			if o, err := decodeObject(read.kind, value); err == nil {
				require.Empty(t, taken, "a value is of one kind")
				taken = read.kind
				read.take(o)
			}
		}
		switch w := &c.Workspaces[0]; taken {
		case "LogicalCluster":
			c = Cluster{Workspaces: c.Workspaces}
		case "APIBinding":
			require.Len(t, c.Bindings, 1)
			c.Bindings = nil
		case "Workspace":
			*w = Workspace{}
		case "CustomResourceDefinition":
			d = Definition{}
		}
		require.Equal(t, []any{Cluster{Workspaces: make([]Workspace, 1)}, Definition{}}, []any{c, d})
		require.Equal(t, []bool{taken == "APIExport", taken == "Shard"},
			[]bool{len(exports) == 1, len(registered) == 1})
	})
}

// BenchmarkRead reads a shard with 2,000 logical clusters of 40 keys, with Read and with
// ReadChecked.
func BenchmarkRead(b *testing.B) {
	path := kcptest.Many(b, 2000)
	for name, read := range map[string]func(context.Context, *inspect.Reader) (*File, error){"few": Read,
		"all": ReadChecked} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := read(context.Background(), reader(b, path, nil))
				require.NoError(b, err)
				require.Len(b, f.Shards[0].Clusters, 2000+9)
			}
		})
	}
}
