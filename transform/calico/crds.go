package calico

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// crdSet is what a snapshot (and the release manifest given beside it) has of Calico's CRDs.
type crdSet struct {
	view     *transform.View
	layout   keys.Kubernetes
	versions map[string]*schema.Version // v3 of each usable v3 CRD, by plural
	before   map[string]*schema.Version // v1 of the v1 CRDs that were asked for, by plural; nil for one of no use
	taken    []*schema.CRD              // from the manifest, because the snapshot lacks them
	old      []string                   // plurals of the CRDs in the v1 group, sorted
	records  int                        // v1 records that have a v3 kind
	strange  int                        // v1 records without one
}

// loadCRDs reads the CRDs of both groups and reports what is wrong with them: each of the 22 v3 CRDs must be in the
// snapshot or in manifest (YAML, as a release ships them; nil for none), and must serve and store v3. It stages nothing.
// Objects of the manifest that are no v3 CRDs become steps for after the restore.
//
// Where nothing is left of the v1 group there is nothing to migrate, and missing CRDs are not reported.
func loadCRDs(ctx context.Context, v *transform.View, k keys.Kubernetes, manifest []byte) (*crdSet, error) {
	s := &crdSet{view: v, layout: k, versions: map[string]*schema.Version{}, before: map[string]*schema.Version{}}
	shipped, err := s.readManifest(manifest)
	if err != nil {
		return nil, err
	}
	if err := s.loadV1(ctx); err != nil {
		return nil, err
	}
	if err := s.checkRecords(ctx); err != nil {
		return nil, err
	}
	for _, kd := range kinds() {
		if err := s.loadV3(ctx, kd, shipped[kd.Plural]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// v3 is version v3 of the CRD with that plural in projectcalico.org, nil when there is none that could hold a record.
func (s *crdSet) v3(plural string) *schema.Version { return s.versions[plural] }

// v1 is version v1 of a kind's CRD in crd.projectcalico.org, nil where there is none that tells which fields a record has.
func (s *crdSet) v1(ctx context.Context, kd kind) (*schema.Version, error) {
	if version, known := s.before[kd.V1Plural]; known {
		return version, nil
	}
	s.before[kd.V1Plural] = nil
	entry, err := s.view.Get(ctx, s.layout.Format(keys.Key{Resource: keys.DefinitionType(), Name: kd.V1Plural + "." + groupV1}))
	if err != nil || entry == nil {
		return nil, err
	}
	crd, err := schema.ParseCRD(entry.Value)
	if err != nil || crd.Object().Spec.PreserveUnknownFields {
		return nil, nil // it goes with its group, whatever it is
	}
	if version, err := crd.Version("v1"); err == nil {
		s.before[kd.V1Plural] = version
	}
	return s.before[kd.V1Plural], nil
}

var errManifest = errors.New("manifest of v3 CRDs")

// readManifest takes the v3 CRDs from a release manifest, by plural.
func (s *crdSet) readManifest(manifest []byte) (map[string]*schema.CRD, error) {
	crds, others, err := schema.ParseManifest(manifest)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	shipped := map[string]*schema.CRD{}
	for _, crd := range crds {
		plural, ofGroup := strings.CutSuffix(crd.Object().Name, "."+groupV3)
		if _, known := kindOfV3(plural); known && ofGroup {
			shipped[plural] = crd
			continue
		}
		others = append(others, "CustomResourceDefinition/"+crd.Object().Name)
	}
	for _, other := range others {
		s.view.Report().AddStep("after the restore, apply %s from the manifest of v3 CRDs: only its CRDs of %s were taken", other, groupV3)
	}
	return shipped, nil
}

// idle says that nothing is left of the v1 group, so that there is nothing to migrate.
func (s *crdSet) idle() bool { return len(s.old) == 0 && s.records == 0 }

// loadV3 finds one v3 CRD, in the snapshot or else in the manifest.
func (s *crdSet) loadV3(ctx context.Context, kd kind, shipped *schema.CRD) error {
	key := s.layout.Format(keys.Key{Resource: keys.DefinitionType(), Name: kd.Plural + "." + groupV3})
	entry, err := s.view.Get(ctx, key)
	if err != nil {
		return err
	}
	switch {
	case entry == nil && s.idle():
		return nil
	case entry == nil && shipped == nil:
		s.view.Raise(string(key), codeCRDMissing.Because("the CRD of %s is neither in the snapshot nor in a manifest of v3 CRDs", kd.Kind))
		return nil
	case entry == nil:
		if s.use(key, shipped, kd) {
			s.taken = append(s.taken, shipped)
		}
		return nil
	}
	crd, err := schema.ParseCRD(entry.Value)
	if err != nil {
		s.view.Raise(string(key), transform.Unreadable(err))
		return nil
	}
	s.use(key, crd, kd)
	return nil
}

// use makes a CRD's v3 the one that records are written by, unless it is not fit for it.
func (s *crdSet) use(key []byte, crd *schema.CRD, kd kind) bool {
	defects, fatal := unfit(crd.Object(), kd)
	version, err := crd.Version("v3")
	if err != nil && !errors.Is(err, schema.ErrNoVersion) { // unfit said so already
		defects = append(defects, err.Error())
	}
	if len(defects) > 0 {
		allowed := s.view.Raise(string(key), codeCRDUnfit.Because("%s", strings.Join(defects, "; ")))
		if fatal || err != nil || !allowed {
			return false
		}
	}
	s.versions[kd.Plural] = version
	return true
}

// unfit lists what is wrong with a v3 CRD. fatal says that records must not be written by it, whatever is allowed.
func unfit(crd *apiextensionsv1.CustomResourceDefinition, kd kind) (defects []string, fatal bool) {
	spec, scope := crd.Spec, apiextensionsv1.ClusterScoped
	if kd.Namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	wrong := func(what string, got, want any) {
		defects = append(defects, fmt.Sprintf("%s is %q, must be %q", what, got, want))
		fatal = true
	}
	if spec.Group != groupV3 {
		wrong("spec.group", spec.Group, groupV3)
	}
	if spec.Names.Plural != kd.Plural {
		wrong("spec.names.plural", spec.Names.Plural, kd.Plural)
	}
	if spec.Names.Kind != kd.Kind {
		wrong("spec.names.kind", spec.Names.Kind, kd.Kind)
	}
	if spec.Scope != scope {
		wrong("spec.scope", spec.Scope, scope)
	}
	if accepted := crd.Status.AcceptedNames.Plural; accepted != "" && accepted != kd.Plural {
		wrong("status.acceptedNames.plural", accepted, kd.Plural)
	}
	if crd.DeletionTimestamp != nil {
		defects, fatal = append(defects, "it is being deleted, and all its records with it"), true
	}
	more, noVersion := unfitVersion(spec.Versions, kd)
	defects = append(defects, more...)
	if why := unserved(crd); why != "" {
		defects = append(defects, why)
	}
	return defects, fatal || noVersion
}

// unfitVersion lists what is wrong with the versions.
func unfitVersion(versions []apiextensionsv1.CustomResourceDefinitionVersion, kd kind) (defects []string, fatal bool) {
	i := slices.IndexFunc(versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == "v3" })
	if i < 0 {
		return []string{"it has no version v3"}, true
	}
	if !versions[i].Served {
		defects, fatal = append(defects, "version v3 is not served"), true
	}
	if !versions[i].Storage {
		defects, fatal = append(defects, "version v3 is not the storage version"), true
	}
	if sub := versions[i].Subresources; kd.Status && (sub == nil || sub.Status == nil) {
		defects = append(defects, "version v3 has no status subresource")
	}
	return defects, fatal
}

// unserved says why no API server would serve the CRD. Its naming controller looks at a CRD whose names are not the accepted
// ones; where they are, the conditions must have been set with them, and nothing sets them later.
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

// loadV1 finds the CRDs of the v1 group, of whatever kind.
func (s *crdSet) loadV1(ctx context.Context) error {
	for entry, err := range s.view.Live(ctx, s.layout.Dir(keys.DefinitionType())) {
		if err != nil {
			return err
		}
		key, err := s.layout.Parse(entry.Key)
		if err != nil {
			s.view.Raise(string(entry.Key), codeUnknownKey.Because("%v", err))
			continue
		}
		if plural, ofGroup := strings.CutSuffix(key.Name, "."+groupV1); ofGroup {
			s.old = append(s.old, plural)
		}
	}
	slices.Sort(s.old)
	return nil
}

// groupDir is what the keys of all records of a group begin with.
func groupDir(k keys.Kubernetes, group string) []byte {
	return bytes.TrimSuffix(k.Dir(gvr.GroupResource{Group: group}), []byte("/"))
}

// checkRecords refuses the v1 records that have no v3 kind, with or without a CRD of their own, and counts the others.
func (s *crdSet) checkRecords(ctx context.Context) error {
	for entry, err := range s.view.Live(ctx, groupDir(s.layout, groupV1)) {
		if err != nil {
			return err
		}
		key, err := s.layout.Parse(entry.Key)
		reason := "not the key of an object: " + fmt.Sprint(err)
		if err == nil {
			if _, ok := kindOfV1(key.Resource.Resource); ok {
				s.records++
				continue
			}
			reason = s.noTwin(key.Resource.Resource, entry.Value)
		}
		s.strange++
		s.view.Raise(string(entry.Key), codeUnknownKind.Because("%s", reason))
	}
	return nil
}

func (s *crdSet) noTwin(plural string, value []byte) string {
	name := plural
	if meta, err := encoding.ReadMeta(value); err == nil && meta.Kind != "" {
		name = meta.Kind
	}
	if !slices.Contains(s.old, plural) {
		return name + " has no kind in " + apiVersionV3 + ", nor a CRD in the snapshot"
	}
	return name + " has no kind in " + apiVersionV3
}

// inject stages the CRDs that were taken from the manifest, as an API server's create would store them.
func (s *crdSet) inject(ctx context.Context) error {
	for _, crd := range s.taken {
		created, err := s.view.Time(ctx)
		if err != nil {
			return err
		}
		digest, err := s.view.InputDigest(ctx)
		if err != nil {
			return err
		}
		key := s.layout.Format(keys.Key{Resource: keys.DefinitionType(), Name: crd.Object().Name})
		value, err := crd.Stored(mintUID(digest, key), created)
		if err != nil {
			return fmt.Errorf("%w: %w", errManifest, err)
		}
		if err := s.view.Put(ctx, key, value, "CRD taken from the manifest of v3 CRDs"); err != nil {
			return err
		}
	}
	return nil
}
