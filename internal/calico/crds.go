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

// crdSet are Calico's CRDs in a snapshot, and in the release manifest beside it.
type crdSet struct {
	*transform.Store
	versions map[string]*schema.Version // v3 of each usable v3 CRD, by plural
	accept   map[string]*schema.CRD     // these CRDs, of which v3 is the storage version
	before   map[string]*schema.Version // v1 of the v1 CRDs that were asked for, by plural; nil for one of no use
	taken    []*schema.CRD              // from the manifest, where the snapshot lacks them
	old      []string                   // plurals of the CRDs in the v1 group, sorted
	kinds    kindSet
	records  int // v1 records that have a v3 kind
	strange  int // v1 records without one
}

// loadCRDs reads and checks the CRDs of both groups: each of the 22 v3 CRDs must be in the snapshot
// or in manifest (YAML, as a release ships them; nil for none), and must serve and store v3. So
// must the v3 CRDs of other kinds that have a v1 CRD. Other objects of the manifest become steps
// for after the restore. It stages nothing.
//
// Without records and CRDs of the v1 group, missing CRDs are not reported.
func loadCRDs(in *transform.Store, manifest []byte) *crdSet {
	s := &crdSet{Store: in, versions: map[string]*schema.Version{}, accept: map[string]*schema.CRD{}, before: map[string]*schema.Version{}}
	s.loadV1()
	shipped := s.readManifest(manifest)
	s.findKinds(shipped)
	s.checkRecords()
	for _, kd := range s.kinds {
		s.loadV3(kd, shipped[kd.Plural])
	}
	return s
}

// key is where the CRD of a resource lies.
func (s *crdSet) key(plural, group string) []byte {
	return s.Keys.Format(keys.Key{Resource: keys.DefinitionType(), Name: plural + "." + group})
}

// v1 is version v1 of a kind's CRD in crd.projectcalico.org, nil for none that tells a record's
// fields.
func (s *crdSet) v1(kd *kind) *schema.Version {
	if version, known := s.before[kd.V1Plural]; known {
		return version
	}
	s.before[kd.V1Plural] = nil
	entry := s.Get(s.key(kd.V1Plural, groupV1))
	if entry == nil {
		return nil
	}
	// one that cannot be read goes with its group
	if crd, err := schema.ParseCRD(entry.Value); err == nil && !crd.Object().Spec.PreserveUnknownFields {
		if version, err := crd.Version("v1"); err == nil {
			s.before[kd.V1Plural] = version
		}
	}
	return s.before[kd.V1Plural]
}

// ErrManifest is the error of a file of --v3-crds that is no manifest, or lacks a usable CRD.
var ErrManifest = finding.WithHint(errors.New("manifest of v3 CRDs"),
	"give --v3-crds the file of v3 CRDs of a Calico release, as \"kubectl apply -f\" takes it")

// readManifest takes the v3 CRDs from a release manifest, by plural.
func (s *crdSet) readManifest(manifest []byte) map[string]*schema.CRD {
	crds, others, err := schema.ParseManifest(manifest)
	if err != nil {
		s.Failed(fmt.Errorf("%w: %w", ErrManifest, err))
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
		s.Step("after the restore, apply %s from the manifest of v3 CRDs: only its CRDs of %s were taken", other, groupV3)
	}
	return shipped
}

// idle says that there is nothing of the v1 group to migrate.
func (s *crdSet) idle() bool { return len(s.old) == 0 && s.records == 0 }

// loadV3 finds one v3 CRD, in the snapshot or else in the manifest.
func (s *crdSet) loadV3(kd *kind, shipped *schema.CRD) {
	key := s.key(kd.Plural, groupV3)
	switch entry := s.Get(key); {
	case entry == nil && s.idle():
	case entry == nil && shipped == nil:
		s.Raise(string(key), codeCRDMissing.Because("the CRD of %s is neither in the snapshot nor in a manifest of v3 CRDs", kd.Kind))
	case entry == nil:
		if s.use(key, shipped, kd) {
			s.taken = append(s.taken, shipped)
		}
	default:
		crd, err := schema.ParseCRD(entry.Value)
		if err != nil {
			s.Raise(string(key), transform.Unreadable(err))
			return
		}
		s.use(key, crd, kd)
	}
}

// use has records written by v3 of a CRD, unless it is unfit.
func (s *crdSet) use(key []byte, crd *schema.CRD, kd *kind) bool {
	fatal, mild := unfit(crd.Object(), kd)
	version, err := crd.Version("v3")
	if err != nil && !errors.Is(err, schema.ErrNoVersion) { // unfit said so already
		fatal = append(fatal, err.Error())
	}
	if defects := slices.Concat(fatal, mild); len(defects) > 0 {
		allowed := s.Raise(string(key), codeCRDUnfit.Because("%s", strings.Join(defects, "; ")))
		if len(fatal) > 0 || !allowed {
			return false
		}
	}
	s.versions[kd.Plural], s.accept[kd.Plural] = version, crd
	return true
}

// unfit lists the defects of a v3 CRD. With fatal ones records must not be written by it, even if
// that is allowed.
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
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v3" })
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

// unserved says why no API server would serve the CRD. Its naming controller looks at a CRD whose
// names are not the accepted ones; where they are, only that controller has set the conditions.
func unserved(crd *apiextensionsv1.CustomResourceDefinition) string {
	never := crd.Status.AcceptedNames.Plural != ""
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse:
			return "its names were not accepted: " + c.Message
		case (c.Type == apiextensionsv1.NamesAccepted || c.Type == apiextensionsv1.Established) && c.Status == apiextensionsv1.ConditionTrue:
			never = false
		}
	}
	if never {
		return "it has accepted names but no conditions, so no server will ever serve it"
	}
	return ""
}

// loadV1 finds the CRDs of the v1 group.
func (s *crdSet) loadV1() {
	for entry := range s.Live(s.Keys.Dir(keys.DefinitionType())) {
		key, err := s.Keys.Parse(entry.Key)
		if err != nil {
			s.Raise(string(entry.Key), finding.UnknownKey.Because("%v", err))
			continue
		}
		if plural, ofGroup := strings.CutSuffix(key.Name, "."+groupV1); ofGroup {
			s.old = append(s.old, plural)
		}
	}
	slices.Sort(s.old)
}

// groupDir is the folder of all records of a group.
func groupDir(k keys.Kubernetes, group string) []byte {
	return bytes.TrimSuffix(k.Dir(gvr.GroupResource{Group: group}), []byte("/"))
}

// checkRecords refuses the v1 records that have no v3 kind, and counts the others.
func (s *crdSet) checkRecords() {
	for entry := range s.Live(groupDir(s.Keys, groupV1)) {
		key, err := s.Keys.Parse(entry.Key)
		reason := "not the key of an object: " + fmt.Sprint(err)
		if err == nil {
			if _, ok := s.kinds.ofV1(key.Resource.Resource); ok {
				s.records++
				continue
			}
			meta, _ := encoding.ReadMeta(entry.Value) // empty where it cannot be read
			reason = cmp.Or(meta.Kind, key.Resource.Resource) + " has no kind in " + apiVersionV3
			if !slices.Contains(s.old, key.Resource.Resource) {
				reason += ", nor a CRD in the snapshot"
			}
		}
		s.strange++
		s.Raise(string(entry.Key), codeUnknownKind.Because("%s", reason))
	}
}

// inject stages the CRDs of the manifest, as an API server's create would store them.
func (s *crdSet) inject() {
	for _, crd := range s.taken {
		created, err := s.View.Time(s.Ctx)
		digest, err2 := s.View.InputDigest(s.Ctx)
		if s.Failed(cmp.Or(err, err2)) {
			return
		}
		key := s.Keys.Format(keys.Key{Resource: keys.DefinitionType(), Name: crd.Object().Name})
		value, err := crd.Stored(mintUID(digest, key), created)
		if err != nil {
			s.Failed(fmt.Errorf("%w: %w", ErrManifest, err))
			return
		}
		s.Put(key, value)
	}
}
