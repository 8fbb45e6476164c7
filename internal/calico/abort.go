package calico

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// abort takes back Calico's own live migration, like Calico's controller after deletion of an
// incomplete DatastoreMigration, but also later, until the clean-up has begun. The v1 records still
// exist: abort unlocks them and removes the objects made by the migration.
type abort struct {
	*crdSet
	migration
	set   bool                 // see Options.SetAPIGroup
	began time.Time            // zero if nothing was copied
	v1    map[string]*identity // v1 records by v3 key, until their v3 object is seen
	// UID of a removed v3 object -> the v1 record as clients see it; nil if the v1 record is gone.
	removed map[string]*encoding.OwnerReference
}

// planAbort plans one prefix. Where found is false there is no live migration.
func planAbort(s *store, o Options, _ *choices) (found, v1 bool, err error) {
	crds, err := loadV1(s)
	if err == nil {
		err = crds.findKinds(nil)
	}
	if err != nil {
		return false, false, err
	}
	a := &abort{crdSet: crds, set: o.SetAPIGroup, v1: map[string]*identity{},
		removed: map[string]*encoding.OwnerReference{}}
	// the only name on which the controller acts
	err = a.eachMigration(func(key string, live migration) {
		if live.meta.Name != migrationName {
			live.check(a.View, key)
			return
		}
		found, a.migration = true, live
		a.began, _ = time.Parse(time.RFC3339, text(live.status, "startedAt")) // zero if nothing was copied
	})
	if found && err == nil {
		err = a.plan()
	}
	return found, len(crds.old) > 0, err
}

// plan stages the abort, unless the clean-up has begun.
func (a *abort) plan() error {
	cleaned, err := a.cleaned()
	if cleaned || err != nil {
		return err
	}
	for _, step := range []func() error{
		a.pairV1, a.removeV3, a.missV3, a.remapOwners, a.unlock, a.restoreAPIService, a.resetComponents, a.endMigration,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// cleaned refuses a migration after the start of its clean-up: v1 records are being deleted, or
// gone.
func (a *abort) cleaned() (going bool, err error) {
	if len(a.old) == 0 {
		a.Raise(string(a.migrationKey()), codeAbortImpossible.Because("the snapshot has no CRD of %s: the v1 "+
			"data is gone", groupV1))
		return true, nil
	}
	for _, plural := range a.old {
		key := a.keyOf(plural, groupV1)
		entry, err := a.get(key)
		if err != nil {
			return false, err
		}
		if notThere(entry) != "" {
			going = true
			a.Raise(string(key), codeAbortImpossible.Because("the CRD is being deleted, and its v1 records with it"))
		}
	}
	return going, nil
}

func (s *store) migrationKey() []byte { return s.key(migrations(), "", migrationName) }

// pairV1 finds the v1 record of each v3 object. The live migration skipped unreadable v1 records,
// so they have no v3 object.
func (a *abort) pairV1() error {
	return stream.Each(a.scanV1(), func(s **scanned) error {
		if r := *s; r != nil && r.err == nil {
			a.v1[string(r.id.v3key(a.keys))] = r.id
		}
		return nil
	})
}

// madeByMigration reports whether the live migration made an object. Calico 3.32.0 and 3.32.1 wrote
// the name of the DatastoreMigration; later releases write its UID.
func (a *abort) madeByMigration(meta encoding.Meta) bool {
	mark := meta.Annotations[migratedByAnnotation]
	return mark != "" && (mark == a.meta.UID || mark == migrationName)
}

// removeV3 removes the v3 objects made by the live migration. Other objects stay and are reported.
func (a *abort) removeV3() error {
	return a.each(a.groupDir(groupV3), func(entry *transform.Entry) error {
		meta, err := encoding.ReadMeta(entry.Value)
		key, badKey := a.keys.Parse(entry.Key)
		lock := key.Resource.Resource == "clusterinformations"
		id := a.v1[string(entry.Key)]
		delete(a.v1, string(entry.Key))
		raise := func(f *finding.Finding) error { a.Raise(string(entry.Key), f); return nil }
		switch {
		case badKey != nil:
			return raise(finding.UnknownKey.Because("%v", badKey))
		case err != nil:
			return raise(transform.Unreadable(err))
		case a.madeByMigration(meta):
			return a.remove(entry, meta, id, lock)
		case lock && a.meta.UID != "" && meta.Annotations[lockedByAnnotation] == a.meta.UID:
			return a.setReady(entry.Key, true, lockedByAnnotation) // existed before the live migration locked it
		case !a.began.IsZero() && !meta.CreationTimestamp.Before(a.began):
			return raise(codeAbortLoses.Because("it was made on v3 after the live migration had begun: it stays, but " +
				"Calico reads v1"))
		}
		return raise(codeMigrationLeft.Because("the live migration did not make this v3 object: it stays, and Calico " +
			"does not read it"))
	})
}

// remove removes one v3 object. The controller creates objects with generation 1: a higher
// generation shows a later change of the spec. ClusterInformation is written by the controller
// itself.
func (a *abort) remove(entry *transform.Entry, meta encoding.Meta, id *identity, lock bool) error {
	reason := ""
	switch {
	case lock:
	case id == nil:
		reason = "its v1 record is not there any more"
	case meta.Generation > 1:
		reason = fmt.Sprintf("its spec was changed on v3 after the copy (generation %d)", meta.Generation)
	case !meta.DeletionTimestamp.IsZero():
		reason = "it is being deleted on v3; the v1 record is not"
	}
	if reason != "" {
		a.Raise(string(entry.Key), codeAbortLoses.Because("%s", reason))
		if obj, _, err := encoding.DecodeObject(entry.Value); err == nil { // otherwise a server cannot read it either
			if err := a.Save(a.ctx, entry.Key, obj); err != nil {
				return err
			}
		}
	}
	if a.removed[meta.UID] = nil; id != nil {
		a.removed[meta.UID] = &encoding.OwnerReference{APIVersion: apiVersionV3, Kind: id.kind.Kind,
			Name: id.name(), UID: id.seen()}
	}
	count(a.Report(), transform.KindCount{Kind: meta.Kind, From: apiVersionV3, To: apiVersionV1, Migrated: 1})
	return a.Delete(a.ctx, entry.Key)
}

// missV3 reports v1 records whose v3 object was deleted after the copy: these records become valid
// again.
func (a *abort) missV3() error {
	if a.phase != "Converged" && a.phase != "Complete" {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(a.v1)) {
		a.Raise(string(a.v1[key].key), codeAbortLoses.Because("its v3 object was deleted after the copy: this v1 "+
			"record is valid again"))
	}
	return nil
}

// remapOwners changes owner references of objects made on v3 to the form seen by v1 clients:
// otherwise a garbage collector deletes these objects.
func (a *abort) remapOwners() error {
	return a.eachReferrer(nil, func(entry *transform.Entry, _ string) error {
		var lost []string
		edit := func(ref encoding.OwnerReference) (encoding.OwnerReference, bool) {
			to, removed := a.removed[ref.UID]
			if _, ok := isCalico(ref.APIVersion); !ok || !removed {
				return ref, false
			}
			if to == nil {
				lost = append(lost, describe(ref, "its v1 record is not there any more"))
				return ref, false
			}
			ref.APIVersion, ref.Kind, ref.Name, ref.UID = to.APIVersion, to.Kind, to.Name, to.UID
			return ref, true
		}
		err := objects.EditOwners(a.ctx, a.View, entry, edit, nil)
		a.warnOwners(entry.Key, "the garbage collector will not find ", lost...)
		return err
	})
}

// unlock makes the v1 datastore ready. Calico's own abort leaves the datastore locked if nothing
// was copied yet.
func (a *abort) unlock() error {
	if a.underWay() || a.phase == "Complete" {
		return a.setReady(a.lockKey(), true)
	}
	return nil
}

// restoreAPIService restores the APIService that sends projectcalico.org/v3 to Calico's API server,
// in the form stored by a server's create.
func (a *abort) restoreAPIService() error {
	key := a.apiServiceKey(groupV3, "v3")
	if obj, _, err := a.read(key); err != nil || obj != nil && !automanaged(obj) {
		return err // it was not removed yet
	}
	saved := a.meta.Annotations[savedAPIService]
	if saved == "" {
		a.step("after the restore, apply APIService v3.%s from the manifest of Calico's API server, if you had one: "+
			"the live migration saved none", groupV3)
		return nil
	}
	obj, err := serviceOf(saved)
	if err != nil {
		a.Raise(string(a.migrationKey()), finding.Undecodable.Because("annotation %s: %v", savedAPIService, err))
		a.step("after the restore, apply APIService v3.%s from the manifest of Calico's API server", groupV3)
		return nil
	}
	uid, created, err := a.created(key)
	if err != nil {
		return err
	}
	meta := objectAt(obj, "metadata")
	meta["uid"], meta["creationTimestamp"] = uid, created.UTC().Format(time.RFC3339)
	value, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	if err == nil {
		err = a.put(key, value)
	}
	if err != nil {
		return err
	}
	service := objectAt(objectAt(obj, "spec"), "service")
	namespace, name := text(service, "namespace"), text(service, "name")
	entry, err := a.get(a.serviceKey(namespace, name))
	if entry == nil && err == nil {
		a.step("after the restore, install Calico's API server again: Service %s/%s is not in the snapshot, so %s "+
			"is not served", namespace, name, apiVersionV3)
	}
	return err
}

// serviceOf reads an APIService saved by the live migration, without its type and status.
func serviceOf(saved string) (map[string]any, error) {
	obj, _, err := encoding.DecodeObject([]byte(saved))
	switch {
	case err != nil:
		return nil, err
	case text(objectAt(obj, "metadata"), "name") != "v3."+groupV3 ||
		text(objectAt(objectAt(obj, "spec"), "service"), "name") == "":
		return nil, errors.New("it is not the APIService of Calico's API server")
	}
	obj["apiVersion"], obj["kind"], obj["status"] = "apiregistration.k8s.io/v1", "APIService", map[string]any{}
	return obj, nil
}

// resetComponents lets the components of a manifest install detect their group again: v1.
func (a *abort) resetComponents() error {
	found, err := findInstallation(a.store)
	if err != nil {
		return err
	}
	if found.operated() {
		a.step("after the restore, start the operator without %s (kubectl -n NAMESPACE set env "+
			"deployment/tigera-operator %s-): it rolls out Calico on %s",
			envAPIGroup, envAPIGroup, groupV1)
	}
	for _, c := range found.components {
		if found.managed(c) {
			continue
		}
		edit := func(container map[string]any) bool { return unsetEnv(container, envAPIGroup, apiVersionV3) }
		_, err := found.editWorkload(c, a.set, edit, fmt.Sprintf("before its pods start, remove %s from every "+
			"container and initContainer of %s", envAPIGroup, c))
		if err != nil {
			return err
		}
	}
	return nil
}

// endMigration deletes the DatastoreMigration: its controller would continue after the restore.
func (a *abort) endMigration() error {
	a.step("take DatastoreMigration %s out of GitOps, if it is there: applied again, it starts the live "+
		"migration again", migrationName)
	return a.Delete(a.ctx, a.migrationKey())
}
