package storageversion

import (
	"context"
	"slices"
	"strings"

	storagemigration "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// sweep is the pass over every key of the prefix, for objects without a CustomResourceDefinition,
// owner references and Helm releases that name versions which are gone, and values to be encrypted
// anew.
func (r *run) sweep() {
	gone := r.goneVersions()
	ask := func(e *transform.Entry) bool {
		if key, err := e.ParseKey(); err == nil && r.checks(key) {
			_ = e.Check() // the entry keeps the answer
		}
		return gone.concerns(e) // then owners may have to be moved
	}
	for e, err := range r.View.Ask(r.View.Below(r.Ctx, r.Keys.Prefix), ask) {
		if r.Failed(err) {
			return
		}
		if r.check(e.Entry, gone) && e.Yes {
			r.fixOwners(e.Entry, gone)
		}
		if r.opts.Rewrap {
			r.rewrap(e.Entry)
		}
		if r.Err != nil {
			return
		}
	}
}

// checks says whether values of the key's resource are checked here: those of definitions, and the
// definitions, were with their own.
func (r *run) checks(key keys.Key) bool {
	return key.Resource != keys.DefinitionType() && !r.defined.Has(key.Resource)
}

// check reports what is wrong with one value. It returns false for one that cannot be read.
func (r *run) check(e *transform.Entry, gone *versionsGone) bool {
	key, err := e.ParseKey()
	if err != nil {
		return true
	}
	if r.checks(key) {
		if keys.IsCustom(key.Resource) {
			r.Raise(string(e.Key), codeOrphan.Because("no CustomResourceDefinition %s goes with it: no server serves it", key.Resource))
		}
		if !r.View.Readable(e) {
			return false
		}
	}
	r.reportHelm(e, key, gone)
	r.reportMigrator(e, key)
	return true
}

// rewrap encrypts a value as the configuration says today, and reports an undecryptable one.
func (r *run) rewrap(e *transform.Entry) {
	if e.Undecryptable != nil {
		r.Raise(string(e.Key), finding.Encrypted.Because("%v", e.Undecryptable))
	} else if e.Stale && r.Err == nil {
		_, err := r.View.Rewrap(r.Ctx, e.Key)
		r.Failed(err)
	}
}

// reportStrays refuses encrypted values in none of the storages: they are lost with the old key.
func reportStrays(ctx context.Context, v *transform.View, prefixes []string) error {
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return err
	}
	for e, err := range v.Live(ctx, nil) {
		if err != nil {
			return err
		}
		in, found := layouts.Of(e.Key)
		if encoding.Detect(e.Stored) == encoding.FormatEncrypted && !(found && slices.Contains(prefixes, in.Prefix)) {
			v.Raise(string(e.Key), codeUnknownKey.Because("it is encrypted, and under none of the storage prefixes %s: name its own with --prefix",
				strings.Join(prefixes, ", ")))
		}
	}
	return nil
}

// reportMigrator warns of a migration that the cluster has begun and not ended.
func (r *run) reportMigrator(e *transform.Entry, key keys.Key) {
	if key.Resource.String() != "storageversionmigrations.storagemigration.k8s.io" || e.Undecryptable != nil {
		return
	}
	migration, err := native.As[storagemigration.StorageVersionMigration](e.ParseValue()) // check reports errors
	running := slices.ContainsFunc(migration.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(storagemigration.MigrationRunning) && c.Status == metav1.ConditionTrue
	})
	if err == nil && running {
		r.Raise(string(e.Key), codeMigratorPending.Because("this StorageVersionMigration is running: "+
			"restored, it goes on, and finds done what was migrated here"))
	}
}
