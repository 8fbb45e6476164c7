package compare

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/encoding"
)

// times are the times in an object, in Unix seconds; 0 for none.
type times struct {
	created int64 // metadata.creationTimestamp: of its first record
	written int64 // a Lease's renewTime, an Event's last time: of this record
	managed int64 // the latest of managedFields: of this record, or of one before
}

// timesOf reads the times of a value. A broken value has those before the break.
func timesOf(value []byte) times {
	switch encoding.Detect(value) {
	case encoding.FormatProtobuf:
		if v, err := encoding.Parse(value); err == nil {
			return timesOfMessage(v.GVK.Kind, v.Raw)
		}
	case encoding.FormatJSON:
		return timesOfJSON(value)
	case encoding.FormatCBOR:
		if m, err := encoding.ReadMeta(value); err == nil && !m.CreationTimestamp.IsZero() {
			return times{created: m.CreationTimestamp.Unix()}
		}
	}
	return times{}
}

func timesOfJSON(value []byte) (t times) {
	var object struct {
		Metadata struct {
			CreationTimestamp string
			ManagedFields     []struct{ Time string }
		}
	}
	_ = json.Unmarshal(value, &object) // fields before an error are set
	t.created = unix(object.Metadata.CreationTimestamp)
	for _, f := range object.Metadata.ManagedFields {
		t.managed = max(t.managed, unix(f.Time))
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
func timesOfMessage(kind string, message []byte) (t times) {
	const seconds = 1                              // of a Time or MicroTime
	t.created = latest(message, 1, 8, seconds)     // metadata.creationTimestamp
	t.managed = latest(message, 1, 17, 4, seconds) // metadata.managedFields[].time
	switch kind {
	case "Lease":
		t.written = latest(message, 2, 4, seconds) // spec.renewTime
	case "Event": // firstTimestamp, lastTimestamp, eventTime, series.lastObservedTime
		t.written = max(latest(message, 6, seconds), latest(message, 7, seconds), latest(message, 10, seconds), latest(message, 11, 2, seconds))
	}
	return t
}

// latest returns the largest number at a path of fields. It ends where the message is broken.
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
