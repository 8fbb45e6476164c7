package storageversion

import (
	"context"
	"slices"
	"strings"

	storagemigration "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// sweep is the pass over every key of the prefix, for objects without a CustomResourceDefinition,
// owner references and Helm releases with removed versions, and values to encrypt anew.
func (s *storage) sweep(ctx context.Context) error {
	gone, checked := goneVersions(s.kinds, s.opts.Release), sets.New(keys.DefinitionType())
	for _, k := range s.kinds { // the values of these kinds were checked with their definition
		checked.Insert(k.resource())
	}
	type swept struct {
		*transform.Entry
		concerned bool // its owner references may have to change
		renewal   *renewal
	}
	look := func(e *transform.Entry) (swept, bool) {
		if e.Layout() != keys.Layout(s.keys) {
			return swept{}, false
		}
		key, badKey := e.ParseKey()
		one := swept{e, gone.concerns(e), s.renewals.of(e)}
		return one, one.concerned || one.renewal != nil || s.opts.Rewrap && (e.Stale || e.Undecryptable != nil) ||
			badKey == nil && (mayRaise(key) ||
				!checked.Has(key.Resource) && (keys.IsCustom(key.Resource) || e.Check() != nil))
	}
	for e, err := range transform.Visit(ctx, s.View, []byte(s.keys.Prefix+"/"), look) {
		if err != nil {
			return err
		}
		key, badKey := e.ParseKey()
		readable := true
		if badKey == nil {
			if readable = checked.Has(key.Resource) || s.check(e.Entry, key); readable {
				s.reportMigrator(e.Entry, key)
			}
		}
		changed := false
		if readable && e.concerned {
			changed = true
			if err = s.fixOwners(ctx, e.Entry, gone); err == nil {
				e.Entry, err = s.Get(ctx, e.Key) // with its new references
			}
		}
		if err == nil && badKey == nil && readable {
			var staged bool
			staged, err = s.mapHelm(ctx, e.Entry, key, gone)
			changed = changed || staged
		}
		if err == nil && changed && s.renewals != nil {
			if e.Entry, err = s.Get(ctx, e.Key); err == nil {
				e.renewal = s.renewals.of(e.Entry)
			}
		}
		if err == nil && readable && e.renewal != nil {
			err = s.renew(ctx, e.Entry, e.renewal)
		}
		if err == nil && s.opts.Rewrap {
			err = s.rewrap(ctx, e.Entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayRaise reports whether mapHelm or reportMigrator may raise a finding for an object.
func mayRaise(key keys.Key) bool {
	return strings.HasPrefix(key.Name, objects.HelmPrefix) || key.Resource.String() == migrations
}

// check reports faults of a value without a definition in the storage, and returns whether the
// value is readable.
func (s *storage) check(e *transform.Entry, key keys.Key) bool {
	if keys.IsCustom(key.Resource) {
		s.Raise(string(e.Key), codeOrphan.Because("its CustomResourceDefinition %s is missing: no server serves it",
			key.Resource))
	}
	return s.Readable(e)
}

// rewrap encrypts a value by the present configuration, and reports an undecryptable value.
func (s *storage) rewrap(ctx context.Context, e *transform.Entry) (err error) {
	if e.Undecryptable != nil {
		s.Raise(string(e.Key), finding.Encrypted.Because("%v", e.Undecryptable))
	} else if e.Stale {
		_, err = s.Rewrap(ctx, e.Key)
	}
	return err
}

// reportStrays refuses encrypted values outside all storages: they are lost with the old key.
func reportStrays(ctx context.Context, v *transform.View, prefixes []string) error {
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return err
	}
	stray := func(e *transform.Entry) (*transform.Entry, bool) {
		in, found := layouts.Of(e.Key)
		migrated := found && slices.Contains(prefixes, in.Prefix)
		return e, !migrated && encoding.Detect(e.Stored) == encoding.FormatEncrypted
	}
	return stream.Each(transform.Visit(ctx, v, nil, stray), func(e *transform.Entry) error {
		v.Raise(string(e.Key), codeUnknownKey.Because("it is encrypted, and under none of the storage prefixes %s: "+
			"name its own with --prefix", strings.Join(prefixes, ", ")))
		return nil
	})
}

const migrations = "storageversionmigrations.storagemigration.k8s.io"

// reportMigrator warns of a migration that the cluster has begun and not ended.
func (s *storage) reportMigrator(e *transform.Entry, key keys.Key) {
	if key.Resource.String() != migrations || e.Undecryptable != nil {
		return
	}
	migration, err := native.As[storagemigration.StorageVersionMigration](e.ParseValue()) // check reports errors
	running := slices.ContainsFunc(migration.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(storagemigration.MigrationRunning) && c.Status == metav1.ConditionTrue
	})
	if err == nil && running {
		s.Raise(string(e.Key), codeMigratorPending.Because("this StorageVersionMigration is running: "+
			"after the restore it continues and finds these objects already migrated"))
	}
}
