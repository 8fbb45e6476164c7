package move_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	itsEvent    = "/registry/core/events/" + kcptest.Consumer + "/default/ev1"
	itsSettings = "/registry/core/configmaps/" + kcptest.Consumer + "/default/settings"
	trap        = "/registry/core/configmaps/" + kcptest.Other + "/" + kcptest.Consumer + "/trap"
	another     = "/registry/core/configmaps/" + kcptest.Consumer1 + "/default/settings"
)

// spoiled is a way to spoil a move of Consumer from root to shard-1, and what is to be found.
type spoiled struct {
	name  string
	spoil func(t *testing.T, m *moveFiles)
	more  func(*move.Move)
	codes []string // all that are found
	key   string   // of the first finding; "" for any
}

// on is a spoil that writes to one of the files.
func on(file func(m *moveFiles) *string, change func(t *testing.T, client *clientv3.Client)) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) {
		at := file(m)
		*at = kcptest.Edit(t, *at, func(client *clientv3.Client) { change(t, client) })
	}
}

func originOut(m *moveFiles) *string      { return &m.originOut }
func destinationOut(m *moveFiles) *string { return &m.destinationOut }

// anew has what follows the import made again, of another destination.
func anew(change func(t *testing.T, client *clientv3.Client)) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) {
		other := kcptest.Edit(t, m.destination, func(client *clientv3.Client) { change(t, client) })
		m.destinationOut = importInto(t, m.archive, other, move.Import{}, transform.Options{}).written().out
	}
}

func drop(key string) func(*testing.T, *clientv3.Client) {
	return func(t *testing.T, client *clientv3.Client) { kcptest.Delete(t, client, key) }
}

func put(key, value string) func(*testing.T, *clientv3.Client) {
	return func(t *testing.T, client *clientv3.Client) { kcptest.Put(t, client, key, []byte(value)) }
}

// flip changes a byte of a value.
func flip(key string) func(*testing.T, *clientv3.Client) {
	return func(t *testing.T, client *clientv3.Client) {
		value := bytes.Clone(kcptest.Get(t, client, key))
		value[len(value)-3] ^= 1
		kcptest.Put(t, client, key, value)
	}
}

// swap changes a text of a value.
func swap(key, from, to string) func(*testing.T, *clientv3.Client) {
	return func(t *testing.T, client *clientv3.Client) {
		value := kcptest.Get(t, client, key)
		require.Contains(t, string(value), from)
		kcptest.Put(t, client, key, bytes.ReplaceAll(value, []byte(from), []byte(to)))
	}
}

// leased attaches a key to a new lease; no TTL detaches it.
func leased(key string, ttl int64) func(*testing.T, *clientv3.Client) {
	return func(t *testing.T, client *clientv3.Client) {
		value := kcptest.Get(t, client, key)
		if ttl == 0 {
			kcptest.Put(t, client, key, value)
			return
		}
		lease, err := client.Grant(context.Background(), ttl)
		require.NoError(t, err)
		kcptest.Put(t, client, key, value, clientv3.WithLease(lease.ID))
	}
}

// itsDefinition is the key of a bound definition that Consumer needs.
func itsDefinition(t *testing.T, m *moveFiles) string {
	t.Helper()
	for _, d := range manifestOf(t, m.archive).Definitions {
		if d.Resource == "widgets.example.dev" {
			return "/registry" + d.Key
		}
	}
	require.Fail(t, "no definition of widgets")
	return ""
}

func manifestOf(t testing.TB, path string) *archive.Manifest {
	t.Helper()
	m, err := archive.Open(context.Background(), openFile(t, path))
	require.NoError(t, err)
	return m
}

func definitionWith(from, to string) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) {
		key := itsDefinition(t, m)
		on(destinationOut, func(t *testing.T, client *clientv3.Client) {
			if from == "" {
				kcptest.Delete(t, client, key)
				return
			}
			swap(key, from, to)(t, client)
		})(t, m)
	}
}

// damage changes a byte in the middle of a value of the file, and nothing that would tell.
func damage(file func(m *moveFiles) *string, value string) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) {
		at := file(m)
		data, err := os.ReadFile(*at)
		require.NoError(t, err)
		i := bytes.LastIndex(data, []byte(value))
		require.Positive(t, i)
		data[i+1] ^= 1
		*at = filepath.Join(t.TempDir(), "damaged.db")
		require.NoError(t, os.WriteFile(*at, data, 0o600))
	}
}

func spoiledMoves() []spoiled {
	return append(spoiledArrivals(), spoiledRest()...)
}

// spoiledArrivals have something wrong with the records of the logical cluster.
func spoiledArrivals() []spoiled {
	lc := kcptest.LogicalClusterKey(kcptest.Consumer)
	return []spoiled{
		{name: "record lost", spoil: on(destinationOut, drop(itsSettings)), codes: []string{"record-lost"}, key: itsSettings},
		{name: "LogicalCluster lost", spoil: on(destinationOut, drop(lc)), codes: []string{"record-lost"}, key: lc},
		{name: "byte changed", spoil: on(destinationOut, flip(itsSettings)), codes: []string{"record-changed"}, key: itsSettings},
		{name: "LogicalCluster changed", spoil: on(destinationOut, swap(lc, `"Ready"`, `"ready"`)), codes: []string{"record-changed"}, key: lc},
		{name: "another shard named", spoil: on(destinationOut, swap(lc, `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-2"`)), codes: []string{"shard-misnamed"}, key: lc},
		{name: "still migrating", spoil: on(destinationOut, swap(lc, `"annotations":{`, `"annotations":{"internal.kcp.io/migrating":"root:m",`)), codes: []string{"still-migrating"}, key: lc},
		{name: "lease shorter", spoil: on(destinationOut, leased(itsEvent, 60)), codes: []string{"lease-differs"}, key: itsEvent},
		{name: "lease lost", spoil: on(destinationOut, leased(itsEvent, 0)), codes: []string{"lease-differs"}, key: itsEvent},
		{name: "lease gained", spoil: on(destinationOut, leased(itsSettings, 60)), codes: []string{"lease-differs"}, key: itsSettings},
		{name: "key added", spoil: on(destinationOut, put(itsSettings+"2", "x")), codes: []string{"record-added"}, key: itsSettings + "2"},
		{name: "definition forgotten", spoil: definitionWith("", ""), codes: []string{"definition-lost", "destination-touched"}},
		{name: "storedVersions trimmed", spoil: definitionWith(`"storedVersions":["v1"]`, `"storedVersions":["v2"]`), codes: []string{"destination-touched", "stored-versions"}},
		{name: "another schema", spoil: definitionWith(`"scope":"Namespaced"`, `"scope":"Cluster"`), codes: []string{"definition-changed", "destination-touched"}},
		{name: "identity that nobody knows", spoil: func(t *testing.T, m *moveFiles) {
			m.destination = purgeOf(t, kcptest.Consumer1, m.destination)
			m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{Allow: []string{"unknown-identity"}}).out
		}, codes: []string{"identity-unknown"}},
		{name: "purge forgotten", spoil: func(t *testing.T, m *moveFiles) { m.originOut = m.origin }, codes: []string{"lives-twice", "same-file", "still-at-origin"}},
		{name: "import forgotten", spoil: func(t *testing.T, m *moveFiles) { m.destinationOut = m.destination }, codes: []string{"record-lost", "same-file"}},
		{name: "one record left", spoil: on(originOut, put(itsSettings, "x")), codes: []string{"still-at-origin"}, key: itsSettings},
		{name: "stale copy", spoil: func(t *testing.T, m *moveFiles) { m.caches = []string{kcptest.Recorded(t, kcptest.Cache)} }, codes: []string{"stale-copy"}},
		{name: "stale copy in the origin's file", spoil: func(t *testing.T, m *moveFiles) {
			m.origin = kcptest.Single(t)
			m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Consumer})
			m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
			copied := "/cache/rbac.authorization.k8s.io/clusterrolebindings/customresources/root/" + kcptest.Consumer + "/workspace-admin"
			m.originOut = kcptest.Edit(t, purgeOf(t, kcptest.Consumer, m.origin), func(client *clientv3.Client) { put(copied, "x")(t, client) })
		}, codes: []string{"stale-copy"}},
		{name: "the destination twice", spoil: func(t *testing.T, m *moveFiles) { m.originOut = m.destinationOut }, codes: []string{"lives-twice", "origin-touched", "same-file", "still-at-origin"}},
		{name: "two files of one shard", spoil: func(t *testing.T, m *moveFiles) {
			m.destination = m.originOut
			m.destinationOut = importInto(t, m.archive, m.originOut, move.Import{}, transform.Options{}).written().out
		}, codes: []string{"lives-twice"}},
		{name: "archive damaged", spoil: damage(func(m *moveFiles) *string { return &m.archive }, "team:viewer"), codes: []string{"archive-damaged"}},
		{name: "origin damaged", spoil: damage(originOut, "team:viewer"), codes: []string{"damaged"}},
		{name: "destination damaged", spoil: damage(destinationOut, "team:viewer"), codes: []string{"damaged"}},
	}
}

// spoiledRest have something wrong with the records of others.
func spoiledRest() []spoiled {
	noOrigin := func(m *move.Move) { m.Origin = nil }
	noDestination := func(m *move.Move) { m.Destination = nil }
	workspace := kcptest.WorkspaceKey("consumer")
	return []spoiled{
		{name: "trap sprung", spoil: on(originOut, drop(trap)), codes: []string{"origin-touched"}, key: trap},
		{name: "trap sprung, no origin", spoil: on(originOut, drop(trap)), more: noOrigin, codes: []string{"origin-touched"}, key: trap},
		{name: "another's changed on the origin", spoil: on(originOut, flip(trap)), codes: []string{"origin-touched"}, key: trap},
		{name: "another's changed, no origin", spoil: on(originOut, flip(trap)), more: noOrigin, codes: []string{"origin-touched"}, key: trap},
		{name: "another's written as it was", spoil: on(originOut, swap(trap, "trap", "trap")), codes: []string{"origin-touched"}, key: trap},
		{name: "another's added on the origin", spoil: on(originOut, put(trap+"2", "x")), codes: []string{"origin-touched"}, key: trap + "2"},
		{name: "added, no origin", spoil: on(originOut, put(trap+"2", "x")), more: noOrigin, codes: []string{"origin-touched"}, key: trap + "2"},
		{name: "Workspace on the origin changed", spoil: on(originOut, swap(workspace, `"1pfxsevk"`, `"2e1tfbst"`)), codes: []string{"origin-touched"}, key: workspace},
		{name: "key of no cluster added", spoil: on(originOut, put("/elsewhere", "x")), codes: []string{"origin-touched"}, key: "/elsewhere"},
		{name: "another's deleted on the destination", spoil: on(destinationOut, drop(another)), codes: []string{"destination-touched"}, key: another},
		{name: "deleted, no destination", spoil: on(destinationOut, drop(another)), more: noDestination, codes: []string{"destination-touched"}, key: another},
		{name: "another's changed on the destination", spoil: on(destinationOut, flip(another)), codes: []string{"destination-touched"}, key: another},
		{name: "changed, no destination", spoil: on(destinationOut, flip(another)), more: noDestination, codes: []string{"destination-touched"}, key: another},
		{name: "another's added on the destination", spoil: on(destinationOut, put(another+"2", "x")), codes: []string{"destination-touched"}, key: another + "2"},
		{name: "added, no destination", spoil: on(destinationOut, put(another+"2", "x")), more: noDestination, codes: []string{"destination-touched"}, key: another + "2"},
		{name: "orphans on the destination", spoil: on(destinationOut, put(trap, "x")), codes: []string{"destination-touched"}, key: trap},
		{name: "another's deleted before the import", spoil: anew(drop(another)), codes: []string{"destination-touched"}, key: another},
		{name: "another's changed before the import", spoil: anew(flip(another)), codes: []string{"destination-touched"}, key: another},
		{name: "another's added before the import", spoil: anew(put(another+"2", "x")), codes: []string{"destination-touched"}, key: another + "2"},
		{name: "archive of another origin", spoil: func(t *testing.T, m *moveFiles) {
			m.archive = extractOf(t, kcptest.Edit(t, m.origin, func(client *clientv3.Client) { flip(trap)(t, client) }), extraction{Name: kcptest.Consumer})
		}, codes: []string{"other-origin"}},
		{name: "archive of an origin that went on", spoil: func(t *testing.T, m *moveFiles) {
			later := kcptest.Edit(t, m.origin, func(client *clientv3.Client) { flip(trap)(t, client) })
			m.originOut = purgeOf(t, kcptest.Consumer, later)
		}, more: noOrigin, codes: []string{"origin-touched"}, key: trap},
		{name: "another origin at hand", spoil: on(func(m *moveFiles) *string { return &m.origin }, flip(trap)), codes: []string{"other-origin"}},
	}
}

// TestSpoiled: each way to spoil a move is found, and named by its code and its key; what else is
// asked is answered with no.
func TestSpoiled(t *testing.T) {
	sound := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	requireSound(t, sound.verdict(t))
	for _, s := range spoiledMoves() {
		t.Run(s.name, func(t *testing.T) {
			m := sound
			s.spoil(t, &m)
			v := m.verdict(t, func(m *move.Move) {
				if s.more != nil {
					s.more(m)
				}
			})
			require.Equal(t, s.codes, codesOf(v), "%+v", v.Findings)
			require.False(t, v.Sound())
			if s.key != "" {
				require.Equal(t, s.key, v.Findings[0].Key)
			}
			requireAnswers(t, v)
			ignored := m.verdict(t, func(m *move.Move) {
				m.Ignore = s.codes
				if s.more != nil {
					s.more(m)
				}
			})
			if len(s.codes) == 1 && finding.Named(move.Ignorable(), s.codes[0]) == nil { // what ends checking leaves the rest unknown, whatever is ignored
				require.Equal(t, v.Findings, ignored.Findings)
				require.False(t, ignored.Sound())
				return
			}
			require.Empty(t, ignored.Findings)
		})
	}
}

func codesOf(v *move.Verdict) (found []string) {
	for _, f := range v.Findings {
		found = append(found, f.Code.Name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// requireAnswers requires that the answers are what the findings say.
func requireAnswers(t testing.TB, v *move.Verdict) {
	t.Helper()
	for _, a := range v.Answers {
		n := 0
		for _, f := range v.Findings {
			if f.Question == a.Question {
				n++
			}
		}
		require.Equal(t, n, a.Findings)
		if n > 0 {
			require.Equal(t, "yes", a.Answer)
		}
	}
}
