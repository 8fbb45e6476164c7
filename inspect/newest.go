package inspect

import (
	"context"
	"time"

	"github.com/etcdshift/etcdshift/internal/native"
)

// looked is how many of the last objects NewestTime reads.
const looked = 2000

// NewestTime is the newest time that the objects written last tell: when they were created, heard of, renewed or changed.
// It is about when the snapshot was taken, in a cluster that lives, and zero where nothing tells a time. What is written last is
// read alone: the Leases of a cluster are renewed every few seconds.
func (r *Reader) NewestTime(ctx context.Context) (newest time.Time, err error) {
	var last [][]byte // a ring
	n := 0
	for rec, err := range r.live(ctx, nil) {
		if err != nil {
			return newest, err
		}
		if len(last) < looked {
			last = append(last, rec.Key)
		} else {
			last[n%looked] = rec.Key
		}
		n++
	}
	for _, key := range last {
		e, err := r.Get(ctx, key)
		if err != nil {
			return newest, err
		}
		if e == nil || e.Undecryptable != nil {
			continue
		}
		content, err := native.Decode(e.Value)
		if err != nil {
			content, err = native.Metadata(e.Value)
		}
		if err == nil {
			newest = newestOf(content, newest)
		}
	}
	return newest, nil
}

// newestOf is the newest of the times that a server, a kubelet or a controller wrote down as the present.
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
