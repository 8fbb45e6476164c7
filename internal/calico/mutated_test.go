package calico

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
)

// mutate changes one place of a decoded object: a field is removed or gets an invalid value.
func mutate(r *rand.Rand, value any) any {
	odd := []any{nil, "", "odd", 7, -1.5, true, []any{}, []any{nil}, map[string]any{}, map[string]any{"odd": "odd"},
		strings.Repeat("x", 300)}
	switch v := value.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || r.IntN(12) == 0 {
			break
		}
		name := names[r.IntN(len(names))]
		if r.IntN(6) == 0 {
			delete(v, name)
		} else {
			v[name] = mutate(r, v[name])
		}
		return v
	case []any:
		if len(v) == 0 || r.IntN(12) == 0 {
			break
		}
		v[r.IntN(len(v))] = mutate(r, v[r.IntN(len(v))])
		return v
	case string:
		if strings.HasPrefix(v, "{") { // the metadata annotation
			var inner any
			if json.Unmarshal([]byte(v), &inner) == nil {
				out, _ := json.Marshal(mutate(r, inner))
				return string(out)
			}
		}
	}
	return odd[r.IntN(len(odd))]
}

// spoiled returns the recorded cluster with random changes in some Calico records of both groups.
func spoiled(t *testing.T, from string, seed uint64) string {
	in := &input{t: t, from: recorded(t, from)}
	r := rand.New(rand.NewPCG(seed, 1))
	before := contents(t, in.from)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		ours := strings.HasPrefix(key, recordsV1) || strings.HasPrefix(key, recordsV3)
		if !ours || r.IntN(3) > 0 {
			continue
		}
		var obj any
		require.NoError(t, json.Unmarshal([]byte(before[key]), &obj))
		for range 1 + r.IntN(3) {
			obj = mutate(r, obj)
		}
		value, err := json.Marshal(obj)
		require.NoError(t, err)
		in.put(key, value)
	}
	return in.write()
}

// TestMutated: every run ends, for any records. Each v1 record becomes a v3 record or has a
// finding; if one is skipped, all v1 records stay.
func TestMutated(t *testing.T) {
	for seed := range uint64(3) {
		for _, from := range []string{"before.db", "after.db"} {
			t.Run(fmt.Sprint(from, seed), func(t *testing.T) {
				t.Parallel()
				path := spoiled(t, from, seed)
				got := planOn(t, path, New(Options{}), finding.Allowable(codes())...)
				require.NoError(t, got.err)
				nothingSilent(t, got)
				again := planOn(t, path, New(Options{Conflicts: TakeV1, NewUIDs: true}), finding.Allowable(codes())...)
				require.NoError(t, again.err)
				nothingSilent(t, again)
			})
		}
	}
}

func nothingSilent(t *testing.T, got result) {
	t.Helper()
	named, left := map[string]bool{}, 0
	for _, p := range got.Problems {
		named[p.Key] = true
		if p.Level == finding.Error && strings.HasPrefix(p.Key, recordsV1) {
			left++
		}
	}
	counted := 0
	for _, k := range got.Kinds {
		counted += k.Migrated + k.Unchanged + k.Skipped
	}
	records, stay := 0, 0
	for key, value := range got.in {
		if !strings.HasPrefix(key, recordsV1) {
			continue
		}
		records++
		if _, there := got.out[key]; there {
			stay++
		}
		meta, err := encoding.ReadMeta([]byte(value))
		if err != nil {
			require.True(t, named[key], key)
		}
		k, err := registry.Parse([]byte(key))
		require.NoError(t, err)
		kd, _ := kinds().ofV1(k.Resource.Resource)
		name := k.Name
		for _, u := range got.UIDs {
			if u.Stored == meta.UID {
				name = u.Name
			}
		}
		dir := strings.TrimSuffix(recordsV3+kd.Plural+"/"+k.Namespace, "/") + "/"
		_, migrated := got.out[dir+name]
		// equal to an unlisted record without a UID
		_, renamed := got.out[dir+strings.TrimPrefix(name, "default.")]
		require.True(t, migrated || renamed || named[key], "%s (uid %s): neither written nor named", key, meta.UID)
	}
	require.Equal(t, records, counted)
	if left > 0 {
		require.Equal(t, records, stay)
	} else {
		require.Zero(t, stay)
	}
}
