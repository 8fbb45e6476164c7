package sanitize

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

type sanitizer struct {
	masker
	plaintext bool
	types     *inspect.Types
}

// Fresh says that the output has new pages alone.
func (s *sanitizer) Fresh() bool { return true }

// record is what becomes of one.
type record struct {
	*transform.Entry
	name   string // of its type
	value  []byte // sanitized; nil where nothing changes
	values int    // replaced
	drop   string // why it is left out; "" if it is not
	wrong  error  // why it cannot be sanitized
}

// Plan stages sanitized records, and has the output be free of history.
func (s *sanitizer) Plan(ctx context.Context, v *transform.View) (err error) {
	if s.types, err = v.Types(ctx); err != nil {
		return err
	}
	if s.plaintext {
		v.Plaintext()
	}
	report, found := &Sanitized{LeftOut: []LeftOut{}, NotSanitized: notSanitized()}, counts{}
	item := func(e *transform.Entry) record { return record{Entry: e} }
	for r, err := range transform.Ahead(v, v.Live(ctx, nil), item, func(r *record) { s.sanitize(ctx, r) }) {
		if err != nil {
			return err
		}
		if r.wrong != nil && v.Raise(string(r.Key), codeNotSanitized.Because("%v", r.wrong)) {
			r.drop = "it cannot be sanitized"
		}
		switch {
		case r.drop != "":
			report.LeftOut = append(report.LeftOut, LeftOut{string(r.Key), r.drop})
			err = v.Delete(ctx, r.Key, r.drop)
		case r.value != nil:
			found.add(r.name, r.values)
			err = v.Put(ctx, r.Key, r.value, "secrets replaced")
		}
		if err != nil {
			return err
		}
	}
	report.Sanitized = found.sorted()
	v.Report().Sections = append(v.Report().Sections, report)
	v.Compact(snapshot.Compaction{LiveOnly: true, Disarm: true, RecordsOnly: true})
	return nil
}

// sanitize finds what becomes of a record. It runs in parallel.
func (s *sanitizer) sanitize(ctx context.Context, r *record) {
	parsed, err := r.ParseKey()
	r.name = parsed.Resource.String()
	switch {
	case keys.IsBootstrap(r.Key):
		r.drop = "private keys of k3s"
	case r.Undecryptable != nil:
		r.wrong = r.Undecryptable
	case err == nil && keys.HoldsCredentials(r.Key) && parsed.Resource.Resource != "secrets":
		r.drop = "a client or token of OpenShift's OAuth server"
	case err == nil && s.types.Of(parsed.Resource) != nil:
		s.object(ctx, r, inspect.NewObject(s.types.Of(parsed.Resource), r.Entry))
	default:
		s.loose(r)
	}
	if r.value == nil && s.plaintext && !bytes.Equal(r.Stored, r.Value) {
		r.value = r.Value
	}
}

// errUnknownKind is for a value of which only metadata is read.
var errUnknownKind = errors.New("this build does not know its kind")

// object sanitizes an object of a type.
func (s *sanitizer) object(ctx context.Context, r *record, o *inspect.Object) {
	switch {
	case o.Err != nil:
		r.wrong = o.Err
		return
	case o.Partial:
		r.wrong = errUnknownKind
		return
	}
	content := runtime.DeepCopyJSON(o.Content)
	if !redact.With(r.Key, content, s.counting(r)) {
		return
	}
	value, wrong := transform.Rewritten(ctx, o, content)
	if wrong != nil {
		r.wrong = wrong
		return
	}
	r.value = value
}

// counting is replace, which counts.
func (s *sanitizer) counting(r *record) redact.Replace {
	return func(part redact.Part, value any) any {
		r.values++
		return s.replace(part, value)
	}
}

// loose sanitizes the value of a key that names no object.
func (s *sanitizer) loose(r *record) {
	if len(r.Value) <= 20 && strings.Trim(string(r.Value), "0123456789") == "" { // as of compact_rev_key
		return
	}
	content, err := native.Decode(r.Value)
	switch {
	case err != nil:
		r.wrong = err
	case redact.With(r.Key, content, s.counting(r)):
		r.name = "other keys"
		r.value, r.wrong = encoding.Set(r.Value, content)
	}
}
