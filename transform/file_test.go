package transform

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestReportOfReading checks that refused findings count, and findings with WentOn skip nothing.
func TestReportOfReading(t *testing.T) {
	on := &finding.Code{Name: "on", Level: finding.Error, Allowed: finding.WentOn}
	r := NewReport("x", "on")
	r.Raise("/a", general.Because("why"))
	r.Raise("/b", on.Because("why"))
	all, refusing := r.Errors()
	require.Equal(t, []int{0, 0}, []int{all, refusing})
	r.Raise("/c", on.Because("why").Decided(finding.Refused))
	r.Raise("/d", invalid.Because("why"))
	all, refusing = r.Errors()
	require.Equal(t, []int{2, 2}, []int{all, refusing})
	require.Len(t, r.Problems, 4)
}

// TestInfo checks the identity of a file and the warnings about its format.
func TestInfo(t *testing.T) {
	ctx := context.Background()
	path := etcdtest.Build(t, "put /a 1\nput /b 2\ndel /a")
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	f, err := s.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, snapshot.FileInfo{Path: path, SHA256: f.SHA256, Revision: 4, Keys: 1, Bytes: s.Size()}, f)
	require.Len(t, f.SHA256, 64)
	require.Empty(t, OddFile(s))

	image, err := os.ReadFile(path)
	require.NoError(t, err)
	raw := filepath.Join(t.TempDir(), "raw")
	require.NoError(t, os.WriteFile(raw, image[:len(image)-32], 0o600))
	s, err = snapshot.Open(ctx, raw, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, CodeRawFile, OddFile(s)[0].Code)
}

func TestShellWord(t *testing.T) {
	require.Equal(t, "root.db", ShellWord("root.db"))
	require.Equal(t, "./-rf", ShellWord("-rf"))
	require.Equal(t, `'a b; it'\''s'`, ShellWord("a b; it's"))
}
