package doctor

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

func TestQuota(t *testing.T) {
	s := written(t, base(t), healthy()...)
	size := int64(s.Space().Pages) * int64(s.Space().PageSize)
	for quota, want := range map[int64]*finding.Code{size: codeOverQuota, size - 1: codeOverQuota,
		size + 1: codeNearQuota, size * 5 / 4: codeNearQuota, size*5/4 + 5: nil, 0: nil} {
		report := examined(t, s, Options{Quota: quota})
		for _, code := range []*finding.Code{codeOverQuota, codeNearQuota} {
			require.Equal(t, code == want, len(report.Of(code)) == 1, "%s at %d of %d", code, quota, size)
		}
	}
}

func TestVersions(t *testing.T) {
	s := written(t, base(t), healthy()...)
	st, err := s.Status(context.Background())
	require.NoError(t, err)
	require.Equal(t, "3.7.0", st.ClusterVersion)
	for etcd, want := range map[string]*finding.Code{"": codeEtcdVersion, "3.6.16": codeEtcdTooOld,
		"v3.5.0": codeEtcdOlder, "3.7.0": nil, "3.10.1": nil, "4.0": nil} {
		report := examined(t, s, Options{Etcd: etcd})
		for _, code := range []*finding.Code{codeEtcdVersion, codeEtcdOlder, codeEtcdTooOld} {
			require.Equal(t, code == want, len(report.Of(code)) == 1, "%s for %q", code, etcd)
		}
	}
}

// TestNoLiveKey: a store with only deleted keys, or a new one, restores to an empty cluster.
func TestNoLiveKey(t *testing.T) {
	gone := opened(t, etcdtest.Unpack(t, filepath.Join("..", "..", "testdata", "reports", "c2-all-keys-deleted.db.gz")))
	for s, want := range map[*snapshot.Snapshot]int{gone: 1, opened(t, etcdtest.Build(t, "")): 1,
		written(t, base(t), healthy()...): 0} {
		require.Len(t, examined(t, s, Options{}).Of(codeNoLiveKey), want)
	}
}

// TestAlarms: an alarm of a real etcd is reported.
func TestAlarms(t *testing.T) {
	for alarm, want := range map[pb.AlarmType]*finding.Code{pb.AlarmType_NOSPACE: codeAlarmNoSpace,
		pb.AlarmType_CORRUPT: codeAlarmCorrupt} {
		server := etcdtest.Start(t, t.TempDir())
		before, after := filepath.Join(t.TempDir(), "before.db"), filepath.Join(t.TempDir(), "after.db")
		etcdtest.Save(t, server, before)
		members, err := server.Client.MemberList(context.Background())
		require.NoError(t, err)
		_, err = pb.NewMaintenanceClient(server.Client.ActiveConnection()).Alarm(context.Background(), &pb.AlarmRequest{
			Action: pb.AlarmRequest_ACTIVATE, MemberID: members.Members[0].ID, Alarm: alarm,
		})
		require.NoError(t, err)
		etcdtest.Save(t, server, after)
		require.Empty(t, examined(t, opened(t, before), Options{}).Of(want))
		require.Len(t, examined(t, opened(t, after), Options{}).Of(want), 1)
	}
}

// TestDamaged: a damaged file has no other findings; a file without a digest is checked.
func TestDamaged(t *testing.T) {
	whole, err := os.ReadFile(etcdtest.Build(t, "put /registry/configmaps/a/b nothing"))
	require.NoError(t, err)
	damaged := slices.Clone(whole)
	damaged[len(damaged)-1] ^= 0xff
	path := filepath.Join(t.TempDir(), "file.db")
	for name, tc := range map[string]struct {
		bytes []byte
		want  []*finding.Code
	}{
		"whole":   {whole, []*finding.Code{finding.Undecodable, codeBumpRevision, codeEtcdVersion}},
		"damaged": {damaged, []*finding.Code{CodeDamaged}},
		"raw": {whole[:len(whole)-32], []*finding.Code{finding.Undecodable, codeNoDigest, codeBumpRevision,
			codeEtcdVersion}},
	} {
		require.NoError(t, os.WriteFile(path, tc.bytes, 0o600))
		s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
		require.NoError(t, err)
		var got []*finding.Code
		for _, f := range examined(t, s, Options{}).Findings {
			got = append(got, f.Code)
		}
		require.Equal(t, tc.want, got, name)
		require.NoError(t, s.Close())
	}
	report := Damaged(snapshot.ErrTruncated, Options{})
	require.True(t, report.AtLeast(finding.Error))
	require.Len(t, report.Of(CodeDamaged), 1)
	require.Empty(t, Damaged(snapshot.ErrTruncated, Options{Ignore: finding.Names(CodeDamaged)}).Findings)
}

// TestLeases: keys with a missing lease never expire; those of API servers have another finding.
func TestLeases(t *testing.T) {
	on := opened(t, etcdtest.Build(t, "grant 77 60\nput /registry/masterleases/10.0.0.1 1 lease=77\nput "+
		"/registry/masterleases/10.0.0.2 1 lease=77\n"))
	address := func(ip string) record { return object("masterleases/"+ip, "v1", "Endpoints", "") }
	path := filepath.Join(t.TempDir(), "leases.db")
	_, err := snapshot.Write(context.Background(), path, on, func(yield func(snapshot.Change, error) bool) {
		for _, r := range append(healthy(), object("services/endpoints/default/kubernetes", "v1", "Endpoints",
			`},"subsets":[{"addresses":[{"ip":"10.0.0.1"}]}]`)) {
			if !yield(snapshot.Change{Key: []byte("/registry/" + r.key), Value: []byte(balanced(r.value))}, nil) {
				return
			}
		}
		for _, c := range []struct {
			record
			lease int64
		}{
			{address("10.0.0.1"), 77}, {address("10.0.0.2"), 77}, {address("10.0.0.3"), 99},
			{object("events/team/a", "v1", "Event", ""), 99}, {object("events/team/b", "v1", "Event", ""), 98},
			{object("events/team/c", "v1", "Event", ""), 77},
		} {
			prior := int64(0)
			if rec, _ := on.Get(context.Background(), []byte("/registry/"+c.key)); rec != nil {
				prior = rec.ModRevision
			}
			if !yield(snapshot.Change{Key: []byte("/registry/" + c.key), Value: []byte(balanced(c.value)),
				Lease: c.lease, Prior: prior}, nil) {
				return
			}
		}
	}, snapshot.WriteConfig{})
	require.NoError(t, err)
	report := examined(t, opened(t, path), Options{})
	gone := report.Of(codeLeaseGone)
	require.Len(t, gone, 1)
	require.Equal(t, 2, gone[0].Objects)
	require.Equal(t, "/registry/events/team/a", gone[0].Key)
	require.Len(t, report.Of(codeMasterLease), 1)
	require.Equal(t, "/registry/masterleases/10.0.0.3", report.Of(codeMasterLease)[0].Key)
	require.Contains(t, report.Of(codeMasterLease)[0].Reason, "its lease is gone")
	require.Len(t, report.Of(codeMasterUnlisted), 1)
	require.Equal(t, "/registry/masterleases/10.0.0.2", report.Of(codeMasterUnlisted)[0].Key)
}

// TestEncrypted: an undecryptable value is an error only with an encryption configuration.
func TestEncrypted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(path, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: "+
		"EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n"+
		"  - aesgcm: {keys: [{name: k1, secret: YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=}]}\n"), 0o600))
	ctx := context.Background()
	keys, err := encryption.Load(ctx, path)
	require.NoError(t, err)
	defer keys.Close()
	s := written(t, base(t), append(healthy(), record{"secrets/team/a", "k8s:enc:aescbc:v1:k9:0123456789"})...)
	report, err := Examine(ctx, inspect.NewReader(s, keys), Options{Keys: true})
	require.NoError(t, err)
	require.Len(t, report.Of(finding.Encrypted), 1)
	require.Equal(t, "/registry/secrets/team/a", report.Of(finding.Encrypted)[0].Key)
	require.Empty(t, report.Of(codeEncryptionKeys))
	require.Empty(t, examined(t, s, Options{}).Of(finding.Encrypted))
}

// TestMany: findings beyond finding.MaxListed are counted.
func TestMany(t *testing.T) {
	records := healthy()
	for i := range finding.MaxListed + 5 {
		records = append(records, record{fmt.Sprintf("configmaps/team/%04d", i), "nothing"})
	}
	report := examined(t, written(t, base(t), records...), Options{})
	require.Len(t, report.Of(finding.Undecodable), finding.MaxListed)
	require.Equal(t, finding.MaxListed+5, report.Counts[finding.Undecodable])
	require.Equal(t, finding.MaxListed+5, report.Count(finding.Error))
}

// TestLayouts: relations between objects of kcp are reported as unchecked.
func TestLayouts(t *testing.T) {
	const crd = "apiextensions.k8s.io/customresourcedefinitions/"
	s := written(t, base(t),
		object(crd+"system:system-crds/workspaces.tenancy.kcp.io", "apiextensions.k8s.io/v1",
			"CustomResourceDefinition", ""),
		object("core.kcp.io/logicalclusters/customresources/root/cluster", "core.kcp.io/v1alpha1",
			"LogicalCluster", ""))
	found := examined(t, s, Options{}).Of(codeLayoutUnchecked)
	require.Len(t, found, 1)
	require.Equal(t, 2, found[0].Objects)
	require.True(t, strings.HasPrefix(found[0].Reason, "/registry (kcp-shard): 2 objects"), found[0].Reason)
	require.Empty(t, examined(t, written(t, base(t), healthy()...), Options{}).Of(codeLayoutUnchecked))
}

// TestGarbageCollector: a real garbage collector deleted exactly the objects with owner-gone after
// a restore of the same snapshot.
func TestGarbageCollector(t *testing.T) {
	zipped, err := os.Open(filepath.Join("..", "..", "testdata", "calico", "after-cleanup.db.gz"))
	require.NoError(t, err)
	defer zipped.Close()
	unzipped, err := gzip.NewReader(zipped)
	require.NoError(t, err)
	data, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "after-cleanup.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))

	record, err := os.ReadFile(filepath.Join("..", "..", "testdata", "calico", "gc-after-real-controller.txt"))
	require.NoError(t, err)
	lines := map[byte][]string{}
	for line := range strings.Lines(string(record)) { // < KIND NAMESPACE NAME live OWNERS
		if words := strings.Fields(line); words[0] == "<" || words[0] == ">" {
			lines[line[0]] = append(lines[line[0]], words[2]+"/"+words[3])
		}
	}
	deleted := slices.DeleteFunc(lines['<'], func(name string) bool { return slices.Contains(lines['>'], name) })
	require.Len(t, deleted, 4)

	var gone []string
	for _, f := range examined(t, opened(t, path), Options{}).Of(codeOwnerGone) {
		parts := strings.Split(f.Key, "/")
		gone = append(gone, strings.Join(parts[len(parts)-2:], "/"))
	}
	require.ElementsMatch(t, deleted, gone)
}
