package sanitize

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

type sanitizer struct {
	masker
	plaintext bool
	keepNames bool
	types     *inspect.Types
	names     *dictionary // nil with --keep-names
	renamed   definitions
}

// record is a record with its planned changes.
type record struct {
	*transform.Entry
	name   string         // name of its type
	to     []byte         // new key; nil if unchanged
	value  []byte         // sanitized value; nil if unchanged
	values int            // number of replaced secrets
	texts  int            // number of texts with replaced names
	left   map[string]int // kept names, with their number of texts
	key    string         // key that contains a secret and stays
	drop   string         // reason for leaving the record out, or ""
	wrong  error          // reason why the record cannot be sanitized
	meter  *bounded.Meter // budget of its schema check
}

// Plan stages sanitized records and removes history from the output.
func (s *sanitizer) Plan(ctx context.Context, v *transform.View) (err error) {
	v.Make(transform.Output{Plaintext: s.plaintext, NotForRestore: true,
		Compact: &snapshot.Compaction{LiveOnly: true, Disarm: true, RecordsOnly: true}})
	if s.types, err = v.Types(ctx); err != nil {
		return err
	}
	if !s.keepNames {
		if s.names, err = learn(ctx, v, s.key); err != nil {
			return err
		}
		if s.renamed, err = s.definitions(); err != nil {
			return err
		}
	}
	if s.secrets, err = gather(ctx, v); err != nil {
		return err
	}
	tally := newTally()
	item := func(e *transform.Entry) record { return record{Entry: e, meter: v.Budget().Meter()} }
	work := func(r *record) { s.sanitize(bounded.WithMeter(ctx, r.meter), r) }
	for r, err := range transform.Ahead(v, v.Live(ctx, nil), item, work) {
		if err == nil && !r.meter.Take() { // the record was checked before an object that used up the budget
			*r = record{Entry: r.Entry, meter: bounded.Exhausted()}
			work(r)
		}
		if err == nil && !tally.moved[string(r.Key)] { // not a key written by this loop
			err = s.stage(ctx, v, r, tally)
		}
		if err != nil {
			return err
		}
	}
	v.Report().Sections = append(v.Report().Sections, tally.report(s.names, s.secrets.Unsearched))
	v.Report().AddStep("hand over OUT alone: the report and the input have the names and secrets")
	v.Report().AddStep("read OUT with etcdshift; do not restore it as a cluster: it has no working " +
		"credentials")
	return nil
}

func (s *sanitizer) stage(ctx context.Context, v *transform.View, r *record, tally *tally) error {
	if r.wrong != nil && v.Raise(string(r.Key), codeNotSanitized.Because("%v", r.wrong)) {
		r.drop = "it cannot be sanitized"
	}
	tally.add(r)
	switch {
	case r.drop != "":
		return v.Delete(ctx, r.Key)
	case r.to != nil:
		_, err := v.Move(ctx, r.Entry, r.to, r.value)
		return err
	case r.value != nil:
		return v.Put(ctx, r.Key, r.value)
	}
	return nil
}

// sanitize computes the changes of a record. Calls run in parallel.
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
	case err == nil && !keys.IsRecord(parsed.Resource) && s.types.Of(parsed.Resource) != nil:
		s.object(ctx, r, inspect.NewObject(s.types.Of(parsed.Resource), r.Entry))
	default:
		s.sanitizeRaw(r)
	}
	if key := cmp.Or(string(r.to), string(r.Key)); s.secrets.Holds(key) {
		r.key = key
	}
	if r.value == nil && (r.to != nil || s.plaintext && !bytes.Equal(r.Stored, r.Value)) {
		r.value = r.Value
	}
}

// errUnknownKind is returned for a value with only its metadata decoded.
var errUnknownKind = errors.New("this build does not know its kind")

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
	changed := s.replaceIn(r, content)
	changed = s.edit(r, content) || changed
	key := s.rename(r, o.Parsed)
	if r.wrong != nil || !changed {
		return
	}
	if r.wrong = s.renamed.check(ctx, o, content); r.wrong != nil {
		return
	}
	value, wrong := transform.Rewritten(ctx, o, key, content)
	if r.value = value; value == nil && wrong != nil {
		r.wrong = wrong
	}
}

// gather finds the secrets of all objects, in superseded records too. Undecodable values are
// reported later.
func gather(ctx context.Context, v *transform.View) (*redact.Shared, error) {
	type found struct {
		*transform.Entry
		secrets []redact.Secret
	}
	out, names := redact.NewShared(), map[string]bool{}
	if err := inspect.AddSecrets(ctx, v.Reader(), out); err != nil {
		return nil, err
	}
	out.Unsearched = 0 // live secrets are counted below
	item := func(e *transform.Entry) found { return found{Entry: e} }
	for f, err := range transform.Ahead(v, v.Live(ctx, nil), item, func(f *found) {
		if content, err := native.Decode(f.Value); f.Undecryptable == nil && err == nil {
			f.secrets = redact.SecretsIn(f.Key, content, redact.Thorough)
		}
	}) {
		if err != nil {
			return nil, err
		}
		if parsed, err := f.ParseKey(); err == nil {
			names[parsed.Namespace], names[parsed.Name] = true, true
		}
		for _, secret := range f.secrets {
			out.Add(secret)
		}
	}
	out.Settle(names)
	return out, nil
}

// replaceIn replaces the secrets of an object, then those of other objects.
func (s *sanitizer) replaceIn(r *record, content map[string]any) (changed bool) {
	changed = redact.With(r.Key, content, s.counting(r))
	return s.secrets.Replace(content, s.counting(r)) || changed
}

// counting returns a replace function that counts the replaced values in r.values.
func (s *sanitizer) counting(r *record) redact.Replace {
	m := masker{s.key, redact.NewUnpacker(), s.secrets}
	return func(part redact.Part, value any) any {
		r.values++
		return m.replace(part, value)
	}
}

// sanitizeRaw sanitizes the value of a key outside any known resource.
func (s *sanitizer) sanitizeRaw(r *record) {
	if s.names != nil {
		if to := s.names.inText(string(r.Key), func(string) {}); to != string(r.Key) {
			r.to = []byte(to)
		}
	}
	if len(r.Value) <= 20 && strings.Trim(string(r.Value), "0123456789") == "" { // as in compact_rev_key
		return
	}
	content, err := native.Decode(r.Value)
	if err != nil {
		r.wrong = err
		return
	}
	changed := s.replaceIn(r, content)
	if s.edit(r, content) || changed {
		r.name = "other keys"
		r.value, err = withContent(r.Entry, content)
		r.wrong = cmp.Or(r.wrong, err)
	}
}

// withContent returns the value of an entry with other content.
func withContent(e *transform.Entry, content map[string]any) ([]byte, error) {
	v, err := e.ParseValue()
	if err != nil || v.Format != encoding.FormatProtobuf {
		return encoding.Set(e.Value, content)
	}
	raw, err := native.Encode(v, content)
	if err != nil {
		return nil, err
	}
	return encoding.WithMessage(e.Value, raw)
}

// definitions maps types to their definitions with replaced names, such as names in an enum, for
// changed CustomResourceDefinitions only.
type definitions map[*inspect.Type]*inspect.Type

// definitions edits the definitions of the types.
func (s *sanitizer) definitions() (definitions, error) {
	out := definitions{}
	for _, t := range s.types.All() {
		if t.CRD == nil {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t.CRD.Object())
		if err != nil {
			return nil, fmt.Errorf("definition of %s: %w", t.Name(), err)
		}
		content["apiVersion"], content["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		edit := s.names.edit()
		if edit.object(content) != nil || edit.replaced == 0 { // the record of the definition reports the error
			continue
		}
		renamed := *t
		text, err := json.Marshal(content)
		if err == nil {
			renamed.CRD, err = schema.ParseCRD(text)
		}
		if err != nil {
			return nil, fmt.Errorf("definition of %s with names replaced: %w", t.Name(), err)
		}
		out[t] = &renamed
	}
	return out, nil
}

// check assigns an object to its changed definition. It returns an error if content violates the
// new schema where the object fitted the old schema.
func (d definitions) check(ctx context.Context, o *inspect.Object, content map[string]any) error {
	to := d[o.Type]
	if to == nil {
		return nil
	}
	invalid := func(t *inspect.Type, content map[string]any) ([]string, error) {
		apiVersion, _ := content["apiVersion"].(string)
		version, err := t.CRD.Version(apiVersion[strings.LastIndex(apiVersion, "/")+1:])
		if err != nil {
			return nil, err
		}
		wrong, _ := version.Invalid(ctx, content) // objects that cannot be checked are sanitized too
		return wrong, nil
	}
	wrong, err := invalid(to, content)
	if len(wrong) > 0 {
		had, _ := invalid(o.Type, o.Content)
		wrong = slices.DeleteFunc(wrong, func(field string) bool { return slices.Contains(had, field) })
	}
	if o.Type = to; len(wrong) > 0 {
		return fmt.Errorf("it does not fit the schema: %s", finding.List(wrong))
	}
	return err
}
