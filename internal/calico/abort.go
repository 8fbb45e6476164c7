package calico

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// abort takes Calico's own live migration back, as its controller does when the DatastoreMigration
// is deleted before it is complete, and also after that, until the clean-up has begun. The v1
// records are where they were: they are unlocked, and what the migration made is removed.
type abort struct {
	*run
	migration
	began time.Time            // zero for one that has copied nothing
	v1    map[string]*identity // v1 records whose v3 object was not seen yet, by its key
	// By the UID of a removed v3 object: the v1 record as clients see it; nil where it is gone.
	removed map[string]*encoding.OwnerReference
}

// abort plans one prefix. Where found is false there is no live migration.
func (m *run) abort() (found bool) {
	m.others = m.beginOthers()
	m.crds.loadV1()
	m.crds.findKinds(nil)
	a := &abort{run: m, v1: map[string]*identity{}, removed: map[string]*encoding.OwnerReference{}}
	if !a.find() {
		return false
	}
	if !a.cleaned() {
		for _, step := range []func(){
			a.pairV1, a.removeV3, a.missV3, a.remapOwners, a.unlock, a.restoreAPIService, a.resetComponents, a.endMigration,
		} {
			if m.Err == nil {
				step()
			}
		}
	}
	return true
}

// find looks for the DatastoreMigration that the controller acts on.
func (a *abort) find() (found bool) {
	a.eachMigration(func(key string, live migration) {
		if live.meta.Name != migrationName {
			live.check(a.View, key)
			return
		}
		found, a.migration = true, live
		a.began, _ = time.Parse(time.RFC3339, text(live.status, "startedAt")) // zero where nothing was copied
	})
	return found
}

// cleaned refuses a migration whose clean-up has begun: v1 records go, or are gone.
func (a *abort) cleaned() bool {
	if len(a.crds.old) == 0 {
		a.Raise(string(a.key()), codeAbortImpossible.Because("the snapshot has no CRD of %s: the v1 data is gone", groupV1))
		return true
	}
	going := false
	for _, plural := range a.crds.old {
		key := a.crds.key(plural, groupV1)
		if notThere(a.Get(key)) != "" {
			going = true
			a.Raise(string(key), codeAbortImpossible.Because("the CRD is being deleted, and its v1 records with it"))
		}
	}
	return going
}

// key is that of the DatastoreMigration.
func (a *abort) key() []byte {
	return a.Keys.Format(keys.Key{Resource: migrations(), Name: migrationName})
}

// pairV1 finds the v1 record of each v3 object. A record that gives none has no v3 object either:
// the live migration skipped it.
func (a *abort) pairV1() {
	for entry := range a.Live(groupDir(a.Keys, groupV1)) {
		if r := a.record(entry); r != nil && r.identify() == nil {
			a.v1[string(r.id.v3key(a.Keys))] = r.id
		}
	}
}

// made says whether the live migration made an object. Calico 3.32.0 and 3.32.1 wrote the name of
// the DatastoreMigration, later releases write its UID.
func (a *abort) made(meta encoding.Meta) bool {
	mark := meta.Annotations[migratedByAnnotation]
	return mark != "" && (mark == a.meta.UID || mark == migrationName)
}

// removeV3 removes the v3 objects that the live migration made. The others stay, and are named.
func (a *abort) removeV3() {
	for entry := range a.Live(groupDir(a.Keys, groupV3)) {
		meta, err := encoding.ReadMeta(entry.Value)
		key, badKey := a.Keys.Parse(entry.Key)
		lock := key.Resource.Resource == "clusterinformations"
		id := a.v1[string(entry.Key)]
		delete(a.v1, string(entry.Key))
		switch {
		case badKey != nil:
			a.Raise(string(entry.Key), finding.UnknownKey.Because("%v", badKey))
		case err != nil:
			a.Raise(string(entry.Key), transform.Unreadable(err))
		case a.made(meta):
			a.remove(entry, meta, id, lock)
		case lock && a.meta.UID != "" && meta.Annotations[lockedByAnnotation] == a.meta.UID:
			a.release(entry)
		case !a.began.IsZero() && !meta.CreationTimestamp.Before(a.began):
			a.Raise(string(entry.Key), codeAbortLoses.Because("it was made on v3 after the live migration had begun: it stays, but Calico reads v1"))
		default:
			a.Raise(string(entry.Key), codeMigrationLeft.Because("the live migration did not make this v3 object: it stays, and Calico does not read it"))
		}
	}
}

// remove removes one v3 object. The controller creates it with generation 1: a higher one says that
// somebody changed the spec. ClusterInformation is written by the controller itself.
func (a *abort) remove(entry *transform.Entry, meta encoding.Meta, id *identity, lock bool) {
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
		a.save(entry)
	}
	if a.removed[meta.UID] = nil; id != nil {
		a.removed[meta.UID] = &encoding.OwnerReference{APIVersion: apiVersionV3, Kind: id.kind.Kind, Name: id.name(), UID: id.seen()}
	}
	a.count(meta.Kind)
	a.Delete(entry.Key)
}

// save keeps an object in the report.
func (a *abort) save(entry *transform.Entry) {
	obj, _, err := encoding.DecodeObject(entry.Value)
	if err != nil {
		return // its metadata was read; the server could not read the rest either
	}
	a.Failed(a.View.Save(a.Ctx, entry.Key, obj))
}

// count counts an object that is taken back.
func (a *abort) count(kind string) {
	r := a.View.Report()
	i := slices.IndexFunc(r.Kinds, func(c transform.KindCount) bool { return c.Kind == kind })
	if i < 0 {
		i = len(r.Kinds)
		r.Kinds = append(r.Kinds, transform.KindCount{Kind: kind, From: apiVersionV3, To: apiVersionV1})
	}
	r.Kinds[i].Migrated++
}

// missV3 reports v1 records whose v3 object was deleted once all were copied: they come back.
func (a *abort) missV3() {
	if a.phase != "Converged" && a.phase != "Complete" {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(a.v1)) {
		a.Raise(string(a.v1[key].key), codeAbortLoses.Because("its v3 object was deleted after the copy: this v1 record is valid again"))
	}
}

// remapOwners has objects made on v3 name their owners as clients of v1 see them: else a garbage
// collector deletes those objects.
func (a *abort) remapOwners() {
	a.eachOther(mayReferToCalico, func(entry *transform.Entry, _ string) {
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
		a.Failed(a.View.EditOwners(a.Ctx, entry, edit, nil))
		a.warnOwners(entry.Key, "the garbage collector will not find ", lost...)
	})
}

// unlock makes the v1 datastore ready. Calico's own abort leaves it locked where the migration had
// not begun to copy.
func (a *abort) unlock() {
	if a.underWay() || a.phase == "Complete" {
		a.setReady(a.lockKey(), true)
	}
}

// release makes a v3 ClusterInformation ready that the live migration had found and locked.
func (a *abort) release(entry *transform.Entry) {
	a.setReady(entry.Key, true, lockedByAnnotation)
}

// restoreAPIService puts the APIService back that sends projectcalico.org/v3 to Calico's API
// server, as a server's create would store it.
func (a *abort) restoreAPIService() {
	key := a.apiServiceKey(groupV3, "v3")
	if obj, _ := a.Read(key); obj != nil && !automanaged(obj) {
		return // it was not removed yet
	}
	saved := a.meta.Annotations[savedAPIService]
	if saved == "" {
		a.Step("after the restore, apply APIService v3.%s from the manifest of Calico's API server, if you had one: the live migration saved none", groupV3)
		return
	}
	obj, err := serviceOf(saved)
	if err != nil {
		a.Raise(string(a.key()), finding.Undecodable.Because("annotation %s: %v", savedAPIService, err))
		a.Step("after the restore, apply APIService v3.%s from the manifest of Calico's API server", groupV3)
		return
	}
	created, err := a.View.Time(a.Ctx)
	digest, err2 := a.View.InputDigest(a.Ctx)
	if a.Failed(cmp.Or(err, err2)) {
		return
	}
	meta := objectAt(obj, "metadata")
	meta["uid"], meta["creationTimestamp"] = mintUID(digest, key), created.UTC().Format(time.RFC3339)
	if value, err := encoding.EncodeObject(obj, encoding.FormatJSON); !a.Failed(err) {
		a.Put(key, value)
	}
	a.needService(objectAt(objectAt(obj, "spec"), "service"))
}

// serviceOf reads an APIService that the live migration saved, without its type and its status.
func serviceOf(saved string) (map[string]any, error) {
	obj, _, err := encoding.DecodeObject([]byte(saved))
	switch {
	case err != nil:
		return nil, err
	case text(objectAt(obj, "metadata"), "name") != "v3."+groupV3 || text(objectAt(objectAt(obj, "spec"), "service"), "name") == "":
		return nil, errors.New("it is not the APIService of Calico's API server")
	}
	obj["apiVersion"], obj["kind"], obj["status"] = "apiregistration.k8s.io/v1", "APIService", map[string]any{}
	return obj, nil
}

// needService adds a step where Calico's API server is not in the snapshot.
func (a *abort) needService(service map[string]any) {
	namespace, name := text(service, "namespace"), text(service, "name")
	key := keys.Key{Resource: schema.GroupResource{Resource: "services"}, Namespace: namespace, Name: name}
	if a.Get(a.Keys.Format(key)) == nil {
		a.Step("after the restore, install Calico's API server again: Service %s/%s is not in the snapshot, so %s is not served", namespace, name, apiVersionV3)
	}
}

// resetComponents has the components of a manifest install choose their group by what is there,
// which is v1 again.
func (a *abort) resetComponents() {
	found := a.findInstallation()
	if found.operated() {
		a.Step("after the restore, start the operator without %s (kubectl -n NAMESPACE set env deployment/tigera-operator %s-): it rolls out Calico on %s",
			envAPIGroup, envAPIGroup, groupV1)
	}
	for _, c := range found.components {
		if !found.managed(c) {
			a.resetWorkload(c)
		}
	}
}

func (a *abort) resetWorkload(c component) {
	value, changed, err := c.value, []string(nil), c.unreadable
	if err == nil {
		value, changed, err = unsetPodEnv(c.value, envAPIGroup, apiVersionV3)
	}
	switch {
	case err != nil:
		a.Raise(string(c.key), transform.Unreadable(err))
	case len(changed) > 0 && a.opts.SetAPIGroup:
		a.Put(c.key, value)
		return
	case len(changed) == 0:
		return
	}
	a.Step("before its pods start, remove %s from every container and initContainer of %s", envAPIGroup, c)
}

// endMigration deletes the DatastoreMigration: its controller would go on after the restore.
func (a *abort) endMigration() {
	a.Delete(a.key())
	a.Step("take DatastoreMigration %s out of GitOps, if it is there: applied again, it starts the live migration again", migrationName)
}
