package etcdbrctl

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"time"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/expand"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// deltaEvent is an event in a delta snapshot: a change of one key, as a watch of etcd has it.
type deltaEvent struct {
	EtcdEvent struct {
		Type int `json:"type"` // 0: put, 1: delete
		KV   struct {
			Key            []byte `json:"key"`
			Value          []byte `json:"value"`
			CreateRevision int64  `json:"create_revision"`
			ModRevision    int64  `json:"mod_revision"`
			Version        int64  `json:"version"`
			Lease          int64  `json:"lease"`
		} `json:"kv"`
	} `json:"etcdEvent"`
	Time time.Time `json:"time"` // when etcdbrctl received it
}

// record returns the record that the event stored, with the position of its change among those of
// its revision.
func (e *deltaEvent) record(sub int64) (rec mvcc.Record, err error) {
	kv := &e.EtcdEvent.KV
	rec = mvcc.Record{Revision: mvcc.Revision{Main: kv.ModRevision, Sub: sub}, Key: kv.Key}
	switch {
	case len(kv.Key) == 0, kv.ModRevision < 1:
		return rec, errors.New("an event without a key or a revision")
	case e.EtcdEvent.Type == 1:
		rec.Tombstone = true
	case e.EtcdEvent.Type != 0:
		return rec, fmt.Errorf("an event of type %d", e.EtcdEvent.Type)
	default:
		rec.Value, rec.Version, rec.Lease = kv.Value, kv.Version, kv.Lease
		rec.CreateRevision, rec.ModRevision = kv.CreateRevision, kv.ModRevision
	}
	return rec, nil
}

// mostEvent limits an event in a delta snapshot, in bytes of JSON: etcd's largest request is far
// smaller (--max-request-bytes, 1.5 MiB), also in base64.
const mostEvent = 64 << 20

// Deltas reads the records of delta snapshots after a revision, in order.
type Deltas struct {
	ctx   context.Context
	from  int64 // the revision of the full snapshot
	until Until
	limit int64 // of the expanded size of all files, in bytes

	Last  mvcc.Revision // of the previous record; from before the first
	Ended bool          // by until
	bytes int64         // read
}

// NewDeltas returns the reader of the delta snapshots after a full snapshot of a revision, up to an
// end, and of at most limit bytes.
func NewDeltas(ctx context.Context, revision int64, end Until, limit int64) *Deltas {
	return &Deltas{ctx: ctx, from: revision, Last: mvcc.Revision{Main: revision}, until: end, limit: limit}
}

// Read calls fn with each record of one file. The events of a revision are whole.
func (d *Deltas) Read(f io.Reader, b Backup, fn func(*mvcc.Record) error) error {
	r, err := expand.Unpacked(f, b.Packing)
	if err != nil {
		return fmt.Errorf("%w: %w", bolt.ErrDamaged, err)
	}
	return d.events(r, b, fn)
}

// events reads a JSON array of events, followed by its SHA-256.
func (d *Deltas) events(r io.Reader, b Backup, fn func(*mvcc.Record) error) error {
	text := &digested{r: bufio.NewReaderSize(r, 1<<16), hash: sha256.New(), owner: d, left: mostEvent}
	dec := json.NewDecoder(text)
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return cmp.Or(text.err, fmt.Errorf("%w: it is not a list of events", bolt.ErrDamaged))
	}
	for dec.More() {
		var e deltaEvent
		text.left = mostEvent
		if err := cmp.Or(d.ctx.Err(), dec.Decode(&e)); err != nil {
			return cmp.Or(text.err, fmt.Errorf("%w: after revision %d: %w", bolt.ErrDamaged, d.Last.Main, err))
		}
		if err := d.add(&e, fn); err != nil {
			return err
		}
		if d.Ended {
			break
		}
	}
	if !d.Ended { // only the end of the list follows
		end, err := dec.Token()
		if err != nil || end != json.Delim(']') || dec.More() {
			return cmp.Or(text.err, fmt.Errorf("%w: after revision %d: the list of events has no end, or more follows",
				bolt.ErrDamaged, d.Last.Main))
		}
	}
	text.left = math.MaxInt64
	_, err := io.Copy(io.Discard, io.MultiReader(dec.Buffered(), text))
	switch {
	case text.err != nil || err != nil:
		return cmp.Or(text.err, err)
	case !text.sound():
		return bolt.ErrDigest
	case d.Ended:
		return nil
	case d.Last.Main != max(b.last, d.from):
		return fmt.Errorf("%w: it ends with revision %d, and its name says %d", ErrGap, d.Last.Main, b.last)
	}
	return nil
}

// add passes on the record of an event, unless the full snapshot has it: etcdbrctl reads the
// revision before it saves, so that the first events may be there already.
func (d *Deltas) add(e *deltaEvent, fn func(*mvcc.Record) error) error {
	sub, main := int64(0), e.EtcdEvent.KV.ModRevision
	switch {
	case main <= d.from && d.Last.Main == d.from:
		return nil
	case main < d.Last.Main:
		return fmt.Errorf("%w: revision %d comes after %d", bolt.ErrDamaged, main, d.Last.Main)
	case main > d.Last.Main+1:
		return fmt.Errorf("%w: a delta snapshot is missing between the revisions %d and %d", ErrGap,
			d.Last.Main, main)
	case main == d.Last.Main:
		sub = d.Last.Sub + 1
	case d.until.excludes(e): // never between the changes of one revision
		d.Ended = true
		return nil
	}
	rec, err := e.record(sub)
	if err != nil {
		return fmt.Errorf("%w: after revision %d: %w", bolt.ErrDamaged, d.Last.Main, err)
	}
	d.Last = rec.Revision
	return fn(&rec)
}

// digested hashes all but the last 32 bytes of a reader, which are the SHA-256 of the others.
type digested struct {
	r     *bufio.Reader
	hash  hash.Hash
	owner *Deltas
	left  int64 // bytes until the next event
	err   error // of the reader, or of a limit
}

// Read returns bytes before the digest.
func (t *digested) Read(p []byte) (n int, err error) {
	ahead, err := t.r.Peek(min(t.r.Size(), len(p)+sha256.Size))
	n = min(len(p), len(ahead)-sha256.Size)
	switch {
	case err != nil && err != io.EOF:
		t.err = fmt.Errorf("%w: %w", bolt.ErrDamaged, err)
		return 0, t.err
	case n <= 0:
		return 0, io.EOF
	}
	t.owner.bytes += int64(n)
	if t.left -= int64(n); t.left < 0 {
		t.err = fmt.Errorf("%w: an event has more than %d bytes", bolt.ErrDamaged, mostEvent)
	} else if t.owner.bytes > t.owner.limit {
		t.err = fmt.Errorf("%w: the delta snapshots expand to more than %d bytes", expand.ErrTooFar, t.owner.limit)
	}
	if t.err != nil {
		return 0, t.err
	}
	copy(p, ahead[:n])
	_, _ = t.hash.Write(ahead[:n])
	_, _ = t.r.Discard(n)
	return n, nil
}

// sound reports whether the digest at the end is right.
func (t *digested) sound() bool {
	sum, err := t.r.Peek(sha256.Size)
	return err == nil && string(sum) == string(t.hash.Sum(nil))
}
