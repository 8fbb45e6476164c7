package calico

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// preflight reports all obstacles to the migration as a whole; it stages nothing. Where the
// snapshot does not tell, it warns and adds a step to check.
func (m *run) preflight() {
	if m.crds.idle() {
		return
	}
	found := m.findInstallation()
	m.checkVersion(found)
	m.checkTiers()
	m.checkMigration()
	m.checkRBAC(found)
	m.checkAdmission()
}

// checkVersion demands Calico 3.32 or later of ClusterInformation, which calico-node writes when it
// starts, and of the images. Where none of them tells a release it warns.
func (m *run) checkVersion(found *installation) {
	key := m.lockKey()
	info, _ := m.Read(key)
	spec := objectAt(info, "spec")
	product, version := cmp.Or(text(spec, "variant"), "Calico"), text(spec, "calicoVersion")
	age := releaseAge(version)
	if product == "Calico" && age == ageOld {
		m.raiseTooOld(key, fmt.Sprintf("spec.calicoVersion is %q", version))
	}
	told := age != ageUnknown
	for _, c := range found.components {
		told = m.checkImages(c) || told
	}
	doubt := "neither ClusterInformation nor the images in the snapshot tell a release of Calico"
	if product != "Calico" {
		told, doubt = false, fmt.Sprintf("the cluster runs %s, whose releases count otherwise", product)
	}
	if !told {
		m.Raise(string(key), codeVersionUnknown.Because("%s", doubt))
		m.View.Report().AddStepBefore("check that every Calico component is of release %d.%d or later", needMajor, needMinor)
	}
}

func (m *run) raiseTooOld(key []byte, found string) {
	m.Raise(string(key), codeCalicoTooOld.Because("%s; %s records need Calico %d.%d or later", found, apiVersionV3, needMajor, needMinor))
}

// checkImages checks the images of one workload. told says whether one tells a release.
func (m *run) checkImages(c component) (told bool) {
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
		m.raiseTooOld(c.key, strings.Join(old, ", "))
	}
	return told || len(old) > 0
}

// checkAdmission warns of missing admission policies. Migrated records do not need them, later ones
// do.
func (m *run) checkAdmission() {
	const (
		tier   = "new policies get neither spec.tier nor the label " + tierLabel
		types  = "new policies get no spec.types"
		delete = "nothing keeps the built-in tiers from being deleted"
	)
	missing := false
	for _, object := range []struct{ resource, name, without string }{
		{"mutatingadmissionpolicies", "tierlabel.policy.projectcalico.org", tier},
		{"mutatingadmissionpolicybindings", "set-tier-label-binding", tier},
		{"mutatingadmissionpolicies", "policytypes.policy.projectcalico.org", types},
		{"mutatingadmissionpolicybindings", "set-policytypes-binding", types},
		{"validatingadmissionpolicies", "protect-builtin-tiers.projectcalico.org", delete},
		{"validatingadmissionpolicybindings", "protect-builtin-tiers.projectcalico.org", delete},
	} {
		resource := schema.GroupResource{Group: "admissionregistration.k8s.io", Resource: object.resource}
		key := m.Keys.Format(keys.Key{Resource: resource, Name: object.name})
		if why := notThere(m.Get(key)); why != "" {
			missing = true
			m.Raise(string(key), codeAdmissionMissing.Because("%s: without it %s", why, object.without))
		}
	}
	if missing {
		m.Step("after the restore, apply the admission policies of your Calico release (they are in its manifest of v3 CRDs) " +
			"before anyone creates a policy; the API server must serve MutatingAdmissionPolicy")
	}
}

// notThere says that an object is missing or being deleted; empty where it is there, readable or
// not.
func notThere(entry *transform.Entry) string {
	if entry == nil {
		return "not in the snapshot"
	}
	if meta, err := encoding.ReadMeta(entry.Value); err == nil && !meta.DeletionTimestamp.IsZero() {
		return "it is being deleted"
	}
	return ""
}
