package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// mostMarks bounds the times of a clock, 16 bytes each. A full clock drops every other time.
const mostMarks = 1 << 19

// Clock estimates the time of a revision. The zero value has no times. Questions may be concurrent.
type Clock struct {
	mu    sync.Mutex // of prepare
	marks []mark     // sorted by revision once ready
	ready bool
	// Once ready: for each mark, the latest mark up to it, and the next tight mark.
	latest, next []int32
}

// mark is a time in an object written at a revision.
type mark struct {
	revision int64
	at       int64 // Unix seconds, doubled; odd if loose: the object may have been written later
}

func (m mark) tight() bool { return m.at&1 == 0 }
func (m mark) unix() int64 { return m.at >> 1 }

// Bracket holds the time of a revision, in whole seconds. Either end may be zero.
type Bracket struct {
	About     time.Time `json:"about"` // most likely time, inside the bracket
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
}

// Read adds the times of all objects of a snapshot, in one pass over its records.
func (c *Clock) Read(ctx context.Context, side *inspect.Reader) error {
	return stream.Each(Records(ctx, side), func(rec *Dated) error {
		c.Add(rec)
		return nil
	})
}

// Add adds the times of a record.
func (c *Clock) Add(rec *Dated) {
	c.add(rec.CreateRevision, rec.Created, true)
	c.add(rec.ModRevision, rec.Written, true)
	c.add(rec.ModRevision, rec.Managed, false)
}

// add adds a time, in Unix seconds; 0 is none.
func (c *Clock) add(revision, at int64, tight bool) {
	const farFuture = 1 << 33 // the year 2242, later than any real time
	if at <= 0 || at > farFuture || revision <= 0 {
		return
	}
	m := mark{revision, at << 1}
	if !tight {
		m.at |= 1
	}
	if n := len(c.marks); n > 0 && c.marks[n-1] == m {
		return
	}
	c.ready = false
	if c.marks = append(c.marks, m); len(c.marks) >= mostMarks {
		c.sort()
		for i := range len(c.marks) / 2 {
			c.marks[i] = c.marks[2*i]
		}
		c.marks = c.marks[:len(c.marks)/2]
	}
}

func (c *Clock) sort() {
	slices.SortFunc(c.marks, func(a, b mark) int {
		// at one revision, loose marks come first: a tight mark bounds them
		return cmp.Or(cmp.Compare(a.revision, b.revision), cmp.Compare(b.at&1, a.at&1), cmp.Compare(a.at, b.at))
	})
	c.marks = slices.Compact(c.marks)
}

// prepare keeps the marks that agree: the longest sequence of tight marks with non-decreasing
// times, and the loose marks that are not later than the next tight one.
func (c *Clock) prepare() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return
	}
	c.sort()
	keep, n := agreeing(c.marks), len(c.marks)
	limit := int64(1<<62 - 1)
	for i, m := range slices.Backward(c.marks) {
		if keep[i] {
			limit = m.unix()
		}
		if keep[i] || !m.tight() && m.unix() <= limit {
			n--
			c.marks[n] = m
		}
	}
	c.marks = c.marks[n:]
	n = len(c.marks)
	c.latest, c.next = make([]int32, n), make([]int32, n)
	for i := range c.marks {
		c.latest[i] = int32(i)
		if i > 0 && c.marks[c.latest[i-1]].unix() > c.marks[i].unix() {
			c.latest[i] = c.latest[i-1]
		}
	}
	next := int32(n)
	for i, m := range slices.Backward(c.marks) {
		if m.tight() {
			next = int32(i)
		}
		c.next[i] = next
	}
	c.ready = true
}

// agreeing selects a longest sequence of tight marks with non-decreasing times (patience sorting).
func agreeing(marks []mark) (keep []bool) {
	keep = make([]bool, len(marks))
	before := make([]int32, len(marks))
	var tails []int32 // for each length, the last mark of the sequence that ends earliest
	for i, m := range marks {
		if !m.tight() {
			continue
		}
		at := sort.Search(len(tails), func(k int) bool { return marks[tails[k]].unix() > m.unix() })
		before[i] = -1
		if at > 0 {
			before[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, int32(i))
		} else {
			tails[at] = int32(i)
		}
	}
	if len(tails) == 0 {
		return keep
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		keep[i] = true
	}
	return keep
}

// At returns the time of a revision; nil if unknown.
func (c *Clock) At(revision int64) *Bracket {
	var b Bracket
	c.prepare()
	behind := sort.Search(len(c.marks), func(i int) bool { return c.marks[i].revision > revision })
	low, high := -1, -1
	if behind > 0 {
		low = int(c.latest[behind-1])
		b.NotBefore = c.time(low, 0)
	}
	first := sort.Search(len(c.marks), func(i int) bool { return c.marks[i].revision >= revision })
	if first < len(c.marks) && int(c.next[first]) < len(c.marks) {
		high = int(c.next[first])
		b.NotAfter = c.time(high, 1) // stored times omit fractions of a second
	}
	switch {
	case low < 0 && high < 0:
		return nil
	case high < 0:
		b.About = b.NotBefore
	case low < 0:
		b.About = c.time(high, 0)
	case c.marks[low].revision == revision || c.marks[low].revision >= c.marks[high].revision:
		b.About = b.NotBefore
	default:
		from, to := c.marks[low], c.marks[high]
		part := float64(revision-from.revision) / float64(to.revision-from.revision)
		b.About = c.time(low, int64(part*float64(to.unix()-from.unix())))
	}
	return &b
}

// Last returns the last revision not known to be later than t; the largest number if none is.
func (c *Clock) Last(t time.Time) int64 {
	c.prepare()
	after := sort.Search(len(c.marks), func(i int) bool { return c.marks[c.latest[i]].unix() > t.Unix() })
	if after == len(c.marks) {
		return math.MaxInt64
	}
	return c.marks[after].revision - 1
}

// First returns the first revision not known to be earlier than t.
func (c *Clock) First(t time.Time) int64 {
	c.prepare()
	for _, m := range slices.Backward(c.marks) {
		if m.tight() && m.unix() < t.Unix() {
			return m.revision + 1
		}
	}
	return 1
}

func (c *Clock) time(i int, more int64) time.Time { return time.Unix(c.marks[i].unix()+more, 0).UTC() }

// Times holds the times in an object, in Unix seconds; 0 for none.
type Times struct {
	Created int64 // metadata.creationTimestamp: of its first record
	Written int64 // a Lease's renewTime, an Event's last time: of this record
	Managed int64 // the latest of managedFields: of this or an earlier record
}

// Dated is a record with the times in its value; deletions and undecryptable values have none.
type Dated struct {
	snapshot.Scanned
	Times

	record snapshot.Record
	value  []byte
	err    error
}

// Records yields the records of a snapshot, in revision order, with their times. Values are read in
// parallel. The Dated is reused for the next record.
func Records(ctx context.Context, side *inspect.Reader) iter.Seq2[*Dated, error] {
	item := func(rec snapshot.Scanned) (Dated, int) {
		d := Dated{Scanned: rec, record: *rec.Record}
		if !rec.Tombstone {
			e := inspect.Entry{Key: rec.Key, Stored: rec.Value}
			if d.err = side.Decrypt(ctx, &e); e.Undecryptable == nil {
				d.value = e.Value
			}
		}
		return d, len(rec.Value)
	}
	s := side.Snapshot()
	return stream.Of(func(yield func(*Dated) error) error {
		return stream.Each(stream.Ahead(s.Guard, s.Scan(ctx), item, (*Dated).read), func(d *Dated) error {
			if d.Record = &d.record; d.err != nil {
				return d.err
			}
			return yield(d)
		})
	})
}

func (d *Dated) read() { d.Times = timesOf(d.value) }

// timesOf reads the times of a value. A broken value has the times before the break.
func timesOf(value []byte) Times {
	switch encoding.Detect(value) {
	case encoding.FormatProtobuf:
		if v, err := encoding.Parse(value); err == nil {
			return timesOfMessage(v.GVK.Kind, v.Raw)
		}
	case encoding.FormatJSON:
		return timesOfJSON(value)
	case encoding.FormatCBOR:
		if m, err := encoding.ReadMeta(value); err == nil && !m.CreationTimestamp.IsZero() {
			return Times{Created: m.CreationTimestamp.Unix()}
		}
	}
	return Times{}
}

func timesOfJSON(value []byte) (t Times) {
	var object struct {
		Metadata struct {
			CreationTimestamp string
			ManagedFields     []struct{ Time string }
		}
	}
	_ = json.Unmarshal(value, &object) // fields before an error are set
	t.Created = unix(object.Metadata.CreationTimestamp)
	for _, f := range object.Metadata.ManagedFields {
		t.Managed = max(t.Managed, unix(f.Time))
	}
	return t
}

func unix(text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return at.Unix()
}

// timesOfMessage reads a protobuf message, by field numbers of ObjectMeta, ManagedFieldsEntry and
// Time, Lease and Event (generated.proto of k8s.io/apimachinery and k8s.io/api).
func timesOfMessage(kind string, message []byte) (t Times) {
	const seconds = 1                              // of a Time or MicroTime
	t.Created = latest(message, 1, 8, seconds)     // metadata.creationTimestamp
	t.Managed = latest(message, 1, 17, 4, seconds) // metadata.managedFields[].time
	switch kind {
	case "Lease":
		t.Written = latest(message, 2, 4, seconds) // spec.renewTime
	case "Event": // firstTimestamp, lastTimestamp, eventTime, series.lastObservedTime
		t.Written = max(latest(message, 6, seconds), latest(message, 7, seconds), latest(message, 10, seconds),
			latest(message, 11, 2, seconds))
	}
	return t
}

// latest returns the largest number at a path of fields, up to the first error in the message.
func latest(message []byte, path ...protowire.Number) (at int64) {
	for len(message) > 0 {
		field, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return at
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(field, typ, message); n < 0 {
			return at
		}
		switch {
		case field != path[0]:
		case len(path) > 1 && typ == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(message)
			at = max(at, latest(value, path[1:]...))
		case len(path) == 1 && typ == protowire.VarintType:
			value, _ := protowire.ConsumeVarint(message)
			at = max(at, int64(value))
		}
		message = message[n:]
	}
	return at
}
