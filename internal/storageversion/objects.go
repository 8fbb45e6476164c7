package storageversion

import (
	"context"
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
	batchBytes   = 8 << 20  // of stored values; decoded values take several times as much
	batchMemory  = 64 << 20 // of objects with their defaults; objects beyond the limit wait
)

// progress is the number of finished phases of an object.
type progress int

const (
	begun progress = iota + 1
	finished
)

// migrateObjects stages every object of the kind that a no-op write would change.
func (s *storage) migrateObjects(ctx context.Context, k *kind) error {
	var batch []*object
	size := 0
	ruleless := bounded.WithMeter(ctx, bounded.Exhausted()) // the cost of rules counts in the order of the objects
	look := func(e *transform.Entry) (*object, bool) {
		o := &object{Entry: e}
		o.look(ruleless, s.keys, k, s.opts)
		return o, true
	}
	for o, err := range transform.Visit(ctx, s.View, s.dirs(k)[0], look) {
		if err != nil {
			return err
		}
		o.meter = s.Budget().Meter()
		batch = append(batch, o)
		if size += len(o.Value); len(batch) < batchObjects && size < batchBytes {
			continue
		}
		if err := s.migrateBatch(ctx, k, batch); err != nil {
			return err
		}
		batch, size = nil, 0
	}
	return s.migrateBatch(ctx, k, batch)
}

// migrateBatch decodes, converts, encodes and stages a batch of objects, with as many objects in
// memory as fit.
func (s *storage) migrateBatch(ctx context.Context, k *kind, batch []*object) error {
	begin := func(o *object) int {
		o.begin(k, s.opts)
		return encoding.Weigh(o.obj)
	}
	finish := func(o *object) int {
		o.finish(bounded.WithMeter(ctx, o.meter), k, s.opts)
		return len(o.out)
	}
	return s.each(ctx, batch, begun, begin, func(some []*object) error {
		if err := s.convert(ctx, k, some); err != nil {
			return err
		}
		return s.each(ctx, some, finished, finish, func(some []*object) error {
			for _, o := range some {
				version, err := s.stage(ctx, k, o)
				if err != nil {
					return err
				}
				k.stored[version]++
				o.out = nil
			}
			return nil
		})
	})
}

// each calls work for objects in parallel, and then for the finished objects whenever the bytes
// returned by work reach batchMemory: defaults can turn a few bytes into megabytes. The parts
// depend on the workers, the results do not.
func (s *storage) each(
	ctx context.Context, batch []*object, reached progress, work func(o *object) int, then func(some []*object) error,
) error {
	for len(batch) > 0 {
		var held atomic.Int64
		var err error
		if slices.ContainsFunc(batch, func(o *object) bool { return o.reached < reached }) {
			err = s.Parallel(ctx, len(batch), func(i int) error {
				if o := batch[i]; o.reached < reached && (i == 0 || held.Load() < batchMemory) {
					held.Add(int64(work(o)))
					o.reached = reached
				}
				return nil
			})
		}
		n := 0
		for n < len(batch) && batch[n].reached >= reached {
			n++
		}
		if err == nil {
			err = then(batch[:n])
		}
		if err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// convert converts the objects to the storage version that only a webhook can convert.
func (s *storage) convert(ctx context.Context, k *kind, batch []*object) error {
	var waiting []*object
	var objs []map[string]any
	for _, o := range batch {
		if o.refused == nil && o.told == nil && k.crd.NeedsWebhook(o.obj) {
			waiting, objs = append(waiting, o), append(objs, o.obj)
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	converter := s.opts.Converters[k.group]
	if converter == nil {
		for _, o := range waiting {
			o.refuse(codeNeedsWebhook.Because("it is stored at %s, and only the conversion webhook of %s can "+
				"bring it to %s",
				o.from, k.row.CRD, k.crd.StorageVersion()))
		}
		return nil
	}
	if k.stuck == "" {
		converted, err := converter.Convert(ctx, k.crd.Object(), k.crd.StorageVersion(), objs)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return accept(waiting, converted)
		}
		k.stuck = err.Error()
	}
	for _, o := range waiting { // a hanging converter would hang for each batch
		o.refuse(codeConversionFailed.Because("%s", k.stuck))
	}
	return nil
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
			o.refuseObject(fmt.Errorf("the converter's answer: %w: by more than %d bytes", schema.ErrTooLarge,
				schema.MaxGrowth))
			continue
		}
		o.obj, o.converted = converted[i].Object, true
	}
	return nil
}

// stage reports the findings about an object, and stages the object. stage returns the resulting
// stored version; "" for unknown.
func (s *storage) stage(ctx context.Context, k *kind, o *object) (string, error) {
	n := k.at(o.from)
	k.row.Found[o.from]++
	s.used[Mapping{Group: o.mapping.Group, Old: o.mapping.Old}] = true
	if !o.meter.Take() {
		why := codeViolatesSchema.Because("it was not validated at %s: the schemas and rules of "+
			"CustomResourceDefinitions cost %s",
			k.crd.StorageVersion(), s.Budget())
		o.invalid = []*finding.Finding{why}
	}
	for _, f := range slices.Concat(o.warnings, o.invalid) {
		s.Raise(string(o.Key), f)
	}
	stays := o.refused != nil
	switch {
	case stays:
		s.Raise(string(o.Key), o.refused)
	case len(o.dropped) > 0:
		stays = !s.Raise(string(o.Key), codePrunedField.Because("the schemas do not know %s", finding.List(o.dropped)))
	}
	if !stays {
		for _, version := range o.entries {
			k.entries[version]++
		}
		if !o.changed {
			n.Unchanged++
			return k.storageVersion(), nil
		}
		staged, err := s.Derive(ctx, o.Key, o.Key, o.out)
		if err != nil {
			return "", err
		}
		stays = !staged
	}
	if stays {
		n.Skipped++
		if o.unsure() {
			return "", nil
		}
		return k.versionOf(o.Entry), nil
	}
	n.Migrated++
	if o.relabelled > 0 {
		k.row.ManagedFields++
	}
	return k.storageVersion(), nil
}

// survey reports a kind that was not chosen and needs the migration.
func (s *storage) survey(ctx context.Context, k *kind) (err error) {
	if k.row.Found, err = s.countVersions(ctx, k, s.dirs(k), false); err != nil {
		return err
	}
	behind := -k.row.Found[k.storageVersion()]
	for _, n := range k.row.Found {
		behind += n
	}
	reason := ""
	switch {
	case k.crd == nil:
		reason = "it cannot be read, so that the needs of its objects are unknown"
	case k.storageVersion() == "":
		reason = "none of its versions is the storage version, so that the needs of its objects are unknown"
	case behind > 0:
		reason = fmt.Sprintf("%d of its objects are not at the storage version %s (%s)", behind, k.storageVersion(),
			listCounts(k.row.Found))
	default:
		if list, _ := trimmedList(k, k.row.Found); !slices.Equal(list, k.row.StoredVersions.Before) {
			reason = fmt.Sprintf("storedVersions is %v; its objects say %v", k.row.StoredVersions.Before, list)
		}
	}
	if reason != "" {
		s.Raise(string(k.key), codeNotChosen.Because("%s", reason))
	}
	return nil
}

// skip counts the objects of a kind that has to stay unchanged.
func (s *storage) skip(ctx context.Context, k *kind) (err error) {
	k.row.StoredVersions.Kept = "the CustomResourceDefinition cannot be worked with"
	k.row.Found, err = s.countVersions(ctx, k, s.dirs(k), true)
	for version, n := range k.row.Found {
		k.at(version).Skipped = n
	}
	return err
}

// object is one custom resource during its migration.
type object struct {
	*transform.Entry
	parsed keys.Key
	from   string // the stored version; "" if unknown

	obj       map[string]any
	format    encoding.Format
	mapping   Mapping // the given mapping for its version
	reached   progress
	told      *schema.Told // facts from its bytes; nil for a decoded object
	converted bool         // by a converter
	refused   *finding.Finding
	warnings  []*finding.Finding
	invalid   []*finding.Finding // from validate
	meter     *bounded.Meter     // of rules
	dropped   []string           // paths of lost fields, each once

	out        []byte
	changed    bool
	relabelled int      // number of managedFields entries
	entries    []string // versions of the kept entries
}

func (o *object) warn(f *finding.Finding) { o.warnings = append(o.warnings, f) }

// refuse keeps the first reason.
func (o *object) refuse(f *finding.Finding) {
	if o.refused == nil {
		o.refused = f
	}
}

// unsure reports whether the version of a refused object is unknown.
func (o *object) unsure() bool {
	return o.refused != nil &&
		slices.Contains([]*finding.Code{finding.Undecodable, finding.Encrypted, codeUnknownKey, codeUnknownKind},
			o.refused.Code)
}

// refuseObject refuses an object that the CustomResourceDefinition cannot encode.
func (o *object) refuseObject(err error) {
	if errors.Is(err, schema.ErrTooLarge) {
		o.refuse(codeInvalid.Because("%v", err))
	} else {
		o.refuse(finding.Undecodable.Because("%v", err))
	}
}
