package archive

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// part returns the manifest of the records of c as a part of a snapshot.
func (c *content) part() *PartManifest {
	sum := NewDigest().Sum()
	tally := NewTally([]string{prefix}, c.leases)
	types := []TypeCount{{}}
	for _, rec := range c.sorted() {
		tally.Add(rec)
		types[0].Keys++
		types[0].Bytes += int64(len(rec.Key) + len(rec.Value))
	}
	return &PartManifest{
		APIVersion: APIVersion, Kind: KindPart, Format: Format,
		Origin:    PartOrigin{Prefixes: []string{prefix}, SHA256: sum.SHA256, Revision: 100, Rest: sum},
		Selection: Selection{Arguments: []string{}, Namespaces: []string{"default"}, Prefixes: []string{}},
		Types:     types,
		Needs:     []Needed{{Key: "/registry/namespaces/default", Is: InFile, By: "/registry/x", Objects: 1}},
		Counts:    tally.Counts(),
	}
}

func (c *content) buildPart(t testing.TB, m *PartManifest) *snapshot.Snapshot {
	t.Helper()
	notes, err := m.Notes()
	require.NoError(t, err)
	return c.build(t, notes)
}

func TestOpenPart(t *testing.T) {
	c, ctx := sample(), context.Background()
	want := c.part()
	s := c.buildPart(t, want)
	m, err := OpenPart(ctx, s)
	require.NoError(t, err)
	require.Equal(t, want, m)
	require.Equal(t, c.manifest.Counts, m.Counts, "equal to the archive of all logical clusters")
	require.ErrorIs(t, Refuse(ctx, s), ErrIsArchive)

	_, err = Open(ctx, s)
	require.ErrorIs(t, err, ErrKind)
	require.ErrorContains(t, err, "a part of a snapshot")
	_, err = OpenPart(ctx, c.build(t, c.notes(t)))
	require.ErrorIs(t, err, ErrKind)
	require.ErrorContains(t, err, "logical clusters")
	_, err = OpenPart(ctx, c.build(t, nil))
	require.ErrorIs(t, err, ErrNotArchive)
}

// TestEveryPartChangeFound is TestEveryChangeFound for the archive of a part.
func TestEveryPartChangeFound(t *testing.T) {
	changes := archiveChanges()
	delete(changes, "a cluster's sum") // a part has none
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			c := sample()
			m, before := c.part(), c.manifest
			change.do(c)
			if c.manifest.Origin.Revision != before.Origin.Revision {
				m.Origin.Revision = c.manifest.Origin.Revision
			}
			m.Leases, m.Encryption = c.manifest.Leases, c.manifest.Encryption
			m.Total, m.AsStored = c.manifest.Total, c.manifest.AsStored
			_, err := OpenPart(context.Background(), c.buildPart(t, m))
			require.ErrorIs(t, err, ErrDamaged)
		})
	}
}

// TestHostilePart is TestHostileManifest for the archive of a part.
func TestHostilePart(t *testing.T) {
	for name, change := range map[string]func(m *PartManifest){
		"a null list":          func(m *PartManifest) { m.Types = nil },
		"prefixes not ordered": func(m *PartManifest) { m.Origin.Prefixes = []string{"/b", "/a"} },
		"a prefix twice":       func(m *PartManifest) { m.Origin.Prefixes = []string{"/a", "/a"} },
		"a slash":              func(m *PartManifest) { m.Origin.Prefixes[0] = "/registry/" },
		"an escape":            func(m *PartManifest) { m.Selection.Selector = "\x1b[2J" },
		"a type twice":         func(m *PartManifest) { m.Types = append(m.Types, m.Types[0]) },
		"an empty type":        func(m *PartManifest) { m.Types[0].Keys = 0 },
		"keys that don't add":  func(m *PartManifest) { m.Types[0].Keys++ },
		"bytes that don't add": func(m *PartManifest) { m.Types[0].Bytes++ },
		"too many bytes":       func(m *PartManifest) { m.Types[0].Bytes = 1 << 60 },
		"a state":              func(m *PartManifest) { m.Needs[0].Is = "gone" },
		"needed by nothing":    func(m *PartManifest) { m.Needs[0].Objects = 0 },
		"a long key":           func(m *PartManifest) { m.Needs[0].Key = strings.Repeat("a", maxText+1) },
		"an origin's digest":   func(m *PartManifest) { m.Origin.SHA256 = "x" },
		"an origin's revision": func(m *PartManifest) { m.Origin.Revision = 0 },
		"an origin's rest":     func(m *PartManifest) { m.Origin.Rest.Bytes = -1 },
		"a lease":              func(m *PartManifest) { m.Leases[0].ID = "xyz" },
	} {
		t.Run(name, func(t *testing.T) {
			m := sample().part()
			change(m)
			_, err := m.Notes()
			require.ErrorIs(t, err, ErrUnfit)
			text, err := text(m)
			require.NoError(t, err)
			require.ErrorIs(t, parse(text, &PartManifest{}), ErrDamaged)
		})
	}
}

// FuzzPart is FuzzManifest for the archive of a part.
func FuzzPart(f *testing.F) {
	text, err := text(sample().part())
	require.NoError(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		m := &PartManifest{}
		if parse(text, m) != nil {
			return
		}
		notes, err := m.Notes()
		require.NoError(t, err)
		require.Equal(t, text, notes[noteManifest])
	})
}

// TestRelative checks that a digest leaves out the longest storage prefix of a key.
func TestRelative(t *testing.T) {
	for key, want := range map[string]string{
		"/a/pods/x": "/pods/x", "/a/b/pods/x": "/pods/x", "/ab/pods/x": "", "/a": "", "/c/x": "",
	} {
		rest, below := relative([]string{"/a", "/a/b"}, []byte(key))
		require.Equal(t, want, string(rest), key)
		require.Equal(t, want != "", below, key)
	}
}

// TestText checks that a manifest can have any text of a snapshot.
func TestText(t *testing.T) {
	for _, text := range []string{"", "/registry/x", "\xff", "a\nb", strings.Repeat("a", 5000), "\u202e"} {
		require.True(t, IsText(Text(text)), "%q", text)
	}
	require.Equal(t, "/registry/x", Text("/registry/x"))
}

// TestPartDocumented checks that docs/reference/formats.md has the kind of the archive.
func TestPartDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "formats.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "`"+KindPart+"`")
}
