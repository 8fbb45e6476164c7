package verify

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

// readArchive checks the archive and keeps what it holds. A damaged one ends judging: nothing could be told by it.
func (j *judge) readArchive(ctx context.Context) error {
	s := j.Archive.Snapshot()
	j.checked[QuestionDamaged]++
	m, err := archive.OpenChecked(ctx, s)
	if err == nil {
		_, err = s.Digest(ctx)
	}
	if err != nil && isDamage(err) {
		j.found(CodeArchiveDamaged, j.Archive, nil, "%v", err)
		return errStop
	}
	if err != nil {
		return err
	}
	j.manifest, j.moved, j.archived, j.workspaces = m, map[string]bool{}, map[string]*kept{}, map[keys.Key]bool{}
	for _, c := range m.Clusters {
		j.moved[c.Name] = true
		j.workspaces[workspacePlace(c.Owner.Cluster, c.Owner.Name)] = true
		j.verdict.Clusters = append(j.verdict.Clusters, Moved{c.Name, c.Path, c.Keys})
	}
	return j.readRecords(ctx)
}

func (j *judge) readRecords(ctx context.Context) error {
	definitions := map[string]bool{}
	for _, d := range j.manifest.Definitions {
		definitions[d.Key] = true
	}
	layout := keys.KCPShard{Prefix: j.manifest.Origin.Prefix}
	for e, err := range j.Archive.Unopened(ctx, nil) {
		if err != nil {
			return err
		}
		place, err := layout.Parse(e.Key)
		if err != nil {
			return err // CheckArchive has taken it apart before
		}
		key := string(e.Key[len(layout.Prefix):])
		entry := *e
		j.archived[key] = &kept{entry: &entry, place: place, definition: definitions[key]}
	}
	return nil
}

// judgeFiles judges each snapshot as a file, and whether one was given for another.
func (j *judge) judgeFiles(ctx context.Context) error {
	for _, r := range j.files() {
		if err := j.judgeFile(ctx, r); err != nil {
			return err
		}
	}
	if len(j.verdict.Findings) > 0 {
		return errStop
	}
	return j.judgeSame(ctx)
}

func (j *judge) files() (files []*inspect.Reader) {
	for _, r := range slices.Concat([]*inspect.Reader{j.OriginOut, j.DestinationOut, j.Origin, j.Destination}, j.Caches, j.CachesBefore) {
		if r != nil {
			files = append(files, r)
		}
	}
	return files
}

func (j *judge) judgeFile(ctx context.Context, r *inspect.Reader) error {
	if err := archive.Refuse(ctx, r.Snapshot()); err != nil {
		return fmt.Errorf("%s: %w", pathOf(r), err)
	}
	j.checked[QuestionDamaged]++
	for err := range snapshot.Verify(ctx, r.Snapshot()) {
		if !isDamage(err) {
			return err
		}
		j.found(CodeDamaged, r, nil, "%v", err)
	}
	return nil
}

// judgeSame finds the step that was left out: its output is its input.
func (j *judge) judgeSame(ctx context.Context) error {
	images, files := map[*inspect.Reader][32]byte{}, map[*inspect.Reader]string{}
	for _, r := range j.files() {
		digest, err := r.Snapshot().Digest(ctx)
		if err != nil {
			return err
		}
		images[r], files[r] = digest.Image, hex.EncodeToString(digest.File[:])
	}
	same := func(a, b *inspect.Reader) bool { return a != nil && b != nil && images[a] == images[b] }
	of := func(r *inspect.Reader) bool { return files[r] == j.manifest.Origin.SHA256 }
	switch {
	case same(j.OriginOut, j.DestinationOut):
		j.found(CodeSameFile, j.DestinationOut, nil, "it is the same snapshot as %s", pathOf(j.OriginOut))
	case of(j.OriginOut) || same(j.OriginOut, j.Origin):
		j.found(CodeSameFile, j.OriginOut, nil, "it is the snapshot that the archive was made of: nothing was purged")
	case of(j.DestinationOut) || same(j.DestinationOut, j.Origin):
		j.found(CodeSameFile, j.DestinationOut, nil, "it is the snapshot that the archive was made of")
	case same(j.DestinationOut, j.Destination):
		j.found(CodeSameFile, j.DestinationOut, nil, "it is the same snapshot as %s: nothing was imported", pathOf(j.Destination))
	}
	return nil
}
