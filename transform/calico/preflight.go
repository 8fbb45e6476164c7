package calico

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// preflight reports what stands in the way of the migration as a whole, all of it in one go; it stages nothing. Where the
// snapshot does not tell it warns and says what to check. Where nothing is left of the v1 group it has nothing to say.
func (m *run) preflight(ctx context.Context) error {
	if m.crds.idle() {
		return nil
	}
	found, err := m.findInstallation(ctx)
	if err != nil {
		return err
	}
	return inOrder(ctx,
		func(ctx context.Context) error { return m.checkVersion(ctx, found) },
		m.checkTiers, m.checkMigration,
		func(ctx context.Context) error { return m.checkRBAC(ctx, found) },
		m.checkAdmission)
}

// checkVersion demands Calico 3.32 or later of ClusterInformation, which calico-node writes when it starts, and of the
// images. Where none of them tells it warns.
func (m *run) checkVersion(ctx context.Context, found *installation) error {
	key := m.lockKey()
	info, _, err := m.read(ctx, key)
	if err != nil {
		return err
	}
	doubt := "neither ClusterInformation nor the images in the snapshot tell a release of Calico"
	told, product := m.clusterVersion(key, objectAt(info, "spec"))
	for _, c := range found.components {
		told = m.imageVersions(c) || told
	}
	if product != "" {
		told, doubt = false, fmt.Sprintf("the cluster runs %s, whose releases count otherwise and whose own kinds are not known here", product)
	}
	if !told {
		m.view.Raise(string(key), codeVersionUnknown.Because("%s", doubt))
		m.view.Report().AddStep("before the restore, check that every Calico component is of release %d.%d or later", needMajor, needMinor)
	}
	return nil
}

// clusterVersion judges spec.calicoVersion; told says whether it tells a release of Calico, product is the name of another
// product that counts otherwise. A record that cannot be read is reported where it is migrated.
func (m *run) clusterVersion(key []byte, spec map[string]any) (told bool, product string) {
	if variant := text(spec, "variant"); variant != "" && variant != "Calico" {
		return false, variant
	}
	version := text(spec, "calicoVersion")
	age := releaseAge(version)
	if age == ageOld {
		m.view.Raise(string(key), codeCalicoTooOld.Because("spec.calicoVersion is %q; %s records need Calico %d.%d or later", version, apiVersionV3, needMajor, needMinor))
	}
	return age != ageUnknown, ""
}

// imageVersions judges the images of one workload.
func (m *run) imageVersions(c component) (told bool) {
	var old []string
	for _, container := range containers(c.pod) {
		image := text(container, "image")
		if !calicoImage(image) {
			continue
		}
		switch releaseAge(imageTag(image)) {
		case ageOld:
			old = append(old, fmt.Sprintf("%s runs %q", text(container, "name"), image))
		case ageFit:
			told = true
		}
	}
	if len(old) > 0 {
		m.view.Raise(string(c.key), codeCalicoTooOld.Because("%s; %s records need Calico %d.%d or later", strings.Join(old, ", "), apiVersionV3, needMajor, needMinor))
	}
	return told || len(old) > 0
}

// admissionObject is an object that Calico's v3 manifests install beside the CRDs, and what it is for.
type admissionObject struct {
	resource, name string
	without        string // what happens where it is missing
}

func admissionObjects() []admissionObject {
	const (
		tier   = "new policies get neither spec.tier nor the label " + tierLabel
		types  = "new policies get no spec.types"
		delete = "nothing keeps the built-in tiers from being deleted"
	)
	return []admissionObject{
		{"mutatingadmissionpolicies", "tierlabel.policy.projectcalico.org", tier},
		{"mutatingadmissionpolicybindings", "set-tier-label-binding", tier},
		{"mutatingadmissionpolicies", "policytypes.policy.projectcalico.org", types},
		{"mutatingadmissionpolicybindings", "set-policytypes-binding", types},
		{"validatingadmissionpolicies", "protect-builtin-tiers.projectcalico.org", delete},
		{"validatingadmissionpolicybindings", "protect-builtin-tiers.projectcalico.org", delete},
	}
}

// checkAdmission warns of the admission policies that are not installed. What is migrated does not need them (the
// migration sets what they set), what is created afterwards does.
func (m *run) checkAdmission(ctx context.Context) error {
	missing := false
	for _, object := range admissionObjects() {
		resource := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: object.resource}
		key := m.keys.Format(keys.Key{Resource: resource, Name: object.name})
		entry, err := m.view.Get(ctx, key)
		if err != nil {
			return err
		}
		if why := notThere(entry); why != "" {
			missing = true
			m.view.Raise(string(key), codeAdmissionMissing.Because("%s: without it %s", why, object.without))
		}
	}
	if missing {
		m.view.Report().AddStep("after the restore, apply the admission policies of your Calico release (they are in its manifest of v3 CRDs) before anyone creates a policy; the API server must serve MutatingAdmissionPolicy")
	}
	return nil
}

// notThere says why an object is not, or not for long; empty where it is there. A value that cannot be read is.
func notThere(entry *transform.Entry) string {
	if entry == nil {
		return "not in the snapshot"
	}
	if meta, err := encoding.ReadMeta(entry.Value); err == nil && !meta.DeletionTimestamp.IsZero() {
		return "it is being deleted"
	}
	return ""
}
