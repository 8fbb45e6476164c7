package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// archiveOf returns the manifest of an archive; nil for any other snapshot. An error about an
// archive wraps archive.ErrFormat or archive.ErrDamaged.
func archiveOf(ctx context.Context, s *snapshot.Snapshot) (*archive.Manifest, error) {
	m, err := archive.Open(ctx, s)
	if errors.Is(err, archive.ErrNotArchive) {
		return nil, nil
	}
	return m, err
}

// archiveText describes an archive.
func archiveText(m *archive.Manifest) string {
	text := "archive of logical cluster " + m.Name
	if path := m.Cluster(m.Name).Path; path != "" {
		text += " (" + path + ")"
	}
	if n := len(m.Clusters) - 1; n > 0 {
		text += fmt.Sprintf(" and %d below it", n)
	}
	return text
}
