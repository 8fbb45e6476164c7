package rehearse

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/snapshot"
)

// Bounds of a page: a server answers with all of it at once.
const (
	pageKeys        = 1000
	pageBytes       = 4 << 20 // the next page of a list is smaller after a larger one
	mostDifferences = 100
)

// served is what differs.
type served struct {
	Keys        int               // live in the file
	File        snapshot.Restored // as the file tells
	Server      snapshot.Restored // as the server answers
	Differences []difference
	More        int // differences beyond those
}

// difference is a key that the server serves otherwise than the file tells.
type difference struct {
	Key  string
	What string // without any value
}

// same reports whether the server serves what the file holds.
func (r served) same() bool { return len(r.Differences) == 0 && r.File == r.Server }

// compareServed compares the member that client has as its one endpoint with s, which was restored
// with --bump-revision bump (0 without); it keeps the first differences. It asks for the
// revision of the file: later writes, such as those of leases that expire, change nothing. Memory
// is 32 bytes a key while they are sorted, then a page.
func compareServed(ctx context.Context, client *clientv3.Client, s *snapshot.Snapshot, bump int64, most int) (served, error) {
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

// window is how many keys to ask for, by the size of the next ones in the file, and the first key
// behind them, "" behind the last one. A server counts all keys of a range: without an end each
// page would cost as much as all that follow.
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

// missing reports the next keys of the file for which fn is true.
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

// compare says how a key of the server differs from the record of the file, without its value.
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
