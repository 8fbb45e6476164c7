package inspect

import (
	"context"
	"time"

	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// NewestTime returns the newest time in the last written objects, zero for none: of a creation,
// heartbeat, renewal or change. In a running cluster, which renews Leases every few seconds, that
// is about the time of the snapshot.
func (r *Reader) NewestTime(ctx context.Context) (newest time.Time, err error) {
	const looked = 2000        // objects
	var last []snapshot.Record // a ring
	n := 0
	records := r.live(ctx, nil)
	if r.at == nil && !r.only {
		records = r.snapshot.Newest(ctx, looked)
	}
	for rec, err := range records {
		if err != nil {
			return newest, err
		}
		if len(last) < looked {
			last = append(last, *rec)
		} else {
			last[n%looked] = *rec
		}
		n++
	}
	entries := stream.Of(func(yield func(*Entry) error) error {
		for i := range last {
			e, err := r.Entry(ctx, &last[i])
			if err == nil && e.Undecryptable == nil {
				err = yield(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	item := func(e *Entry) (dated, int) { return dated{value: e.Value}, len(e.Value) }
	for d, err := range stream.Ahead(r.snapshot.Guard, entries, item, (*dated).read) {
		if err != nil {
			return newest, err
		}
		if d.newest.After(newest) {
			newest = d.newest
		}
	}
	return newest, nil
}

type dated struct {
	value  []byte
	newest time.Time
}

func (d *dated) read() {
	content, err := native.Decode(d.value)
	if err != nil {
		content, err = native.Metadata(d.value)
	}
	if err == nil {
		d.newest = newestOf(content, time.Time{})
	}
}

// newestOf returns the newest of the times in value that were the present when they were written.
func newestOf(value any, newest time.Time) time.Time {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			text, isText := child.(string)
			if !isText {
				newest = newestOf(child, newest)
				continue
			}
			switch name {
			case "creationTimestamp", "time", "renewTime", "acquireTime", "lastTimestamp", "eventTime",
				"lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime":
				if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.After(newest) {
					newest = t
				}
			}
		}
	case []any:
		for _, child := range v {
			newest = newestOf(child, newest)
		}
	}
	return newest
}
