package storageversion

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// A batch is what is worked on at once: its objects are decoded, converted and encoded side by side, and asked of a converter
// in one call.
const (
	batchObjects = 256
	batchBytes   = 8 << 20  // of stored values; decoded ones take several times as much
	batchMemory  = 64 << 20 // of objects with their defaults; those beyond it wait
)

// phase is how far an object has come.
type phase int

const (
	begun phase = iota + 1
	finished
)

// migrateObjects stages every object of the kind that is not yet what a no-op write would leave.
func (r *run) migrateObjects(ctx context.Context, k *kind) error {
	var batch []*object
	size := 0
	for e, err := range r.view.Live(ctx, r.dir(k)) {
		if err != nil {
			return err
		}
		o := &object{key: e.Key, value: e.Value}
		if o.parsed, err = r.keys.Parse(e.Key); err != nil {
			o.refuse(codeUnknownKey.Because("%v", err))
		}
		if e.Undecryptable != nil {
			o.refuse(transform.Unreadable(e.Undecryptable))
		}
		batch = append(batch, o)
		if size += len(e.Value); len(batch) < batchObjects && size < batchBytes {
			continue
		}
		if err := r.migrateBatch(ctx, k, batch); err != nil {
			return err
		}
		batch, size = nil, 0
	}
	return r.migrateBatch(ctx, k, batch)
}

// migrateBatch takes some objects of a kind all the way, as many at once as there is room for.
func (r *run) migrateBatch(ctx context.Context, k *kind, batch []*object) error {
	for len(batch) > 0 {
		n, err := r.each(ctx, batch, begun, func(o *object) int {
			o.begin(k, r.opts)
			return encoding.Weigh(o.obj)
		})
		if err != nil {
			return err
		}
		if err := r.convert(ctx, k, batch[:n]); err != nil {
			return err
		}
		if err := r.finishBatch(ctx, k, batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// finishBatch makes and stages the values of objects that were converted.
func (r *run) finishBatch(ctx context.Context, k *kind, batch []*object) error {
	for len(batch) > 0 {
		n, err := r.each(ctx, batch, finished, func(o *object) int {
			o.finish(ctx, k, r.opts)
			return len(o.out)
		})
		if err != nil {
			return err
		}
		for _, o := range batch[:n] {
			if err := r.stage(ctx, k, o); err != nil {
				return err
			}
			o.out = nil
		}
		batch = batch[n:]
	}
	return nil
}

// each brings the objects of a batch to a phase, side by side, until the bytes that work returns reach batchMemory. It returns
// how many objects from the first on are there, at least one: defaults can turn a few bytes into megabytes. The workers decide
// where the batch is cut, but not what becomes of an object.
func (r *run) each(ctx context.Context, batch []*object, reached phase, work func(o *object) int) (n int, err error) {
	var held atomic.Int64
	err = r.view.Parallel(ctx, len(batch), func(i int) error {
		if o := batch[i]; o.phase < reached && (i == 0 || held.Load() < batchMemory) {
			held.Add(int64(work(o)))
			o.phase = reached
		}
		return nil
	})
	for n < len(batch) && batch[n].phase >= reached {
		n++
	}
	return n, err
}

// convert has the objects converted that only a webhook can.
func (r *run) convert(ctx context.Context, k *kind, batch []*object) error {
	var waiting []*object
	var objs []map[string]any
	for _, o := range batch {
		if o.refused == nil && k.crd.NeedsWebhook(o.obj) {
			waiting, objs = append(waiting, o), append(objs, o.obj)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	converter := r.opts.Converters[k.group]
	if converter == nil {
		for _, o := range waiting {
			o.refuse(codeNeedsWebhook.Because("it is stored at %s, and only the conversion webhook of %s can bring it to %s", o.from, k.name, k.crd.StorageVersion()))
		}
		return nil
	}
	if k.stuck == "" {
		converted, err := converter.Convert(ctx, k.crd.Object(), k.crd.StorageVersion(), objs)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			return accept(waiting, converted)
		}
		k.stuck = err.Error()
	}
	for _, o := range waiting { // a converter that hangs would hang for each batch
		o.refuse(codeConversionFailed.Because("%s", k.stuck))
	}
	return nil
}

// accept takes the converter's answers over.
func accept(waiting []*object, converted []conversion.Converted) error {
	if len(converted) != len(waiting) {
		return fmt.Errorf("conversion: objects sent: %[2]d, answers: %[1]d", len(converted), len(waiting))
	}
	for i, o := range waiting {
		if converted[i].Err != nil {
			o.refuse(codeConversionFailed.Because("%v", converted[i].Err))
			continue
		}
		if encoding.Weigh(converted[i].Object)-encoding.Weigh(o.obj) > schema.MaxGrowth {
			o.refuse(refuseObject(fmt.Errorf("the converter's answer: %w: by more than %d bytes", schema.ErrTooLarge, schema.MaxGrowth)))
			continue
		}
		o.obj, o.converted = converted[i].Object, true
	}
	return nil
}

// stage reports what was found of an object, and stages it.
func (r *run) stage(ctx context.Context, k *kind, o *object) error {
	k.found[o.from]++
	r.used[o.mapping] = true
	for _, n := range o.warnings {
		r.view.Raise(string(o.key), n)
	}
	if o.refused != nil {
		k.refused[o.from]++
		if unread(o.refused) {
			k.unread[string(o.key)] = true
		}
		r.view.Raise(string(o.key), o.refused)
		return nil
	}
	if len(o.dropped) > 0 && !r.view.Raise(string(o.key), codePrunedField.Because("the schemas do not know %s", finding.List(o.dropped))) {
		k.refused[o.from]++
		return nil
	}
	for _, version := range o.entries {
		k.entries[version]++
	}
	if !o.changed {
		k.unchanged[o.from]++
		return nil
	}
	staged, err := r.view.Derive(ctx, o.key, o.key, o.out, "at storage version "+k.crd.StorageVersion())
	switch {
	case err != nil:
		return err
	case !staged:
		k.refused[o.from]++
	default:
		k.rewritten[o.from]++
		if o.relabelled > 0 {
			k.managedFields++
		}
	}
	return nil
}

// survey looks for what a kind that was not chosen would need.
func (r *run) survey(ctx context.Context, k *kind) error {
	found, unread, err := r.count(ctx, k)
	if err != nil {
		return err
	}
	if k.storageVersion() == "" {
		reason := "it cannot be read"
		if k.crd != nil {
			reason = "none of its versions is the storage version"
		}
		r.view.Raise(string(k.key), codeNotChosen.Because("%s, so that nobody can tell what its objects need", reason))
		return nil
	}
	behind := unread
	for version, n := range found {
		if version != k.storageVersion() {
			behind += n
		}
	}
	list, _ := settledList(k, found, unread)
	switch {
	case behind > 0:
		r.view.Raise(string(k.key), codeNotChosen.Because("%d of its objects are not at the storage version %s (%s)", behind, k.crd.StorageVersion(), describe(found, unread)))
	case !slices.Equal(list, k.before):
		r.view.Raise(string(k.key), codeNotChosen.Because("storedVersions is %v; its objects say %v", k.before, list))
	}
	return nil
}

// leave counts the objects of a kind that has to stay as it is.
func (r *run) leave(ctx context.Context, k *kind) error {
	if _, _, err := r.count(ctx, k); err != nil {
		return err
	}
	for _, dir := range r.dirs(k) {
		for e, err := range r.view.Live(ctx, dir) {
			if err != nil {
				return err
			}
			if _, err := encoding.Parse(e.Value); err != nil {
				r.view.Raise(string(e.Key), transform.Unreadable(cmp.Or(e.Undecryptable, err)))
			}
		}
	}
	k.refused, k.kept = k.found, "the CustomResourceDefinition cannot be worked with"
	return nil
}

// count is countVersions for the report.
func (r *run) count(ctx context.Context, k *kind) (found map[string]int, unread int, err error) {
	if found, unread, err = r.countVersions(ctx, k); err != nil {
		return nil, 0, err
	}
	k.found = maps.Clone(found)
	if unread > 0 {
		k.found[""] = unread
	}
	return found, unread, nil
}

// object is one custom resource on its way.
type object struct {
	key    []byte
	parsed keys.Key
	value  []byte
	from   string // the version it is stored at, "" where nobody can tell

	obj       map[string]any
	format    encoding.Format
	mapped    string  // the apiVersion that took the place of the stored one, "" where none did
	mapping   Mapping // group and old version, where one was given for it
	phase     phase
	converted bool // by a converter
	refused   *finding.Finding
	warnings  []*finding.Finding
	dropped   []string // paths of fields that get lost, each once
	lost      map[string]bool

	out        []byte
	changed    bool
	relabelled int      // managedFields entries
	entries    []string // versions that those name which were left
}

func (o *object) warn(f *finding.Finding) { o.warnings = append(o.warnings, f) }

func (o *object) refuse(r *finding.Finding) {
	if o.refused == nil {
		o.refused = r
	}
}
