package move_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// spoiled is a way to spoil a move of consumer from root to shard-1, and the expected findings.
type spoiled struct {
	name  string
	spoil func(t *testing.T, m *moveFiles)
	codes []string // of all findings
	key   string   // of the first finding; "" for any
}

func originOut(m *moveFiles) *string      { return &m.originOut }
func destinationOut(m *moveFiles) *string { return &m.destinationOut }

// on spoils one of the files with edits.
func on(file func(m *moveFiles) *string, edits ...edit) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) { *file(m) = edited(t, *file(m), edits...) }
}

// damage changes a byte in the middle of a value of the file, without a new digest.
func damage(file func(m *moveFiles) *string) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) {
		data, err := os.ReadFile(*file(m))
		require.NoError(t, err)
		i := bytes.LastIndex(data, []byte("team:viewer"))
		require.Positive(t, i)
		data[i+1] ^= 1
		*file(m) = filepath.Join(t.TempDir(), "damaged.db")
		require.NoError(t, os.WriteFile(*file(m), data, 0o600))
	}
}

// arriving imports the archive into another destination, which Move does not get.
func arriving(edits ...edit) func(*testing.T, *moveFiles) {
	return func(t *testing.T, m *moveFiles) {
		m.destinationOut = importInto(t, m.archive, edited(t, m.destination, edits...), move.Import{}).written().out
	}
}

// spoiledArrivals returns faults in the records of the logical cluster.
func spoiledArrivals() []spoiled {
	lc := home(consumer)
	here := func(name, code, key string, change edit) spoiled {
		return spoiled{name, on(destinationOut, change), []string{code}, key}
	}
	definition := func(name, code string, change edit) spoiled {
		return spoiled{name, on(destinationOut, change), []string{code, "destination-touched"}, ""}
	}
	return []spoiled{
		here("record lost", "record-lost", itsSettings, drop(itsSettings)),
		here("LogicalCluster lost", "record-lost", lc, drop(lc)),
		here("byte changed", "record-changed", itsSettings, flip(itsSettings)),
		here("LogicalCluster changed", "record-changed", lc, swap(lc, `"Ready"`, `"ready"`)),
		here("another shard named", "shard-misnamed", lc, swap(lc, onRoot, `"core.kcp.io/shard":"shard-2"`)),
		here("still migrating", "still-migrating", lc, migrating(consumer)),
		here("lease shorter", "lease-differs", itsEvent, leased(itsEvent, 60)),
		here("lease lost", "lease-differs", itsEvent, leased(itsEvent, 0)),
		here("lease gained", "lease-differs", itsSettings, leased(itsSettings, 60)),
		here("key added", "record-added", itsSettings+"2", put(itsSettings+"2", "x")),
		definition("definition forgotten", "definition-lost", drop(widgetsDefinition)),
		definition("another schema", "definition-changed",
			swap(widgetsDefinition, `"scope":"Namespaced"`, `"scope":"Cluster"`)),
		{"storedVersions trimmed", on(destinationOut, storedVersions(`"v2"`)),
			[]string{"destination-touched", "stored-versions"}, ""},
		{"unknown identity", func(t *testing.T, m *moveFiles) {
			m.destination = purgeOf(t, consumer1, m.destination)
			m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, allow("unknown-identity")).out
		}, []string{"identity-unknown"}, ""},
		{"one record left", on(originOut, put(itsSettings, "x")), []string{"still-at-origin"}, itsSettings},
		{"purge forgotten", func(_ *testing.T, m *moveFiles) { m.originOut = m.origin },
			[]string{"lives-twice", "same-file", "still-at-origin"}, ""},
		{"import forgotten", func(_ *testing.T, m *moveFiles) { m.destinationOut = m.destination },
			[]string{"record-lost", "same-file"}, ""},
		{"stale copy", func(t *testing.T, m *moveFiles) { m.caches = []string{recorded(t, kcptest.Cache)} },
			[]string{"stale-copy"}, ""},
		{"stale copy in the origin's file", func(t *testing.T, m *moveFiles) {
			*m = moveOf(t, consumer, kcptest.Single(t), m.destination)
			copied := "/cache/rbac.authorization.k8s.io/clusterrolebindings/customresources/root/" + consumer +
				"/workspace-admin"
			m.originOut = edited(t, m.originOut, put(copied, "x"))
		}, []string{"stale-copy"}, ""},
		{"the destination twice", func(_ *testing.T, m *moveFiles) { m.originOut = m.destinationOut },
			[]string{"lives-twice", "origin-touched", "same-file", "still-at-origin"}, ""},
		{"two files of one shard", func(t *testing.T, m *moveFiles) {
			m.destination = m.originOut
			m.destinationOut = importInto(t, m.archive, m.originOut, move.Import{}).written().out
		}, []string{"lives-twice"}, ""},
		{"archive damaged", damage(func(m *moveFiles) *string { return &m.archive }), []string{"archive-damaged"}, ""},
		{"origin damaged", damage(originOut), []string{"damaged"}, ""},
		{"destination damaged", damage(destinationOut), []string{"damaged"}, ""},
	}
}

// spoiledRest returns faults in other records. Each edit must be found without the inputs too, if
// written on top of the output.
func spoiledRest() (all []spoiled) {
	workspace, twoMore := kcptest.WorkspaceKey("consumer"), func(key string) edit { return put(key+"2", "x") }
	for name, c := range map[string]struct {
		file   func(m *moveFiles) *string
		code   string
		key    string
		change edit
	}{
		"trap sprung":                 {originOut, "origin-touched", trap, drop(trap)},
		"changed on the origin":       {originOut, "origin-touched", trap, flip(trap)},
		"written again on the origin": {originOut, "origin-touched", trap, swap(trap, "trap", "trap")},
		"added on the origin":         {originOut, "origin-touched", trap + "2", twoMore(trap)},
		"Workspace on the origin": {originOut, "origin-touched", workspace,
			swap(workspace, `"1pfxsevk"`, `"2e1tfbst"`)},
		"key of no cluster added":    {originOut, "origin-touched", "/elsewhere", put("/elsewhere", "x")},
		"deleted on the destination": {destinationOut, "destination-touched", another, drop(another)},
		"changed on the destination": {destinationOut, "destination-touched", another, flip(another)},
		"added on the destination":   {destinationOut, "destination-touched", another + "2", twoMore(another)},
		"orphans on the destination": {destinationOut, "destination-touched", trap, put(trap, "x")},
	} {
		all = append(all, spoiled{name, on(c.file, c.change), []string{c.code}, c.key},
			spoiled{name + ", no inputs", func(t *testing.T, m *moveFiles) {
				on(c.file, c.change)(t, m)
				*m = m.withoutInputs()
			}, []string{c.code}, c.key})
	}
	flipped := func(t *testing.T, m *moveFiles) string { return edited(t, m.origin, flip(trap)) }
	return append(all,
		spoiled{"deleted before the import", arriving(drop(another)), []string{"destination-touched"}, another},
		spoiled{"changed before the import", arriving(flip(another)), []string{"destination-touched"}, another},
		spoiled{"added before the import", arriving(twoMore(another)), []string{"destination-touched"}, another + "2"},
		spoiled{"archive of another origin", func(t *testing.T,
			m *moveFiles) {
			m.archive = archiveOf(t, flipped(t, m))
		}, []string{"other-origin"}, ""},
		spoiled{"archive of an origin that went on", func(t *testing.T, m *moveFiles) {
			m.originOut = purgeOf(t, consumer, flipped(t, m))
			m.origin = ""
		}, []string{"origin-touched"}, trap},
		spoiled{"another origin given", func(t *testing.T, m *moveFiles) { m.origin = flipped(t, m) },
			[]string{"other-origin"}, ""})
}

// TestSpoiled checks that each fault of a move is found, with its code and key and no other
// finding; the answer to every other question is no.
func TestSpoiled(t *testing.T) {
	sound := moveOf(t, consumer, root(t), shard1(t))
	sound.requireSound(t)
	for _, s := range append(spoiledArrivals(), spoiledRest()...) {
		t.Run(s.name, func(t *testing.T) {
			m := sound
			s.spoil(t, &m)
			v := m.requireFound(t, s.codes...)
			if s.key != "" {
				require.Equal(t, s.key, v.Findings[0].Key)
			}
			requireAnswers(t, v)
			ignored := m.verdict(t, func(m *move.Move) { m.Ignore = s.codes })
			if len(s.codes) == 1 && finding.Named(move.Ignorable(), s.codes[0]) == nil { // the code ends the check
				require.Equal(t, v.Findings, ignored.Findings)
				require.False(t, ignored.Sound())
				return
			}
			require.Empty(t, ignored.Findings)
		})
	}
}

// requireAnswers requires that the answers agree with the findings.
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
		require.True(t, n == 0 || a.Answer == "yes")
	}
}
