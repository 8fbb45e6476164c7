package kcp_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/sections"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// impostor is an import that has its proof look at other files than what was written.
type impostor struct {
	*carry.Import
	t     *testing.T
	files map[string]string // by what is wrong with them
}

func (i *impostor) Plan(ctx context.Context, v *transform.View) error {
	within := false
	v.Make(transform.Output{Check: func(ctx context.Context, _ *inspect.Reader) error {
		if within {
			return nil
		}
		within = true
		for name, path := range i.files {
			i.t.Run(name, func(t *testing.T) {
				s, err := snapshot.Open(ctx, path, snapshot.Config{})
				require.NoError(t, err)
				defer s.Close()
				require.ErrorIs(t, v.CheckOutput(ctx, inspect.NewReader(s, nil)), snapshot.ErrVerify)
			})
		}
		require.Nil(i.t, sections.Of[survey.Receipts](v.Report()).Rest, "what was not proved is not told")
		return nil
	}})
	return i.Import.Plan(ctx, v)
}

// TestImportProof: each way in which an output may be wrong is found, before it gets its name.
func TestImportProof(t *testing.T) {
	ctx := context.Background()
	from, shard := purgedRoot(t)
	o, run := carry.Import{FixOwner: true, AsShard: "shard-1"}, transform.Options{}
	out := importInto(t, from, shard, o, run).written().out
	event := "/registry/core/events/" + kcptest.Consumer + "/default/ev1"
	touch := func(key string) func(client *clientv3.Client) {
		return func(client *clientv3.Client) { kcptest.Put(t, client, key, append(kcptest.Get(t, client, key), ' ')) }
	}
	files := map[string]string{"nothing came in": shard}
	for name, change := range map[string]func(client *clientv3.Client){
		"a record is gone":        func(client *clientv3.Client) { kcptest.Delete(t, client, secretOfConsumer) },
		"a record is another":     touch(secretOfConsumer),
		"the lease is gone":       func(client *clientv3.Client) { kcptest.Put(t, client, event, kcptest.Get(t, client, event)) },
		"another TTL":             shorter(t, event),
		"the Workspace is not":    touch(kcptest.WorkspaceKey("consumer")),
		"another tenant's record": touch("/registry/core/configmaps/" + kcptest.Other + "/default/settings"),
		"a tenant's record less": func(client *clientv3.Client) {
			kcptest.Delete(t, client, "/registry/core/configmaps/"+kcptest.Other+"/default/settings")
		},
		"a record more": func(client *clientv3.Client) { kcptest.Put(t, client, "/registry/core/configmaps/x/y/z", []byte("{}")) },
	} {
		files[name] = kcptest.Edit(t, out, change)
	}
	file, err := snapshot.Open(ctx, from, snapshot.Config{})
	require.NoError(t, err)
	defer file.Close()
	o.Archive = file
	o.Manifest, err = archive.Open(ctx, file)
	require.NoError(t, err)
	run.In, run.Out = shard, filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(ctx, run, &impostor{&o, t, files})
	require.NoError(t, err)
	require.NotNil(t, reportOf(r).Rest)
}

// shorter gives the record under a key a lease with another TTL.
func shorter(t testing.TB, key string) func(client *clientv3.Client) {
	return func(client *clientv3.Client) {
		lease, err := client.Grant(context.Background(), 77)
		require.NoError(t, err)
		kcptest.Put(t, client, key, kcptest.Get(t, client, key), clientv3.WithLease(lease.ID))
	}
}
