package archive

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

func TestHostileManifest(t *testing.T) {
	for name, change := range map[string]func(m *Manifest){
		"no name":               func(m *Manifest) { m.Name = "" },
		"a name of none":        func(m *Manifest) { m.Name = "nobody" },
		"a cluster twice":       func(m *Manifest) { m.Clusters = append(m.Clusters, m.Clusters[1]) },
		"clusters not in order": func(m *Manifest) { m.Clusters[0], m.Clusters[1] = m.Clusters[1], m.Clusters[0] },
		"a slash":               func(m *Manifest) { m.Clusters[0].Name = "a/b" },
		"an escape":             func(m *Manifest) { m.Clusters[0].Path = "root:\x1b[2J" },
		"a very long path":      func(m *Manifest) { m.Clusters[0].Path = strings.Repeat("a", maxText+1) },
		"no UTF-8":              func(m *Manifest) { m.Clusters[0].Owner.Name = "\xff" },
		"negative keys":         func(m *Manifest) { m.Clusters[0].Resources[0].Keys = -1 },
		"too many keys":         func(m *Manifest) { m.Total.Keys = 1 << 60 },
		"bytes that don't add":  func(m *Manifest) { m.Clusters[0].Bytes++ },
		"keys that don't add":   func(m *Manifest) { m.Total.Keys++ },
		"stored keys":           func(m *Manifest) { m.AsStored.Keys++ },
		"upper-case digest":     func(m *Manifest) { m.Total.SHA256 = strings.ToUpper(m.Total.SHA256) },
		"a short digest":        func(m *Manifest) { m.AsStored.SHA256 = m.AsStored.SHA256[1:] },
		"a foreign folder":      func(m *Manifest) { m.Clusters[0].Resources[0].Dir = "/core/configmaps/other/" },
		"no folder":             func(m *Manifest) { m.Clusters[0].Resources[0].Dir = child + "/" },
		"a folder twice":        func(m *Manifest) { m.Clusters[1].Resources[0].Dir = m.Clusters[1].Resources[1].Dir },
		"an empty resource": func(m *Manifest) {
			m.Clusters[0].Resources = append(m.Clusters[0].Resources,
				Resource{Dir: "/x/" + child + "/", Sum: NewDigest().Sum()})
		},
		"an identity":           func(m *Manifest) { m.Clusters[0].Resources[0].Identity = "x" },
		"identities":            func(m *Manifest) { m.Identities[0].Hash = "x" },
		"an identity's text":    func(m *Manifest) { m.Identities[0].Exports[0].Name = "\n" },
		"a definition":          func(m *Manifest) { m.Definitions[0].UID = "other" },
		"a definition's digest": func(m *Manifest) { m.Definitions[0].SHA256 = "" },
		"a definition's text":   func(m *Manifest) { m.Definitions[0].StoredVersions[0] = "\u202e" },
		"a missing one":         func(m *Manifest) { m.Missing = append(m.Missing, Definition{}) },
		"a lease":               func(m *Manifest) { m.Leases[0].ID = "xyz" },
		"a lease in decimal":    func(m *Manifest) { m.Leases[0].ID = "0006bb5" },
		"a lease without keys":  func(m *Manifest) { m.Leases[0].Keys = 0 },
		"a lease of -1 s":       func(m *Manifest) { m.Leases[0].TTL = -1 },
		"an encryption":         func(m *Manifest) { m.Encryption[0].Name = "" },
		"a prefix":              func(m *Manifest) { m.Origin.Prefix = "/registry/" },
		"an origin's digest":    func(m *Manifest) { m.Origin.SHA256 = "x" },
		"an origin's revision":  func(m *Manifest) { m.Origin.Revision = 0 },
		"an origin's rest":      func(m *Manifest) { m.Origin.Rest.Bytes = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := sample()
			change(&c.manifest)
			_, err := c.manifest.Notes()
			require.ErrorIs(t, err, ErrUnfit)
			require.NotErrorIs(t, err, ErrDamaged, "nothing was written yet")
			text, err := text(&c.manifest)
			require.NoError(t, err)
			err = parse(text, &Manifest{})
			require.ErrorIs(t, err, ErrDamaged)
		})
	}
}

func TestHostileText(t *testing.T) {
	c := sample()
	text := string(c.notes(t)["manifest"])
	for name, hostile := range map[string]string{
		"empty":            "",
		"no JSON":          "hello",
		"cut off":          text[:len(text)-10],
		"another follows":  text + "{}",
		"an unknown field": strings.Replace(text, `"name":`, `"alias": "x", "name":`, 1),
		"a wrong type":     strings.Replace(text, `"keys": 1`, `"keys": "1"`, 1),
		"a fraction":       strings.Replace(text, `"keys": 1`, `"keys": 1.5`, 1),
		"deep": `{"apiVersion":"etcdshift/v1","kind":"LogicalClusterArchive","format":1,"missing":` +
			strings.Repeat("[", 1<<20),
		"a field twice": strings.Replace(text, `"name":`, `"name": "nobody", "name":`, 1),
		"another case":  strings.Replace(text, `"name":`, `"NAME":`, 1),
		"other space":   text + "\n",
		"an escape":     strings.Replace(text, `"root:consumer"`, `"root\u003aconsumer"`, 1),
		"a null list":   strings.Replace(text, `"missing": []`, `"missing": null`, 1),
		"a null list inside": strings.Replace(text, `"storedVersions": [
        "v1"
      ]`, `"storedVersions": null`, 1),
		"larger than allowed": text + strings.Repeat(" ", maxManifest),
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, text, hostile)
			err := parse([]byte(hostile), &Manifest{})
			require.ErrorIs(t, err, ErrDamaged)
			require.Less(t, len(err.Error()), 1000)
		})
	}
	for name, other := range map[string]string{
		"newer":        strings.Replace(text, `"format": 1`, `"format": 2, "new": {}`, 1),
		"another kind": strings.Replace(text, KindClusters, "Report", 1),
		"another API":  strings.Replace(text, APIVersion, "etcdshift/v9", 1),
		"nothing":      "{}",
	} {
		t.Run(name, func(t *testing.T) {
			err := parse([]byte(other), &Manifest{})
			require.ErrorIs(t, err, ErrFormat)
		})
	}
}

// FuzzManifest checks that an accepted manifest is sound and can be written again.
func FuzzManifest(f *testing.F) {
	text, err := json.MarshalIndent(sample().manifest, "", "  ")
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"apiVersion":"etcdshift/v1","kind":"LogicalClusterArchive","format":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := &Manifest{}
		if parse(text, m) != nil {
			return
		}
		notes, err := m.Notes()
		require.NoError(t, err)
		require.Equal(t, text, notes[noteManifest])
	})
}

// TestFlippedBytes checks that for a change of any byte, with or without a check of the file's
// digest, there is an error or no change of the content.
func TestFlippedBytes(t *testing.T) {
	ctx, c := context.Background(), sample()
	whole := c.build(t, c.notes(t))
	image, err := os.ReadFile(whole.Path())
	require.NoError(t, err)
	want := rest(t, whole)
	path := filepath.Join(t.TempDir(), "flipped.db")
	wrong := 0
	for at := 0; at < len(image)-32; at += 41 {
		for _, bit := range []byte{1, 0x80} {
			image[at] ^= bit
			require.NoError(t, os.WriteFile(path, image, 0o600))
			image[at] ^= bit
			s, err := snapshot.Open(ctx, path, snapshot.Config{SkipDigest: true})
			if err != nil {
				wrong++
				continue
			}
			m, err := Open(ctx, s)
			if err == nil {
				err = Check(ctx, s, m)
			}
			if err != nil {
				wrong++
			} else {
				require.Equal(t, want, rest(t, s), "byte %d", at)
				require.Equal(t, &c.manifest, m)
			}
			require.NoError(t, s.Close())
		}
	}
	require.Greater(t, wrong, 50)
}

func rest(t *testing.T, s *snapshot.Snapshot) Sum {
	t.Helper()
	r := NewRest()
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		r.Add(rec)
	}
	return r.Sum()
}

// TestDocumented checks that docs/reference/formats.md has the format's name, its notes and the
// test vector.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "formats.md"))
	require.NoError(t, err)
	for _, name := range []string{APIVersion, KindClusters, noteManifest, noteDigest} {
		require.Contains(t, string(page), "`"+name+"`")
	}
	vector, err := os.ReadFile("archive_test.go")
	require.NoError(t, err)
	digests := regexp.MustCompile(`SHA256: "([0-9a-f]{64})"`).FindAllStringSubmatch(string(vector), -1)
	require.Len(t, digests, 2)
	for _, digest := range digests {
		require.Contains(t, string(page), digest[1])
	}
}
