package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/sandbox/etcd"
	"github.com/etcdshift/etcdshift/snapshot"
)

// space is what a rehearsal needs of the disk, in bytes. A compressed file is expanded there.
func (r *rehearsal) space() int64 {
	size := r.reader.Snapshot().Image().Size()
	need := etcd.Bytes(size, r.Members)
	if r.copied() {
		need += size
	}
	return need
}

// copied is whether etcdutl reads a copy: it takes no compressed file, and no standard input.
func (r *rehearsal) copied() bool {
	s := r.reader.Snapshot()
	return s.Compression() != "" || s.Path() == "-"
}

// verify checks the file itself: the restored copy runs without auth, whose records may be damaged.
func (r *rehearsal) verify(ctx context.Context) (string, error) {
	found := 0
	for err := range snapshot.Verify(ctx, r.reader.Snapshot()) {
		if ctx.Err() != nil {
			return "", err
		}
		found++
		r.Found.Add(codeDamaged.Because("%s", err))
	}
	cluster, _ := r.reader.Snapshot().Cluster(ctx) // an unreadable entry is found above
	for _, a := range cluster.Alarms {
		found++
		r.Found.Add(codeAlarm.Because("member %s has the alarm %s", a.Member, a.Kind))
	}
	if cluster.AuthEnabled {
		r.notChecked("auth of etcd", "it is switched off in the restored copy")
	}
	if found > 0 {
		return fmt.Sprintf("findings: %d", found), nil
	}
	return "every page and record is sound", nil
}

// restore restores each member.
func (r *rehearsal) restore(ctx context.Context) (string, error) {
	s := r.reader.Snapshot()
	path := s.Path()
	if r.copied() {
		path = filepath.Join(r.box.Path(), "snapshot.db")
		if err := copyTo(path, s.Image()); err != nil {
			return "", err
		}
		defer os.Remove(path)
	}
	most := restoreTime(s.Image().Size()) * time.Duration(r.Members)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var err error
	r.cluster, err = etcd.Restore(ctx, r.box, path, etcd.Options{Members: r.Members, Bump: uint64(r.Bump), SkipHashCheck: !s.HasDigest()})
	if dead := (*sandbox.Died)(nil); errors.As(err, &dead) {
		return "", codeRestore.Because("%s", dead)
	} else if errors.Is(err, context.DeadlineExceeded) {
		return "", codeRestore.Because("it has not ended after %s", most)
	}
	return fmt.Sprintf("etcdutl snapshot restore --bump-revision %d --mark-compacted, members: %d", r.Bump, r.Members), err
}

// restoreTime is how long a restore may take: on some damaged files it never ends.
func restoreTime(bytes int64) time.Duration {
	const slowest = 2 << 20 // bytes a second
	return time.Minute + time.Duration(bytes/slowest)*time.Second
}

func copyTo(path string, from io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// startEtcd starts the members.
func (r *rehearsal) startEtcd(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.cluster.Start(ctx); err != nil {
		return "", codeEtcd.Because("%s", err)
	}
	for _, m := range r.cluster.Members {
		r.Restored.Members = append(r.Restored.Members, m.Name)
	}
	return fmt.Sprintf("%d of %d members answer", r.Members, r.Members), nil
}

// compare compares each member with the file, before anything else writes.
func (r *rehearsal) compare(ctx context.Context) (string, error) {
	for i, m := range r.cluster.Members {
		result, err := compareServed(ctx, m.Client, r.reader.Snapshot(), r.Bump, mostDifferences)
		if err != nil {
			if err = r.cluster.Explain(err); errors.As(err, new(*sandbox.Died)) {
				return "", codeEtcd.Because("%s", err)
			}
			return "", err
		}
		for _, d := range result.Differences {
			r.Found.Add(codeDiffers.Because("member %s: %s", m.Name, d.What).At(d.Key))
		}
		if file, server := result.File, result.Server; file != server {
			r.Found.Add(codeDiffers.Because("member %s has %s; the file has %s", m.Name, numbers(server), numbers(file)))
		}
		if i == 0 {
			r.Restored.Keys, r.Restored.HashKV, r.Restored.Revision = result.Keys, fmt.Sprint(result.Server.HashKV), result.Server.Revision
		}
	}
	r.Restored.BumpRevision = r.Bump
	return fmt.Sprintf("%d keys, HashKV %s at revision %d", r.Restored.Keys, r.Restored.HashKV, r.Restored.Revision), nil
}

func numbers(r snapshot.Restored) string {
	return fmt.Sprintf("revision %d, compacted at %d, HashKV %d", r.Revision, r.CompactRevision, r.HashKV)
}
