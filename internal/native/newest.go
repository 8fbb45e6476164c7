package native

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/encoding"
)

// isCurrent reports whether a field with the name holds the time at which it was written.
func isCurrent(name string) bool {
	switch name {
	case "creationTimestamp", "time", "renewTime", "acquireTime", "lastTimestamp", "eventTime",
		"lastTransitionTime", "lastUpdateTime", "lastHeartbeatTime", "lastProbeTime":
		return true
	}
	return false
}

// hasCurrent reports whether an entry of a map may have such a name.
func hasCurrent(entry []byte) bool {
	name, n := protowire.ConsumeBytes(entry[min(1, len(entry)):])
	return n < 0 || isCurrent(string(name))
}

// NewestTime returns the newest of the times in a value that were the current time when written;
// zero for none.
func NewestTime(value []byte) (newest time.Time) {
	v, err := encoding.Parse(value)
	if m := convertible()[v.GVK]; m != nil && v.Format == encoding.FormatProtobuf && m.newest(v.Raw, &newest) {
		return newest
	}
	var content map[string]any
	if err == nil {
		content, err = DecodeParsed(v)
	}
	if err != nil {
		content, _ = Metadata(value)
	}
	return newestOf(content, time.Time{})
}

// newest raises at to the newest time in an accepted message, without decoding it.
func (m *message) newest(raw []byte, at *time.Time) bool {
	for len(raw) > 0 {
		f, content, n := m.next(raw)
		switch {
		case n < 0 || f.kind == nestedMap || f.kind == textMap && hasCurrent(content):
			return false
		case f.kind == nested:
			if !f.below.newest(content, at) {
				return false
			}
		case f.kind != varint && !f.accept(content):
			return false
		case f.current:
			var parts [3]uint64 // seconds and nanoseconds
			encoding.EachField(content, func(f encoding.WireField) bool {
				parts[f.Number] = f.Varint
				return true
			})
			if t := time.Unix(int64(parts[1]), int64(parts[2])).UTC(); len(content) > 0 && t.After(*at) {
				*at = t
			}
		}
		raw = raw[n:]
	}
	return true
}

func newestOf(value any, newest time.Time) time.Time {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			text, isText := child.(string)
			if !isText {
				newest = newestOf(child, newest)
			} else if isCurrent(name) {
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
