package storageversion

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	storagemigration "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// sweep is the pass over every key of the prefix, for what does not belong to one kind: objects without a
// CustomResourceDefinition, owner references to versions that are gone, Helm releases that name them, and values to be encrypted
// anew.
func (r *run) sweep(ctx context.Context) error {
	gone := r.goneVersions()
	for e, err := range r.view.Below(ctx, r.keys.Prefix) {
		if err != nil {
			return err
		}
		if err := r.look(ctx, e, gone); err != nil {
			return err
		}
		if r.opts.Rewrap {
			if err := r.rewrap(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// look reports what is wrong with one value, and corrects its owner references. A value that no API server can read as what its
// key says is refused, whatever is in it.
func (r *run) look(ctx context.Context, e *transform.Entry, gone *versionsGone) error {
	key, err := r.keys.Parse(e.Key)
	if err != nil {
		return r.fixOwners(ctx, e, gone)
	}
	r.reportOrphan(e, key)
	if !r.ofDefinition(key) && !r.view.Readable(key, e) {
		return nil
	}
	r.reportHelm(e, key, gone)
	r.reportMigrator(e, key)
	return r.fixOwners(ctx, e, gone)
}

// ofDefinition says whether the value was looked at with its CustomResourceDefinition, also one that cannot be read, or is one.
func (r *run) ofDefinition(key keys.Key) bool {
	return key.Resource == keys.DefinitionType() || r.byResource[key.Resource] != nil ||
		slices.ContainsFunc(r.kinds, func(k *kind) bool { return k.crd == nil && k.name == key.Resource.String() })
}

// reportOrphan warns of a custom resource without a CustomResourceDefinition: no server serves it, none deletes it.
func (r *run) reportOrphan(e *transform.Entry, key keys.Key) {
	if keys.IsCustom(key.Resource) && !r.ofDefinition(key) {
		r.view.Raise(string(e.Key), codeOrphan.Because("no CustomResourceDefinition %s goes with it: no server serves it", key.Resource))
	}
}

// rewrap encrypts a value as the configuration says today. What no key opens is reported.
func (r *run) rewrap(ctx context.Context, e *transform.Entry) error {
	if e.Undecryptable != nil {
		r.view.Raise(string(e.Key), finding.Encrypted.Because("%v", e.Undecryptable))
		return nil
	}
	if !e.Stale {
		return nil
	}
	_, err := r.view.Rewrap(ctx, e.Key)
	return err
}

// reportStrays refuses encrypted values that lie under none of the prefixes: once the old key is thrown away they are lost.
func reportStrays(ctx context.Context, v *transform.View, prefixes []string) error {
	for e, err := range v.Live(ctx, nil) {
		if err != nil {
			return err
		}
		under := func(prefix string) bool { return bytes.HasPrefix(e.Key, []byte(prefix+"/")) }
		if encoding.Detect(e.Stored) == encoding.FormatEncrypted && !slices.ContainsFunc(prefixes, under) {
			v.Raise(string(e.Key), codeUnknownKey.Because("it is encrypted, and under none of the storage prefixes %s: name its own with --prefix", strings.Join(prefixes, ", ")))
		}
	}
	return nil
}

// reportMigrator warns of a migration that the cluster has begun and not ended.
func (r *run) reportMigrator(e *transform.Entry, key keys.Key) {
	if key.Resource != migratorResource() || e.Undecryptable != nil {
		return
	}
	v, err := encoding.Parse(e.Value)
	if err != nil {
		return // reported by look
	}
	var migration storagemigration.StorageVersionMigration
	if v.Format == encoding.FormatProtobuf {
		err = migration.Unmarshal(v.Raw)
	} else {
		err = json.Unmarshal(v.Raw, &migration)
	}
	running := slices.ContainsFunc(migration.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(storagemigration.MigrationRunning) && c.Status == metav1.ConditionTrue
	})
	if err == nil && running {
		r.view.Raise(string(e.Key), codeMigratorPending.Because("this StorageVersionMigration is running: restored, it goes on, and finds done what was migrated here"))
	}
}

func migratorResource() gvr.GroupResource {
	return gvr.GroupResource{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}
}
