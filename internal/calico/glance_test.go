package calico

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/keys"
)

// TestGlance: if glance is sure, decoding the bytes gives the same values, also after random
// changes.
func TestGlance(t *testing.T) {
	stored, random := contents(t, recorded(t, "before.db")), rand.New(rand.NewPCG(1, 2))
	handles, sure, unsure := 0, 0, 0
	look := func(at keys.Key, key, value string) bool {
		if !requireGlance(t, at, key, value) {
			unsure++
			return false
		}
		sure++
		return true
	}
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		at, err := registry.Parse([]byte(key))
		if _, known := kinds().ofV1(at.Resource.Resource); !strings.HasPrefix(key, recordsV1) || err != nil || !known {
			continue
		}
		if told := look(at, key, stored[key]); at.Resource.Resource == "ipamhandles" {
			require.True(t, told, key)
			handles++
		}
		for range 500 {
			look(at, key, spoil(random, stored[key]))
			var obj any
			require.NoError(t, json.Unmarshal([]byte(stored[key]), &obj))
			value, err := json.Marshal(mutate(random, obj))
			require.NoError(t, err)
			look(at, key, string(value))
		}
	}
	require.Greater(t, min(sure, unsure), 2_000)
	require.Positive(t, handles)
}

// spoil changes, drops or doubles some bytes.
func spoil(random *rand.Rand, value string) string {
	from := random.IntN(len(value))
	to := min(len(value), from+1+random.IntN(12))
	put := []string{"", value[from:to] + value[from:to], "\"", "{}", "null", ",", "7", "1e999", "\\"}
	return value[:from] + put[random.IntN(len(put))] + value[to:]
}

// requireGlance compares a sure glance with readRecord.
func requireGlance(t *testing.T, at keys.Key, key, value string) bool {
	kd, _ := kinds().ofV1(at.Resource.Resource)
	s := &scanned{id: newIdentity(kd, at, []byte(key)), key: at, value: []byte(value)}
	uid, m, spec, sure := s.glance()
	if !sure {
		return false
	}
	r, err := readRecord(kd, at, s.value)
	require.NoError(t, err, value)
	require.Equal(t, r.uid, uid, value)
	deleted, _ := r.meta.deletion()
	require.Nil(t, deleted, value)
	name, notes, err := v3Name(kd, at.Name, m, spec)
	wantName, wantNotes, wantErr := v3Name(kd, at.Name, r.meta, r.spec)
	require.Equal(t, []any{wantName, wantNotes, wantErr}, []any{name, notes, err}, value)
	return true
}
