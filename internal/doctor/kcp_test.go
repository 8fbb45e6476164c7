package doctor

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// TestKCPRecorded: files of two installations of kcp have only the findings of every file of kcp.
func TestKCPRecorded(t *testing.T) {
	always := finding.Names(codeBumpRevision, codeEtcdVersion, codeLayoutUnchecked)
	for _, name := range []string{
		kcptest.Root, kcptest.Shard1, kcptest.Cache, kcptest.ClaimsRoot, kcptest.ClaimsShard1, kcptest.ClaimsShard2,
		kcptest.ClaimsCache,
	} {
		report := examined(t, opened(t, kcptest.Recorded(t, name)), Options{Ignore: always})
		require.Empty(t, report.Findings, name)
	}
	report := examined(t, opened(t, kcptest.Single(t)), Options{Ignore: always})
	require.Empty(t, report.Findings, "a shard whose etcd holds the cache")
}

// kcpChange changes a recorded shard.
type kcpChange func(t *testing.T, client *clientv3.Client)

func replaced(key string, pairs ...string) kcpChange {
	return func(t *testing.T, client *clientv3.Client) {
		value := string(kcptest.Get(t, client, key))
		for n := 0; n < len(pairs); n += 2 {
			require.Contains(t, value, pairs[n])
			value = strings.Replace(value, pairs[n], pairs[n+1], 1)
		}
		kcptest.Put(t, client, key, []byte(value))
	}
}

// emptied deletes each key that contains all parts.
func emptied(parts ...string) kcpChange {
	return func(t *testing.T, client *clientv3.Client) {
		n := 0
		eachKey(t, client, "", func(key string, _ []byte) {
			for _, part := range parts {
				if !strings.Contains(key, part) {
					return
				}
			}
			kcptest.Delete(t, client, key)
			n++
		})
		require.Positive(t, n)
	}
}

func eachKey(t *testing.T, client *clientv3.Client, prefix string, visit func(key string, value []byte)) {
	t.Helper()
	all, err := client.Get(context.Background(), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range all.Kvs {
		visit(string(kv.Key), kv.Value)
	}
}

// kcpDefect is a change of a recorded shard, and its finding.
type kcpDefect struct {
	in     string // "" is kcptest.Root
	change kcpChange
	code   *finding.Code
	key    string
	says   string
	also   []*finding.Code
}

func kcpDefects() map[string]kcpDefect {
	const other, consumer = kcptest.Other, kcptest.Consumer
	otherLC := kcptest.LogicalClusterKey(other)
	configMap := "/registry/core/configmaps/" + other + "/default/moved"
	object := func(name, namespace, cluster string) kcpChange {
		return func(t *testing.T, client *clientv3.Client) {
			kcptest.Put(t, client, configMap, fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,`+
					`"annotations":{"kcp.io/cluster":%q}}}`, name, namespace, cluster))
		}
	}
	copied := func(t *testing.T, client *clientv3.Client) {
		eachKey(t, client, "/registry/", func(key string, value []byte) {
			kcptest.Put(t, client, "/second/"+strings.TrimPrefix(key, "/registry/"), value)
		})
	}
	return map[string]kcpDefect{
		"terminating": {change: replaced(otherLC, `"metadata":{`,
			`"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`), code: kcp.CodeClusterTerminating, key: otherLC,
			says: "root:other) is being deleted since 2026-01-01T00:00:00Z"},
		"migrating": {change: replaced(otherLC, `"annotations":{`,
			`"annotations":{"internal.kcp.io/migrating":"root:m",`), code: kcp.CodeClusterMigrating, key: otherLC,
			says: "a live migration has it: root:m"},
		"misnamed": {change: replaced(otherLC, `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"mars"`),
			code: kcp.CodeClusterMisnamed, key: otherLC, says: "believes to live on mars"},
		"owner gone": {change: emptied(kcptest.WorkspaceKey("other")), code: kcp.CodeWorkspaceGone, key: otherLC,
			says: "the Workspace other in root, which is not there"},
		"astray": {change: emptied("/" + kcptest.Child + "/"), code: kcp.CodeWorkspaceAstray,
			key:  "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + consumer + "/child",
			says: "lives on shard root; it lives on none that was given"},
		"undefined": {change: emptied("customresourcedefinitions/system:bound-crds/",
			"1db677a5-7b18-4ed6-bc17-c0832975bbbd"), code: kcp.CodeBoundDefinitionGone,
			says: "no server serves it here"},
		"unbound": {change: emptied("/apis.kcp.io/apibindings/customresources/" + other + "/example"),
			code: kcp.CodeIdentityUnbound, key: otherLC, says: "which no APIBinding of it binds"},
		"orphans": {change: emptied(otherLC), code: codeClusterOrphans,
			says: other + ", which does not live on this shard: ", also: []*finding.Code{kcp.CodeWorkspaceAstray}},
		"stale": {in: "single", change: emptied("/registry/", "/"+kcptest.Provider+"/"), code: codeStaleCopies,
			says: "copies of " + kcptest.Provider + " from shard root", also: []*finding.Code{kcp.CodeWorkspaceAstray}},
		"mismatch": {change: object("moved", "default", consumer), code: codeClusterMismatch, key: configMap,
			says: "kcp.io/cluster of the value differs from the key"},
		"name": {change: object("other", "default", other), code: codeKeyMismatch, key: configMap,
			says: "metadata.name of the value differs from the key"},
		"undecodable": {change: func(t *testing.T, client *clientv3.Client) {
			kcptest.Put(t, client,
				configMap, []byte("{"))
		},
			code: finding.Undecodable, key: configMap},
		"no LogicalCluster": {change: replaced(otherLC, `"kind":"LogicalCluster"`, `"kind":"Logical"`),
			code: finding.Undecodable, key: otherLC, says: "no LogicalCluster"},
		"partial": {change: emptied(kcptest.LogicalClusterKey("system:shard")), code: codeShardPartial,
			says: "below /registry"},
		"partial and orphans": {change: func(t *testing.T, client *clientv3.Client) {
			emptied("/logicalclusters/")(t, client)
		}, code: codeShardPartial},
		"twice": {change: copied, code: codeShardTwice, says: "several storages say that they are shard root",
			also: []*finding.Code{kcp.CodeClusterTwice, codeDuplicateUID}},
	}
}

// TestKCP: a shard with one defect has only findings of its code and key.
func TestKCP(t *testing.T) {
	for name, tc := range kcpDefects() {
		t.Run(name, func(t *testing.T) {
			in := kcptest.Recorded(t, kcptest.Root)
			if tc.in == "single" {
				in = kcptest.Single(t)
			}
			s := opened(t, kcptest.Edit(t, in, func(client *clientv3.Client) { tc.change(t, client) }))
			always := finding.Names(codeBumpRevision, codeEtcdVersion, codeLayoutUnchecked)
			report := examined(t, s, Options{Ignore: append(always, finding.Names(tc.also...)...)})
			require.NotEmpty(t, report.Findings)
			for _, f := range report.Findings {
				require.Equal(t, tc.code, f.Code, "%s: %s", f.Key, f.Reason)
			}
			if tc.key != "" {
				require.Equal(t, tc.key, report.Findings[0].Key)
				require.Len(t, report.Findings, 1)
			}
			require.Contains(t, report.Findings[0].Reason, tc.says)
		})
	}
}

// TestKCPMetadata: a resource of the core group served by an APIExport or definition is custom.
func TestKCPMetadata(t *testing.T) {
	key := "/registry/pods/" + kcptest.ExampleDev + "/" + kcptest.Other + "/default/bad"
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, key,
			[]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad","namespace":"default","labels":{"a":1}}}`))
	})
	report := examined(t, opened(t, in), Options{})
	require.Len(t, report.Of(codeBadMetadata), 1)
	require.Equal(t, key, report.Of(codeBadMetadata)[0].Key)
	require.Empty(t, report.Of(finding.Undecodable))
}

// TestKCPEncrypted: an undecryptable custom resource is not reported as one without a definition.
func TestKCPEncrypted(t *testing.T) {
	widget := "/registry/example.dev/widgets/" + kcptest.ExampleDev + "/" + kcptest.Other + "/default/"
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, widget+"encrypted", []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef"))
		kcptest.Put(t, client, widget+"bad",
			[]byte(`{"apiVersion":"example.dev/v1","kind":"Widget","metadata":{"name":"bad","labels":{"a":1}}}`))
	})
	report := examined(t, opened(t, in), Options{Ignore: finding.Names(codeBumpRevision, codeEtcdVersion,
		codeLayoutUnchecked)})
	var found []*finding.Code
	for _, f := range report.Findings {
		found = append(found, f.Code)
	}
	require.Equal(t, []*finding.Code{codeBadMetadata, codeMixedEncryption, codeEncryptionKeys}, found)
	require.Contains(t, report.Of(codeMixedEncryption)[0].Code.Remedy, "except in kcp",
		"migrate storage-versions refuses kcp")
}

// counter counts the decryptions of each value.
type counter map[string]int

func (c counter) Decrypt(_ context.Context, _ schema.GroupResource, key, stored []byte) ([]byte, bool, error) {
	c[string(key)]++
	return stored, false, nil
}

// TestKCPReadOnce: checks of records and of logical clusters decrypt a value once.
func TestKCPReadOnce(t *testing.T) {
	in, decrypted := kcptest.Recorded(t, kcptest.Root), counter{}
	s := opened(t, in)
	_, err := Examine(context.Background(), inspect.NewReader(s, decrypted), Options{})
	require.NoError(t, err)
	checked := 0
	for key, times := range decrypted {
		if strings.HasPrefix(key, "/registry/core/") { // other values are read for their content, too
			require.Equal(t, 1, times, key)
			checked++
		}
	}
	require.Positive(t, checked)
}

// TestKCPLiveMigration: keys of another tenant moved by a live migration are reported.
func TestKCPLiveMigration(t *testing.T) {
	_, shard1 := kcptest.LiveMigrated(t)
	found := examined(t, opened(t, shard1), Options{}).Of(codeClusterOrphans)
	require.Len(t, found, 1)
	require.Equal(t, 4, found[0].Objects)
	require.Equal(t, "4 keys of "+kcptest.Other+", which does not live on this shard: 2 configmaps, 1 pods, 1 "+
		"serviceaccounts", found[0].Reason)
}
