package timeline

import (
	"encoding/json"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdshift/etcdshift/encoding"
)

// times are what an object says of when it was written, in Unix seconds; 0 where it does not.
type times struct {
	created int64 // metadata.creationTimestamp: that of its first record
	written int64 // a Lease's renewTime, an Event's last time: that of this record
	managed int64 // the latest of managedFields: of this record, or of one before
}

// timesOf reads the times of a value; of one that is no object or is broken, those that were found before.
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
	_ = json.Unmarshal(value, &object) // what could be read of it is read
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

// Field numbers of k8s.io/apimachinery's ObjectMeta, ManagedFieldsEntry and Time, and of k8s.io/api's Lease and Event
// (generated.proto of each).
const (
	objectMeta         = 1
	creationTimestamp  = 8
	managedFields      = 17
	managedFieldsTime  = 4
	timeSeconds        = 1
	leaseSpec          = 2
	leaseRenewTime     = 4
	eventFirst         = 6 // core/v1
	eventLast          = 7
	eventTime          = 10
	eventSeries        = 11
	seriesLastObserved = 2
)

func timesOfMessage(kind string, message []byte) (t times) {
	each(message, func(field protowire.Number, value []byte) {
		switch {
		case field == objectMeta:
			each(value, func(field protowire.Number, value []byte) {
				switch field {
				case creationTimestamp:
					t.created = secondsOf(value)
				case managedFields:
					each(value, func(field protowire.Number, value []byte) {
						if field == managedFieldsTime {
							t.managed = max(t.managed, secondsOf(value))
						}
					})
				}
			})
		case kind == "Lease" && field == leaseSpec:
			t.written = inside(value, leaseRenewTime)
		case kind == "Event" && (field == eventFirst || field == eventLast || field == eventTime):
			t.written = max(t.written, secondsOf(value))
		case kind == "Event" && field == eventSeries:
			t.written = max(t.written, inside(value, seriesLastObserved))
		}
	})
	return t
}

// inside is the time in a field of a message.
func inside(message []byte, want protowire.Number) (at int64) {
	each(message, func(field protowire.Number, value []byte) {
		if field == want {
			at = secondsOf(value)
		}
	})
	return at
}

// secondsOf reads a Time or MicroTime.
func secondsOf(message []byte) (at int64) {
	for len(message) > 0 {
		field, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0
		}
		message = message[n:]
		if field == timeSeconds && typ == protowire.VarintType {
			if v, n := protowire.ConsumeVarint(message); n > 0 {
				at = int64(v)
			}
		}
		if n = protowire.ConsumeFieldValue(field, typ, message); n < 0 {
			return 0
		}
		message = message[n:]
	}
	return at
}

// each calls fn for each field of a message that is a message, or bytes; it ends where the message is broken.
func each(message []byte, fn func(field protowire.Number, value []byte)) {
	for len(message) > 0 {
		field, typ, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(field, typ, message); n < 0 {
			return
		}
		if typ == protowire.BytesType {
			if value, m := protowire.ConsumeBytes(message); m > 0 {
				fn(field, value)
			}
		}
		message = message[n:]
	}
}
