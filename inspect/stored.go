package inspect

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strconv"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Stored is one record of a key, without its value.
type Stored struct {
	Key      string `json:"key"`
	KeyBytes []byte `json:"keyBytes,omitempty"` // in base64, for a key that is not UTF-8
	// why no layout parses the key; then all parts below but Prefix are empty
	Unknown   string  `json:"unknown,omitempty"`
	Prefix    *string `json:"prefix,omitempty"` // the storage prefix, which may be ""
	Group     string  `json:"group,omitempty"`
	Resource  string  `json:"resource,omitempty"`
	Custom    bool    `json:"custom,omitempty"`   // kcp: a custom resource without an APIExport
	Identity  string  `json:"identity,omitempty"` // kcp
	Shard     string  `json:"shard,omitempty"`    // kcp's cache server
	Cluster   string  `json:"cluster,omitempty"`  // kcp
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name,omitempty"`

	State          State  `json:"state"`
	Revision       int64  `json:"revision"`      // of this record: the modRevision, or the revision of the deletion
	Sub            int64  `json:"sub,omitempty"` // number of the write in its transaction
	CreateRevision int64  `json:"createRevision,omitempty"`
	Version        int64  `json:"version,omitempty"` // writes since the creation of the key
	Lease          string `json:"lease,omitempty"`   // in hexadecimal, as etcdctl prints it
	Bytes          int    `json:"bytes"`             // of the value as stored
	// JSON, protobuf, CBOR, unknown; "encrypted" if undecryptable
	Encoding   string `json:"encoding,omitempty"`
	Encryption string `json:"encryption,omitempty"` // "aescbc:v1:NAME" of an encrypted value
}

// State is the state of a record.
type State string

// The states of a record.
const (
	StateLive       State = "live"
	StateSuperseded State = "superseded" // a later record of the same key is in the file
	StateDeletion   State = "deletion"   // a tombstone
)

// StoredRecords yields the records of keys that begin with prefix, in revision order: the live
// records, or with history all records in the file. The next record reuses the Stored.
func StoredRecords(ctx context.Context, r *Reader, prefix []byte, history bool) iter.Seq2[*Stored, error] {
	records := r.live(ctx, prefix)
	if history {
		records = visible(ctx, r, r.snapshot.Records(ctx), keyOf)
	}
	return stream.Of(func(yield func(*Stored) error) error {
		if _, err := r.Layouts(ctx); err != nil { // the work below must not read the layouts
			return err
		}
		fill := func(f *filled) {
			if bytes.HasPrefix(f.rec.Key, prefix) {
				f.err = fill(ctx, r, &f.rec, history, &f.Stored)
			}
		}
		item := func(rec *snapshot.Record) (filled, int) { return filled{rec: *rec}, len(rec.Value) }
		work := fill
		if r.decrypter != nil { // a decrypter may be a plugin: decrypt one value after the other
			item = func(rec *snapshot.Record) (filled, int) {
				f := filled{rec: *rec}
				fill(&f)
				return f, len(rec.Value)
			}
			work = func(*filled) {}
		}
		return stream.Each(stream.Ahead(r.snapshot.Guard, records, item, work), func(f *filled) error {
			if f.err != nil || !bytes.HasPrefix(f.rec.Key, prefix) {
				return f.err
			}
			return yield(&f.Stored)
		})
	})
}

type filled struct {
	Stored
	rec snapshot.Record
	err error
}

func fill(ctx context.Context, r *Reader, rec *snapshot.Record, history bool, out *Stored) error {
	*out = Stored{
		Key: string(rec.Key), State: StateLive, Revision: rec.Revision.Main, Sub: rec.Revision.Sub,
		CreateRevision: rec.CreateRevision, Version: rec.Version, Bytes: len(rec.Value),
	}
	if !utf8.Valid(rec.Key) {
		out.KeyBytes = rec.Key
	}
	if rec.Lease != 0 {
		out.Lease = strconv.FormatUint(uint64(rec.Lease), 16)
	}
	layouts, err := r.Layouts(ctx)
	if err != nil {
		return err
	}
	out.parse(layouts, rec.Key)
	if rec.Tombstone {
		out.State = StateDeletion
		return nil
	}
	if history {
		latest, err := r.get(ctx, rec.Key)
		if err != nil {
			return err
		}
		if latest == nil || latest.Revision != rec.Revision {
			out.State = StateSuperseded
		}
	}
	e := raw(r, rec)
	if err := r.Decrypt(ctx, &e); err != nil {
		return err
	}
	out.Encoding = encoding.Detect(e.Value).String()
	out.Encryption, _ = encoding.Encryption(rec.Value)
	return nil
}

func (s *Stored) parse(layouts keys.Layouts, key []byte) {
	k, _, err := layouts.Parse(key)
	unknown := (*keys.KeyError)(nil)
	switch {
	case len(key) == 0:
		s.Unknown = "left behind by etcdutl snapshot restore --bump-revision"
	case errors.As(err, &unknown):
		s.Unknown = unknown.Reason
		if at, ok := layouts.Of(key); ok {
			s.Prefix = &at.Prefix
		}
	default:
		prefix := k.Prefix // a copy keeps k off the heap
		s.Prefix, s.Group, s.Resource = &prefix, k.Resource.Group, k.Resource.Resource
		s.Custom, s.Identity, s.Shard, s.Cluster = k.Custom, k.Identity, k.Shard, k.Cluster
		s.Namespace, s.Name = k.Namespace, k.Name
	}
}
