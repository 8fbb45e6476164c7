package calico

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestNothingLost: a v3 record keeps the spec, the status and both metadata (own and annotation) of
// its v1 record.
func TestNothingLost(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	v3Keys := map[string]string{}
	for _, u := range got.UIDs {
		v3Keys[u.Stored] = recordsV3 + ownerPath(t, u.Namespace, encoding.OwnerReference{Kind: u.Kind, Name: u.Name})
	}
	checked := 0
	for key, value := range got.in {
		if !strings.HasPrefix(key, recordsV1) {
			continue
		}
		before, _, err := encoding.DecodeObject([]byte(value))
		require.NoError(t, err)
		m, err := readMetadata(before)
		require.NoError(t, err)
		after, _, err := encoding.DecodeObject([]byte(got.out[v3Keys[string(m.outer.UID)]]))
		require.NoError(t, err, key)
		meta, err := metaOf(after)
		require.NoError(t, err)

		require.Subset(t, meta.Labels, m.inner.Labels, key)
		for name := range m.outer.Labels {
			require.Contains(t, meta.Labels, name, key)
		}
		require.Subset(t, meta.Annotations, m.inner.Annotations, key)
		require.Subset(t, meta.Finalizers, slices.Concat(m.inner.Finalizers, m.outer.Finalizers), key)
		require.GreaterOrEqual(t, len(meta.OwnerReferences),
			max(len(m.inner.OwnerReferences), len(m.outer.OwnerReferences)), key)
		created := m.inner.CreationTimestamp
		if created.IsZero() {
			created = m.outer.CreationTimestamp
		}
		require.True(t, created.Equal(&meta.CreationTimestamp), key)
		require.Equal(t, before["status"], after["status"], key)
		spec := objectAt(before, "spec")
		if after["kind"] == "BlockAffinity" {
			spec["deleted"] = spec["deleted"] == "true"
		}
		require.Subset(t, after["spec"], spec, key)
		checked++
	}
	require.Equal(t, 63, checked)
}

// TestValid: the written records need no pruning and no defaults, and are valid.
func TestValid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.db")
	_, err := transform.Run(context.Background(), transform.Options{In: recorded(t, "before.db"), Out: path},
		New(Options{}))
	require.NoError(t, err)
	checked := 0
	planOn(t, path, planFunc(func(ctx context.Context, v *transform.View) error {
		set, err := loadCRDs(storeOf(ctx, v), nil)
		require.NoError(t, err)
		for e, err := range v.Live(ctx, []byte(recordsV3)) {
			require.NoError(t, err)
			key, err := registry.Parse(e.Key)
			require.NoError(t, err)
			version, err := set.accept[key.Resource.Resource].Version("v3")
			require.NoError(t, err)
			obj, format, err := encoding.DecodeObject(e.Value)
			require.NoError(t, err)
			require.Empty(t, version.Prune(obj), "%s", e.Key)
			require.NoError(t, version.Default(obj))
			require.Empty(t, version.Validate(ctx, obj), "%s", e.Key)
			settled, err := encoding.EncodeObject(obj, format)
			require.NoError(t, err)
			require.Equal(t, string(e.Value), string(settled))
			checked++
		}
		return nil
	}))
	require.Equal(t, 63, checked)
}

// TestInOrder reads the new revisions of an output in the order of writing.
func TestInOrder(t *testing.T) {
	ctx := context.Background()
	in, out := recorded(t, "before.db"), filepath.Join(t.TempDir(), "out.db")
	_, err := transform.Run(ctx, transform.Options{In: in, Out: out}, New(Options{}))
	require.NoError(t, err)
	before, err := snapshot.Open(ctx, in, snapshot.Config{})
	require.NoError(t, err)
	defer before.Close()
	last, err := before.Revision(ctx)
	require.NoError(t, err)
	after, err := snapshot.Open(ctx, out, snapshot.Config{})
	require.NoError(t, err)
	defer after.Close()

	var ranks []int
	var names []string
	for rec, err := range after.Records(ctx) {
		require.NoError(t, err)
		if rec.Revision.Main <= last {
			continue
		}
		rank := rankOf(t, string(rec.Key), rec.Tombstone)
		if n := len(ranks); n > 0 && ranks[n-1] == rank && rank < 100 {
			require.Less(t, names[n-1], string(rec.Key), "keys of a kind in order")
		}
		ranks, names = append(ranks, rank), append(names, string(rec.Key))
	}
	require.Len(t, ranks, 63+1+87)
	require.True(t, slices.IsSorted(ranks), "%v", names)
}

// rankOf returns the position of a change: v3 records by kind, references, ClusterInformation, the
// aggregated APIService, v1 records, v1 CRDs, the APIService of v1.
func rankOf(t *testing.T, key string, deleted bool) int {
	k, err := registry.Parse([]byte(key))
	require.NoError(t, err)
	switch {
	case k.Resource.Group == groupV3 && k.Resource.Resource == "clusterinformations":
		return 101
	case k.Resource.Group == groupV3:
		return slices.IndexFunc(kinds(), func(kd *kind) bool { return kd.Plural == k.Resource.Resource })
	case !deleted:
		return 100
	case k.Name == "v3."+groupV3:
		return 102
	case k.Resource.Group == groupV1:
		return 103
	case k.Resource == keys.DefinitionType():
		return 104
	default:
		require.Equal(t, "v1."+groupV1, k.Name)
		return 105
	}
}

// TestBounded: memory per record does not depend on the record's size.
func TestBounded(t *testing.T) {
	const records, size = 400, 100_000
	in := newInput(t)
	for i := range records {
		r := v1{kind: "GlobalNetworkSet", name: fmt.Sprintf("big%04d", i),
			uid: fmt.Sprintf("aaaa%04d-0000-4000-8000-000000000000", i)}
		r.inner = `{"annotations":{"a":"` + strings.Repeat("x", size) + `"}}`
		in.record(r)
	}
	stop := errors.New("enough was seen")
	got := planOn(t, in.write(), planFunc(func(ctx context.Context, v *transform.View) error {
		crds, err := loadCRDs(storeOf(ctx, v), nil)
		require.NoError(t, err)
		m := newRun(storeOf(ctx, v), Options{}, crds, newChoices(nil))
		before := heap()
		require.NoError(t, m.scan())
		require.Less(t, heap()-before, int64(records*1000), "bytes kept between the passes, of %d records of %d bytes",
			records, size)
		require.Len(t, m.table.records, records+63)

		require.NoError(t, New(Options{}).Plan(ctx, v))
		require.Less(t, heap()-before, int64(records*size/2),
			"bytes kept in the end, CRDs and the first megabytes of the plan among them")
		runtime.KeepAlive(m)
		return stop
	}))
	require.ErrorIs(t, got.err, stop)
	require.Equal(t, records+2, got.count("GlobalNetworkSet").Migrated)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// FuzzConvertRecord: every stored value is converted or refused.
func FuzzConvertRecord(f *testing.F) {
	for i, k := range kinds() {
		f.Add(i, v1{kind: k.V1Kind, name: "n", inner: `{"name":"n","labels":{"a":"b"}}`,
			spec: `{"cidr":"10.0.0.0/26","deleted":"false","handleID":"N"}`}.json(f))
	}
	f.Fuzz(func(t *testing.T, i int, value []byte) {
		all := kinds()
		k := all[uint(i)%uint(len(all))]
		key := keys.Key{Resource: k.v1(), Name: "n"}
		if k.Namespaced {
			key.Namespace = "ns"
		}
		r, err := readRecord(k, key, value)
		if err == nil {
			_, _, err = v3Name(r.kind, key.Name, r.meta, r.spec)
		}
		if err == nil {
			meta := r.meta.seen()
			err = r.convert(&meta, "n", clientUID, nil)
		}
		if err == nil {
			_, err = encoding.EncodeObject(r.obj, r.format)
			require.NoError(t, err)
			return
		}
		refused := finding.Of(err)
		require.NotNil(t, refused, "%v", err)
		require.NotEmpty(t, refused.Code.Name)
	})
}
