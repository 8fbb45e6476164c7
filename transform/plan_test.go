package transform

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// planModel is a plan as a list.
type planModel struct {
	order []string
	now   map[string]snapshot.Change
}

func (m *planModel) put(c snapshot.Change) {
	if _, planned := m.now[string(c.Key)]; !planned {
		m.order = append(m.order, string(c.Key))
	}
	m.now[string(c.Key)] = c
}

func (m *planModel) drop(key string) {
	m.order = slices.DeleteFunc(m.order, func(k string) bool { return k == key })
	delete(m.now, key)
}

// TestPlanIsAList checks that a plan, mostly in the scratch file, behaves like a list.
func TestPlanIsAList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p, m := newPlan(t.TempDir()), planModel{now: map[string]snapshot.Change{}}
	defer func() { require.NoError(t, p.close()) }()
	for i := range 6 * chunkSize {
		key := fmt.Sprintf("/%c/%d", 'a'+rune(i/chunkSize), r.IntN(4*chunkSize))
		c := snapshot.Change{Key: []byte(key), Delete: r.IntN(4) == 0, Lease: r.Int64N(3), Prior: r.Int64N(2)}
		if !c.Delete {
			c.Value = bytes.Repeat([]byte{byte(i)}, 1+r.IntN(4<<10))
		}
		if r.IntN(8) == 0 {
			m.drop(key)
			require.NoError(t, p.drop([]byte(key)))
			continue
		}
		m.put(c)
		require.NoError(t, p.put(c.Key, c.Value, staged{delete: c.Delete, lease: c.Lease, prior: c.Prior}))
	}
	require.NotNil(t, p.file)
	require.Equal(t, len(m.order), p.planned)
	at := 0
	for c, err := range p.changes() {
		require.NoError(t, err)
		require.Equal(t, m.now[m.order[at]], c)
		st, err := p.get(c.Key)
		require.NoError(t, err)
		_, value, err := p.record(st)
		require.NoError(t, err)
		require.Equal(t, c.Value, value)
		at++
	}
	require.Equal(t, len(m.order), at)
	for _, prefix := range []string{"", "/", "/c/", "/c/12", "/x", m.order[0]} {
		var want, got []string
		for _, key := range m.order {
			if c := m.now[key]; c.Prior == 0 && !c.Delete && strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		for st, err := range p.creating([]byte(prefix)) {
			require.NoError(t, err)
			key, err := p.key(st)
			require.NoError(t, err)
			got = append(got, string(key))
		}
		require.Equal(t, want, got, prefix)
	}
	st, err := p.get([]byte("/absent"))
	require.True(t, st == nil && err == nil)
}
