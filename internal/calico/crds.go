package calico

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// crdSet holds Calico's CRDs of a snapshot and of a release manifest.
type crdSet struct {
	*store
	accept  map[string]*schema.CRD     // usable v3 CRDs with v3 as storage version, by plural
	before  map[string]*schema.Version // v1 of the v1 CRDs read so far, by plural; nil if unusable
	taken   []*schema.CRD              // CRDs of the manifest missing in the snapshot
	old     []string                   // plurals of the CRDs in the v1 group, sorted
	kinds   kindSet
	records int // v1 records with a v3 kind
	strange int // v1 records without a v3 kind
}

// loadCRDs reads and checks the CRDs of both groups: each of the 22 v3 CRDs must be in the snapshot
// or in manifest (YAML of a release; nil for none), and must serve and store v3. The same holds for
// v3 CRDs of other kinds with a v1 CRD. Other objects of the manifest become steps for after the
// restore. loadCRDs stages nothing.
//
// Without records and CRDs of the v1 group, missing CRDs are not reported.
func loadCRDs(in *store, manifest []byte) (*crdSet, error) {
	s, err := loadV1(in)
	if err != nil {
		return nil, err
	}
	shipped, err := s.readManifest(manifest)
	if err != nil {
		return nil, err
	}
	if err := s.findKinds(shipped); err != nil {
		return nil, err
	}
	if err := s.checkRecords(); err != nil {
		return nil, err
	}
	for _, kd := range s.kinds {
		if err := s.loadV3(kd, shipped[kd.Plural]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// loadV1 finds the CRDs of the v1 group.
func loadV1(in *store) (*crdSet, error) {
	s := &crdSet{store: in, accept: map[string]*schema.CRD{}, before: map[string]*schema.Version{}}
	err := s.each(s.keys.Dir(keys.DefinitionType()), func(entry *transform.Entry) error {
		key, err := s.keys.Parse(entry.Key)
		if err != nil {
			s.Raise(string(entry.Key), finding.UnknownKey.Because("%v", err))
		} else if plural, ofGroup := strings.CutSuffix(key.Name, "."+groupV1); ofGroup {
			s.old = append(s.old, plural)
		}
		return nil
	})
	slices.Sort(s.old)
	return s, err
}

// keyOf returns the key of a resource's CRD.
func (s *crdSet) keyOf(plural, group string) []byte {
	return s.key(keys.DefinitionType(), "", plural+"."+group)
}

// definition returns the CRD of a resource; nil if absent or unreadable. An unreadable CRD is
// reported.
func (s *crdSet) definition(plural, group string) (crd *schema.CRD, there bool, err error) {
	key := s.keyOf(plural, group)
	entry, err := s.get(key)
	if entry == nil || err != nil {
		return nil, false, err
	}
	crd, bad := schema.ParseCRD(entry.Value)
	if bad != nil {
		s.Raise(string(key), transform.Unreadable(bad))
		return nil, true, nil
	}
	return crd, true, nil
}

// findKinds finds the kinds of the snapshot: the kinds of Calico Open Source, and all others with a
// CRD in both groups under one plural, such as the kinds of Calico Enterprise. Metadata, UID and
// owners of their records change like those of other kinds; the spec stays.
func (s *crdSet) findKinds(shipped map[string]*schema.CRD) error {
	var generic kindSet
	for _, plural := range s.old {
		_, ofV1 := kinds().ofV1(plural)
		if _, ofV3 := kinds().ofV3(plural); ofV1 || ofV3 {
			continue // a plural used only in v3 belongs to records of another plural
		}
		v1, _, err := s.definition(plural, groupV1)
		if err != nil {
			return err
		}
		v3, _, err := s.definition(plural, groupV3)
		if err != nil {
			return err
		}
		if v3 == nil {
			v3 = shipped[plural]
		}
		if v1 != nil && v3 != nil {
			generic = append(generic, genericKind(plural, v1.Object(), v3.Object()))
		}
	}
	s.kinds = kinds().with(generic)
	for _, k := range generic {
		for _, err := range s.Live(s.ctx, s.keys.Dir(k.v1())) {
			if err != nil {
				return err
			}
			s.Raise(string(s.keyOf(k.Plural, groupV3)), codeGenericKind.Because("%s is migrated as its CRDs say",
				k.Kind))
			break
		}
	}
	return nil
}

// v1 returns version v1 of a kind's CRD in crd.projectcalico.org, nil if no CRD defines the fields.
func (s *crdSet) v1(kd *kind) (*schema.Version, error) {
	if version, known := s.before[kd.V1Plural]; known {
		return version, nil
	}
	s.before[kd.V1Plural] = nil
	entry, err := s.get(s.keyOf(kd.V1Plural, groupV1))
	if entry == nil || err != nil {
		return nil, err
	}
	// an unreadable CRD is deleted with its group
	if crd, err := schema.ParseCRD(entry.Value); err == nil && !crd.Object().Spec.PreserveUnknownFields {
		if version, err := crd.Version("v1"); err == nil {
			s.before[kd.V1Plural] = version
		}
	}
	return s.before[kd.V1Plural], nil
}

// ErrManifest is the error for a --v3-crds file that is not a manifest, or lacks a usable CRD.
var ErrManifest = finding.WithHint(errors.New("manifest of v3 CRDs"),
	"give --v3-crds the file of v3 CRDs of a Calico release, as \"kubectl apply -f\" takes it")

// readManifest reads the v3 CRDs of a release manifest, by plural.
func (s *crdSet) readManifest(manifest []byte) (map[string]*schema.CRD, error) {
	crds, others, err := schema.ParseManifest(manifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	shipped := map[string]*schema.CRD{}
	for _, crd := range crds {
		plural, ofGroup := strings.CutSuffix(crd.Object().Name, "."+groupV3)
		if _, known := kinds().ofV3(plural); ofGroup && (known || slices.Contains(s.old, plural)) {
			shipped[plural] = crd
			continue
		}
		others = append(others, "CustomResourceDefinition/"+crd.Object().Name)
	}
	for _, other := range others {
		s.step("after the restore, apply %s from the manifest of v3 CRDs: only its CRDs of %s were taken", other,
			groupV3)
	}
	return shipped, nil
}

// idle reports whether the v1 group has nothing to migrate.
func (s *crdSet) idle() bool { return len(s.old) == 0 && s.records == 0 }

// loadV3 finds one v3 CRD, in the snapshot or else in the manifest.
func (s *crdSet) loadV3(kd *kind, shipped *schema.CRD) error {
	crd, there, err := s.definition(kd.Plural, groupV3)
	switch {
	case err != nil || !there && s.idle() || there && crd == nil:
	case !there && shipped == nil:
		s.Raise(string(s.keyOf(kd.Plural, groupV3)),
			codeCRDMissing.Because("the CRD of %s is neither in the snapshot nor in a manifest of v3 CRDs", kd.Kind))
	case there:
		s.use(crd, kd)
	case s.use(shipped, kd):
		s.taken = append(s.taken, shipped)
	}
	return err
}

// use selects a CRD for writing records of v3, unless it is unfit.
func (s *crdSet) use(crd *schema.CRD, kd *kind) bool {
	fatal, mild := unfit(crd.Object(), kd)
	if _, err := crd.Version("v3"); err != nil && !errors.Is(err, schema.ErrNoVersion) { // already reported by unfit
		fatal = append(fatal, err.Error())
	}
	if defects := slices.Concat(fatal, mild); len(defects) > 0 {
		allowed := s.Raise(string(s.keyOf(kd.Plural, groupV3)), codeCRDUnfit.Because("%s", strings.Join(defects, "; ")))
		if len(fatal) > 0 || !allowed {
			return false
		}
	}
	s.accept[kd.Plural] = crd
	return true
}

// unfit lists the defects of a v3 CRD. A CRD with fatal defects must not be used, even if --allow
// permits it.
func unfit(crd *apiextensionsv1.CustomResourceDefinition, kd *kind) (fatal, mild []string) {
	scope := apiextensionsv1.ClusterScoped
	if kd.Namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	for _, field := range []struct{ name, is, want string }{
		{"spec.group", crd.Spec.Group, groupV3},
		{"spec.names.plural", crd.Spec.Names.Plural, kd.Plural},
		{"spec.names.kind", crd.Spec.Names.Kind, kd.Kind},
		{"spec.scope", string(crd.Spec.Scope), string(scope)},
		{"status.acceptedNames.plural", cmp.Or(crd.Status.AcceptedNames.Plural, kd.Plural), kd.Plural},
	} {
		if field.is != field.want {
			fatal = append(fatal, fmt.Sprintf("%s is %q, must be %q", field.name, field.is, field.want))
		}
	}
	if crd.DeletionTimestamp != nil {
		fatal = append(fatal, "it is being deleted, and all its records with it")
	}
	at := slices.IndexFunc(crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v3" })
	if at < 0 {
		fatal = append(fatal, "it has no version v3")
	} else {
		v3 := crd.Spec.Versions[at]
		if !v3.Served {
			fatal = append(fatal, "version v3 is not served")
		}
		if !v3.Storage {
			fatal = append(fatal, "version v3 is not the storage version")
		}
		if kd.Status && (v3.Subresources == nil || v3.Subresources.Status == nil) {
			mild = append(mild, "version v3 has no status subresource")
		}
	}
	if why := unserved(crd); why != "" {
		mild = append(mild, why)
	}
	return fatal, mild
}

// unserved says why no API server would serve the CRD. The naming controller skips a CRD whose
// names are already accepted, and no other component sets the conditions.
func unserved(crd *apiextensionsv1.CustomResourceDefinition) string {
	never := crd.Status.AcceptedNames.Plural != ""
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return "its names were not accepted: " + c.Message
		case (c.Type == apiextensionsv1.NamesAccepted || c.Type == apiextensionsv1.Established) &&
			c.Status == apiextensionsv1.ConditionTrue:
			never = false
		}
	}
	if never {
		return "it has accepted names but no conditions, so no server will ever serve it"
	}
	return ""
}

// groupDir returns the folder of all records of a group.
func (s *store) groupDir(group string) []byte {
	return bytes.TrimSuffix(s.keys.Dir(gvr.GroupResource{Group: group}), []byte("/"))
}

// checkRecords refuses v1 records without a v3 kind, and counts the others.
func (s *crdSet) checkRecords() error {
	return s.each(s.groupDir(groupV1), func(entry *transform.Entry) error {
		key, err := s.keys.Parse(entry.Key)
		reason := "not the key of an object: " + fmt.Sprint(err)
		if err == nil {
			if _, ok := s.kinds.ofV1(key.Resource.Resource); ok {
				s.records++
				return nil
			}
			meta, _ := encoding.ReadMeta(entry.Value) // empty if unreadable
			reason = cmp.Or(meta.Kind, key.Resource.Resource) + " has no kind in " + apiVersionV3
			if !slices.Contains(s.old, key.Resource.Resource) {
				reason += ", nor a CRD in the snapshot"
			}
		}
		s.strange++
		s.Raise(string(entry.Key), codeUnknownKind.Because("%s", reason))
		return nil
	})
}

// inject stages the CRDs of the manifest, as an API server's create would store them.
func (s *crdSet) inject() error {
	for _, crd := range s.taken {
		key := s.key(keys.DefinitionType(), "", crd.Object().Name)
		uid, created, err := s.created(key)
		if err != nil {
			return err
		}
		value, err := crd.Stored(uid, created)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrManifest, err)
		}
		if err := s.put(key, value); err != nil {
			return err
		}
	}
	return nil
}

// removeV1 deletes the v1 group: all records and CRDs, and the APIService. Restored components
// would still choose an existing v1 group (libcalico-go/lib/backend/k8s/discovery.go: v3 only if v1
// is absent), and records left without a CRD would reappear with a new CRD. removeV1 must not be
// called after a record was skipped.
func (s *crdSet) removeV1() error {
	err := s.each(s.groupDir(groupV1), func(entry *transform.Entry) error { return s.Delete(s.ctx, entry.Key) })
	for _, plural := range s.old {
		key := s.keyOf(plural, groupV1)
		if _, known := s.kinds.ofV1(plural); !known {
			s.Raise(string(key), codeUnknownKind.Because("its kind is not in %s, and it has no records: it is deleted "+
				"with the other CRDs of %s",
				apiVersionV3, groupV1).Decided(finding.Noted))
		}
		err = cmp.Or(err, s.Delete(s.ctx, key))
	}
	return cmp.Or(err, s.Delete(s.ctx, s.apiServiceKey(groupV1, "v1")))
}
