package snapshot

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"compress/lzw"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"time"
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
func (e *deltaEvent) record(sub int64) (rec Record, err error) {
	kv := &e.EtcdEvent.KV
	rec = Record{Revision: Revision{Main: kv.ModRevision, Sub: sub}, Key: kv.Key}
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

// until ends a chain of delta snapshots; the zero value does not.
type until struct {
	revision int64     // the last revision; 0 for none
	time     time.Time // no event received later; zero for none
}

// excludes reports whether an event comes after the end.
func (u until) excludes(e *deltaEvent) bool {
	return u.revision > 0 && e.EtcdEvent.KV.ModRevision > u.revision || !u.time.IsZero() && e.Time.After(u.time)
}

// isBefore reports whether the end is before a full snapshot.
func (u until) isBefore(full backup) bool {
	return u.revision > 0 && full.last > u.revision || !u.time.IsZero() && u.time.Before(time.Unix(full.created, 0))
}

// deltaRecords reads the records of delta snapshots after a revision, in order.
type deltaRecords struct {
	ctx   context.Context
	from  int64 // the revision of the full snapshot
	until until
	limit int64 // of the expanded size of all files, in bytes

	last  Revision // of the previous record; from before the first
	ended bool     // by until
	bytes int64    // read
}

// read calls fn with each record of one file. The events of a revision are whole.
func (d *deltaRecords) read(b backup, fn func(*Record) error) (err error) {
	f, err := openNow(b.path)
	if err != nil {
		return &FileError{b.path, err}
	}
	defer f.Close()
	r, err := unpacked(f, b.packing)
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	} else {
		err = d.events(r, b, fn)
	}
	if err != nil {
		return &FileError{b.path, err}
	}
	return nil
}

// unpacked returns the reader of the content.
func unpacked(f io.Reader, packing string) (io.Reader, error) {
	switch packing {
	case ".gz":
		return gzip.NewReader(f)
	case ".zlib":
		return zlib.NewReader(f)
	case ".Z":
		return lzw.NewReader(f, lzw.LSB, 8), nil
	}
	return f, nil
}

// events reads a JSON array of events, followed by its SHA-256.
func (d *deltaRecords) events(r io.Reader, b backup, fn func(*Record) error) error {
	text := &digested{r: bufio.NewReaderSize(r, 1<<16), hash: sha256.New(), owner: d, left: mostEvent}
	dec := json.NewDecoder(text)
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return cmp.Or(text.err, fmt.Errorf("%w: it is not a list of events", ErrDamaged))
	}
	for dec.More() {
		var e deltaEvent
		text.left = mostEvent
		if err := cmp.Or(d.ctx.Err(), dec.Decode(&e)); err != nil {
			return cmp.Or(text.err, fmt.Errorf("%w: after revision %d: %w", ErrDamaged, d.last.Main, err))
		}
		if err := d.add(&e, fn); err != nil {
			return err
		}
		if d.ended {
			break
		}
	}
	if !d.ended { // only the end of the list follows
		end, err := dec.Token()
		if err != nil || end != json.Delim(']') || dec.More() {
			return cmp.Or(text.err, fmt.Errorf("%w: after revision %d: the list of events has no end, or more follows",
				ErrDamaged, d.last.Main))
		}
	}
	text.left = math.MaxInt64
	_, err := io.Copy(io.Discard, io.MultiReader(dec.Buffered(), text))
	switch {
	case text.err != nil || err != nil:
		return cmp.Or(text.err, err)
	case !text.sound():
		return ErrDigest
	case d.ended:
		return nil
	case d.last.Main != max(b.last, d.from):
		return fmt.Errorf("%w: it ends with revision %d, and its name says %d", ErrBackups, d.last.Main, b.last)
	}
	return nil
}

// add passes on the record of an event, unless the full snapshot has it: etcdbrctl reads the
// revision before it saves, so that the first events may be there already.
func (d *deltaRecords) add(e *deltaEvent, fn func(*Record) error) error {
	sub, main := int64(0), e.EtcdEvent.KV.ModRevision
	switch {
	case main <= d.from && d.last.Main == d.from:
		return nil
	case main < d.last.Main:
		return fmt.Errorf("%w: revision %d comes after %d", ErrDamaged, main, d.last.Main)
	case main > d.last.Main+1:
		return fmt.Errorf("%w: a delta snapshot is missing between the revisions %d and %d", ErrBackups,
			d.last.Main, main)
	case main == d.last.Main:
		sub = d.last.Sub + 1
	case d.until.excludes(e): // never between the changes of one revision
		d.ended = true
		return nil
	}
	rec, err := e.record(sub)
	if err != nil {
		return fmt.Errorf("%w: after revision %d: %w", ErrDamaged, d.last.Main, err)
	}
	d.last = rec.Revision
	return fn(&rec)
}

// digested hashes all but the last 32 bytes of a reader, which are the SHA-256 of the others.
type digested struct {
	r     *bufio.Reader
	hash  hash.Hash
	owner *deltaRecords
	left  int64 // bytes until the next event
	err   error // of the reader, or of a limit
}

// Read returns bytes before the digest.
func (t *digested) Read(p []byte) (n int, err error) {
	ahead, err := t.r.Peek(min(t.r.Size(), len(p)+sha256.Size))
	n = min(len(p), len(ahead)-sha256.Size)
	switch {
	case err != nil && err != io.EOF:
		t.err = fmt.Errorf("%w: %w", ErrDamaged, err)
		return 0, t.err
	case n <= 0:
		return 0, io.EOF
	}
	t.owner.bytes += int64(n)
	if t.left -= int64(n); t.left < 0 {
		t.err = fmt.Errorf("%w: an event has more than %d bytes", ErrDamaged, mostEvent)
	} else if t.owner.bytes > t.owner.limit {
		t.err = fmt.Errorf("%w: the delta snapshots expand to more than %d bytes", ErrExpand, t.owner.limit)
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
