package storageversion

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// The objects of a batch are decoded, converted and encoded in parallel, and sent to a converter in
// one call.
const (
	batchObjects = 256
	batchBytes   = 8 << 20  // of stored values; decoded ones take several times as much
	batchMemory  = 64 << 20 // of objects with their defaults; those beyond it wait
)

// progress is how far an object has come.
type progress int

const (
	begun progress = iota + 1
	finished
)

// migrateObjects stages every object of the kind that a no-op write would change.
func (r *run) migrateObjects(k *kind) {
	var batch []*object
	size := 0
	item := func(e *transform.Entry) *object { return &object{Entry: e, meter: r.View.Budget().Meter()} }
	for o, err := range transform.Ahead(r.View, r.View.Live(r.Ctx, r.dirs(k)[0]), item, func(o **object) { (*o).look(r, k) }) {
		if r.Failed(err) {
			return
		}
		batch = append(batch, *o)
		if size += len((*o).Value); len(batch) < batchObjects && size < batchBytes {
			continue
		}
		r.migrateBatch(k, batch)
		batch, size = nil, 0
	}
	r.migrateBatch(k, batch)
}

// migrateBatch takes some objects of a kind all the way, as many at once as fit in memory.
func (r *run) migrateBatch(k *kind, batch []*object) {
	begin := func(o *object) int {
		o.begin(k, r.opts)
		return encoding.Weigh(o.obj)
	}
	finish := func(o *object) int {
		o.finish(bounded.WithMeter(r.Ctx, o.meter), k, r.opts)
		return len(o.out)
	}
	r.each(batch, begun, begin, func(some []*object) {
		r.convert(k, some)
		r.each(some, finished, finish, func(some []*object) {
			for _, o := range some {
				if r.Err == nil {
					k.stored[r.stage(k, o)]++
				}
				o.out = nil
			}
		})
	})
}

// each works on objects in parallel, and gives then as many at a time as are done when the bytes
// that work returns reach batchMemory: defaults can turn a few bytes into megabytes. The cut
// depends on the workers, the results do not.
func (r *run) each(batch []*object, reached progress, work func(o *object) int, then func(some []*object)) {
	for len(batch) > 0 && r.Err == nil {
		var held atomic.Int64
		r.Failed(r.View.Parallel(r.Ctx, len(batch), func(i int) error {
			if o := batch[i]; o.reached < reached && (i == 0 || held.Load() < batchMemory) {
				held.Add(int64(work(o)))
				o.reached = reached
			}
			return nil
		}))
		n := 0
		for n < len(batch) && batch[n].reached >= reached {
			n++
		}
		then(batch[:n])
		batch = batch[n:]
	}
}

func (r *run) convert(k *kind, batch []*object) {
	var waiting []*object
	var objs []map[string]any
	for _, o := range batch {
		if o.refused == nil && o.told == nil && k.crd.NeedsWebhook(o.obj) {
			waiting, objs = append(waiting, o), append(objs, o.obj)
		}
	}
	if len(waiting) == 0 || r.Err != nil {
		return
	}
	converter := r.opts.Converters[k.group]
	if converter == nil {
		for _, o := range waiting {
			o.refuse(codeNeedsWebhook.Because("it is stored at %s, and only the conversion webhook of %s can bring it to %s",
				o.from, k.name, k.crd.StorageVersion()))
		}
		return
	}
	if k.stuck == "" {
		converted, err := converter.Convert(r.Ctx, k.crd.Object(), k.crd.StorageVersion(), objs)
		if r.Failed(r.Ctx.Err()) {
			return
		}
		if err == nil {
			r.Failed(accept(waiting, converted))
			return
		}
		k.stuck = err.Error()
	}
	for _, o := range waiting { // a converter that hangs would hang for each batch
		o.refuse(codeConversionFailed.Because("%s", k.stuck))
	}
}

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
			o.refuseObject(fmt.Errorf("the converter's answer: %w: by more than %d bytes", schema.ErrTooLarge, schema.MaxGrowth))
			continue
		}
		o.obj, o.converted = converted[i].Object, true
	}
	return nil
}

// stage reports the findings about an object, and stages it. It returns the version that the object
// is then stored at, "" for an unknown one.
func (r *run) stage(k *kind, o *object) string {
	c := k.at(o.from)
	c.found++
	refuse := func() string {
		c.refused++
		return k.versionOf(o.Entry)
	}
	r.used[Mapping{Group: o.mapping.Group, Old: o.mapping.Old}] = true
	if !o.meter.Take() {
		why := codeViolatesSchema.Because("it was not validated at %s: the schemas and rules of CustomResourceDefinitions cost %s",
			k.crd.StorageVersion(), r.View.Budget())
		o.invalid = []*finding.Finding{why}
	}
	for _, n := range slices.Concat(o.warnings, o.invalid) {
		r.Raise(string(o.Key), n)
	}
	if o.refused != nil {
		r.Raise(string(o.Key), o.refused)
		version := refuse()
		switch o.refused.Code {
		case finding.Undecodable, finding.Encrypted, codeUnknownKey, codeUnknownKind: // it is not sure
			version = ""
		}
		return version
	}
	if len(o.dropped) > 0 && !r.Raise(string(o.Key), codePrunedField.Because("the schemas do not know %s", finding.List(o.dropped))) {
		return refuse()
	}
	for _, version := range o.entries {
		k.entries[version]++
	}
	if !o.changed {
		c.unchanged++
		return k.storageVersion()
	}
	staged, err := r.View.Derive(r.Ctx, o.Key, o.Key, o.out)
	if r.Failed(err) || !staged {
		return refuse()
	}
	c.rewritten++
	if o.relabelled > 0 {
		k.managedFields++
	}
	return k.storageVersion()
}

// survey reports a kind that was not chosen and needs the migration.
func (r *run) survey(k *kind) {
	found := r.countVersions(k, r.dirs(k), false)
	for version, n := range found {
		k.at(version).found = n
	}
	behind := -found[k.storageVersion()]
	for _, n := range found {
		behind += n
	}
	reason := ""
	switch {
	case k.crd == nil:
		reason = "it cannot be read, so that the needs of its objects are unknown"
	case k.storageVersion() == "":
		reason = "none of its versions is the storage version, so that the needs of its objects are unknown"
	case behind > 0:
		reason = fmt.Sprintf("%d of its objects are not at the storage version %s (%s)", behind, k.storageVersion(), listCounts(found))
	default:
		if list, _ := trimmedList(k, found); !slices.Equal(list, k.before) {
			reason = fmt.Sprintf("storedVersions is %v; its objects say %v", k.before, list)
		}
	}
	if reason != "" {
		r.Raise(string(k.key), codeNotChosen.Because("%s", reason))
	}
}

// skip counts the objects of a kind that has to stay as it is.
func (r *run) skip(k *kind) {
	found := r.countVersions(k, r.dirs(k), true)
	for version, n := range found {
		*k.at(version) = counts{found: n, refused: n}
	}
	k.kept = "the CustomResourceDefinition cannot be worked with"
}

// object is one custom resource on its way.
type object struct {
	*transform.Entry
	parsed keys.Key
	from   string // the version it is stored at, "" where that is unknown

	obj       map[string]any
	format    encoding.Format
	mapping   Mapping // one that was given for its version
	reached   progress
	told      *schema.Told // of its bytes; nil for an object that is decoded
	converted bool         // by a converter
	refused   *finding.Finding
	warnings  []*finding.Finding
	invalid   []*finding.Finding // of validate
	meter     *bounded.Meter     // of rules
	dropped   []string           // paths of lost fields, each once

	out        []byte
	changed    bool
	relabelled int      // managedFields entries
	entries    []string // versions of the entries that were kept
}

func (o *object) warn(f *finding.Finding) { o.warnings = append(o.warnings, f) }

// refuse keeps the first reason.
func (o *object) refuse(f *finding.Finding) {
	if o.refused == nil {
		o.refused = f
	}
}

// refuseObject refuses an object that the CustomResourceDefinition cannot bring to what is stored.
func (o *object) refuseObject(err error) {
	if errors.Is(err, schema.ErrTooLarge) {
		o.refuse(codeInvalid.Because("%v", err))
	} else {
		o.refuse(finding.Undecodable.Because("%v", err))
	}
}
