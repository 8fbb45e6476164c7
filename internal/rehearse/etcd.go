package rehearse

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/snapshot"
)

// space returns the disk space of a rehearsal, in bytes, including an expanded compressed file.
func (r *rehearsal) space() int64 {
	size := r.reader.Snapshot().Image().Size()
	need := sandbox.RestoredBytes(size, r.Members)
	if !sandbox.IsPlain(r.reader.Snapshot()) {
		need += size
	}
	return need
}

// verify checks the snapshot file. The restored etcd runs with auth disabled, so only this check
// finds damaged users and roles.
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
	path, err := sandbox.PlainFile(r.box.Path(), s)
	if err != nil {
		return "", err
	}
	if path != s.Path() {
		defer os.Remove(path)
	}
	most := sandbox.RestoreTime(s.Image().Size()) * time.Duration(r.Members)
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	r.cluster, err = sandbox.Restore(ctx, r.box, path, sandbox.RestoreOptions{Members: r.Members, Bump: uint64(r.Bump),
		SkipHashCheck: !s.HasDigest()})
	if dead := (*sandbox.Died)(nil); errors.As(err, &dead) {
		return "", codeRestore.Because("%s", dead)
	} else if errors.Is(err, context.DeadlineExceeded) {
		return "", codeRestore.Because("it has not ended after %s", most)
	}
	return fmt.Sprintf("etcdutl snapshot restore --bump-revision %d --mark-compacted, members: %d", r.Bump, r.Members),
		err
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

// compare compares each member with the file, before other writes.
func (r *rehearsal) compare(ctx context.Context) (string, error) {
	more := 0
	for i, m := range r.cluster.Members {
		result, err := compareServed(ctx, m.Client, r.reader.Snapshot(), r.Bump, mostDifferences)
		if err != nil {
			if err = r.cluster.Explain(err); errors.As(err, new(*sandbox.Died)) {
				return "", codeEtcd.Because("%s", err)
			}
			return "", err
		}
		more += result.More
		for _, d := range result.Differences {
			r.Found.Add(codeDiffers.Because("member %s: %s", m.Name, d.What).At(d.Key))
		}
		if file, server := result.File, result.Server; file != server {
			r.Found.Add(codeDiffers.Because("member %s has %s; the file has %s", m.Name,
				numbers(server), numbers(file)))
		}
		if i == 0 {
			r.Restored.Keys, r.Restored.HashKV, r.Restored.Revision = result.Keys, fmt.Sprint(result.Server.HashKV),
				result.Server.Revision
		}
	}
	if more > 0 { // last: Add lists findings up to a count
		r.Found.Counts[codeDiffers] += more
	}
	r.Restored.BumpRevision = r.Bump
	return fmt.Sprintf("%d keys, HashKV %s at revision %d", r.Restored.Keys, r.Restored.HashKV, r.Restored.Revision),
		nil
}

func numbers(r snapshot.Restored) string {
	return fmt.Sprintf("revision %d, compacted at %d, HashKV %d", r.Revision, r.CompactRevision, r.HashKV)
}

// Bounds of a page, the size of one answer.
const (
	pageKeys        = 1000
	pageBytes       = 4 << 20 // after a larger page, the next one is smaller
	mostDifferences = 100
)

// served is the result of a comparison.
type served struct {
	Keys        int               // live in the file
	File        snapshot.Restored // according to the file
	Server      snapshot.Restored // according to the server
	Differences []difference
	More        int // number of further differences
}

// difference is a key with different data in the server and the file.
type difference struct {
	Key  string
	What string // without any value
}

// same reports whether the server and the file agree.
func (r served) same() bool { return len(r.Differences) == 0 && r.File == r.Server }

// compareServed compares the only member of client with s, which was restored with --bump-revision
// bump (0 without); it keeps the first differences. It reads at the revision of the file, so later
// writes, such as those of expiring leases, change nothing. Memory is 32 bytes a key during
// sorting, then a page.
func compareServed(
	ctx context.Context, client *clientv3.Client, s *snapshot.Snapshot, bump int64, most int,
) (served, error) {
	c := comparison{client: client, s: s, keep: most}
	if err := c.hashes(ctx, bump); err != nil {
		return c.served, err
	}
	newest, err := s.Revision(ctx)
	if err == nil {
		c.ours, err = s.Sorted(ctx, nil, newest)
	}
	if err != nil {
		return c.served, err
	}
	c.Keys = c.ours.Len()
	err = s.Guard(func() error { return c.pages(ctx) })
	return c.served, err
}

type comparison struct {
	served
	client *clientv3.Client
	s      *snapshot.Snapshot
	keep   int
	ours   *snapshot.Sorted
	next   int // number of the next record of ours
}

// hashes fills in File and Server.
func (c *comparison) hashes(ctx context.Context, bump int64) (err error) {
	if c.File, err = c.s.Restored(ctx, bump); err != nil {
		return err
	}
	endpoints := c.client.Endpoints()
	if len(endpoints) != 1 {
		return fmt.Errorf("etcd: one member is compared at a time, and the client has %d endpoints", len(endpoints))
	}
	now, err := c.client.Get(ctx, "\x00", clientv3.WithCountOnly(), clientv3.WithFromKey(), clientv3.WithSerializable())
	if err != nil {
		return fmt.Errorf("etcd at %s: %w", endpoints[0], err)
	}
	c.Server.Revision = min(now.Header.Revision, c.File.Revision)
	r, err := c.client.HashKV(ctx, endpoints[0], c.Server.Revision)
	if err != nil {
		return fmt.Errorf("etcd at %s: HashKV at revision %d: %w", endpoints[0], c.Server.Revision, err)
	}
	c.Server.HashKV, c.Server.CompactRevision = r.Hash, r.CompactRevision
	return nil
}

// pages compares all keys, in their order.
func (c *comparison) pages(ctx context.Context) error {
	const all = "\x00" // no end, and the first of all keys
	for from, more := all, true; more; {
		if err := c.missing(func(key []byte) bool { return string(key) < from }); err != nil {
			return err
		}
		limit, end, err := c.window()
		if err != nil {
			return err
		}
		r, err := c.client.Get(ctx, from, clientv3.WithRange(cmp.Or(end, all)), clientv3.WithLimit(limit),
			clientv3.WithRev(c.Server.Revision), clientv3.WithSerializable())
		if err != nil {
			return fmt.Errorf("etcd at %s: keys from %q: %w", c.client.Endpoints()[0], from, err)
		}
		if err := c.page(r.Kvs); err != nil {
			return err
		}
		if r.More && len(r.Kvs) > 0 {
			from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
		} else {
			from, more = end, end != ""
		}
	}
	return c.missing(func([]byte) bool { return true })
}

// window returns the number of keys to request, by the size of the next records in the file, and
// the first key after them, "" at the end. A server counts all keys of a range: without an end,
// each page would cost as much as all following pages.
func (c *comparison) window() (limit int64, end string, err error) {
	size, n := 0, 0
	for ; c.next+n < c.ours.Len(); n++ {
		rec, err := c.ours.At(c.next + n)
		if err != nil {
			return 0, "", err
		}
		if size += len(rec.Key) + len(rec.Value); n == pageKeys || n > 0 && size > pageBytes {
			end = string(rec.Key)
			break
		}
	}
	return int64(cmp.Or(n, pageKeys/10)), end, nil
}

// page compares some keys of the server.
func (c *comparison) page(kvs []*mvccpb.KeyValue) error {
	for _, kv := range kvs {
		if err := c.missing(func(key []byte) bool { return bytes.Compare(key, kv.Key) < 0 }); err != nil {
			return err
		}
		var rec *snapshot.Record
		var err error
		if c.next < c.ours.Len() {
			if rec, err = c.ours.At(c.next); err != nil {
				return err
			}
		}
		if rec == nil || !bytes.Equal(rec.Key, kv.Key) {
			c.differs(kv.Key, "the server has it, the file has not")
			continue
		}
		c.next++
		if what := compare(rec, kv); what != "" {
			c.differs(kv.Key, what)
		}
	}
	return nil
}

// missing reports the next keys of the file, while fn is true.
func (c *comparison) missing(fn func(key []byte) bool) error {
	for ; c.next < c.ours.Len(); c.next++ {
		rec, err := c.ours.At(c.next)
		if err != nil || !fn(rec.Key) {
			return err
		}
		c.differs(rec.Key, "the file has it, the server has not")
	}
	return nil
}

func (c *comparison) differs(key []byte, what string) {
	if len(c.Differences) == c.keep {
		c.More++
		return
	}
	c.Differences = append(c.Differences, difference{string(key), what})
}

// compare describes the differences of a key between server and file, without its value.
func compare(rec *snapshot.Record, kv *mvccpb.KeyValue) string {
	var what []string
	if !bytes.Equal(rec.Value, kv.Value) {
		what = append(what, fmt.Sprintf("another value (%d bytes, the file has %d)", len(kv.Value), len(rec.Value)))
	}
	for _, number := range []struct {
		name         string
		served, file int64
	}{
		{"create_revision", kv.CreateRevision, rec.CreateRevision}, {"mod_revision", kv.ModRevision, rec.ModRevision},
		{"version", kv.Version, rec.Version}, {"lease", kv.Lease, rec.Lease},
	} {
		if number.served != number.file {
			what = append(what, fmt.Sprintf("%s %d (the file has %d)", number.name, number.served, number.file))
		}
	}
	return strings.Join(what, ", ")
}
