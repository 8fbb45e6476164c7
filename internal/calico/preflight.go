package calico

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/transform"
)

// preflight reports all obstacles to the whole migration; it stages nothing. If the snapshot does
// not show a fact, preflight warns and adds a manual step.
func (s *crdSet) preflight() error {
	found, err := findInstallation(s.store)
	if err != nil {
		return err
	}
	for _, check := range []func() error{
		found.checkVersion, s.checkTiers, s.checkMigration,
		func() error { return s.checkRBAC(found) }, s.checkAdmission,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion requires Calico 3.32 or later, according to the images and to ClusterInformation,
// written by calico-node at its start. Without a recognized release checkVersion warns.
func (i *installation) checkVersion() error {
	key := i.lockKey()
	info, _, err := i.read(key)
	if err != nil {
		return err
	}
	spec := objectAt(info, "spec")
	product, version := cmp.Or(text(spec, "variant"), "Calico"), text(spec, "calicoVersion")
	age := releaseAge(version)
	if product == "Calico" && age == ageOld {
		i.raiseTooOld(key, fmt.Sprintf("spec.calicoVersion is %q", version))
	}
	told := age != ageUnknown
	for _, c := range i.components {
		told = i.checkImages(c) || told
	}
	doubt := "neither ClusterInformation nor the images in the snapshot name a release of Calico"
	if product != "Calico" {
		told, doubt = false, fmt.Sprintf("the cluster runs %s, which has other release numbers", product)
	}
	if !told {
		i.Raise(string(key), codeVersionUnknown.Because("%s", doubt))
		i.Report().AddStepBefore("check that every Calico component is of release %d.%d or later", needMajor, needMinor)
	}
	return nil
}

func (i *installation) raiseTooOld(key []byte, found string) {
	i.Raise(string(key), codeCalicoTooOld.Because("%s; %s records need Calico %d.%d or later", found, apiVersionV3,
		needMajor, needMinor))
}

// checkImages checks the images of one workload. told reports whether an image names a release.
func (i *installation) checkImages(c component) (told bool) {
	var old []string
	for _, container := range containers(c.pod) {
		image := text(container, "image")
		tag, ok := calicoTag(image)
		if !ok {
			continue
		}
		switch releaseAge(tag) {
		case ageOld:
			old = append(old, fmt.Sprintf("%s runs %q", text(container, "name"), image))
		case ageFit:
			told = true
		}
	}
	if len(old) > 0 {
		i.raiseTooOld(c.key, strings.Join(old, ", "))
	}
	return told || len(old) > 0
}

// checkAdmission warns of missing admission policies. Migrated records do not need them; later ones
// do.
func (s *store) checkAdmission() error {
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
		key := s.key(resource, "", object.name)
		entry, err := s.get(key)
		if err != nil {
			return err
		}
		if why := notThere(entry); why != "" {
			missing = true
			s.Raise(string(key), codeAdmissionMissing.Because("%s: without it %s", why, object.without))
		}
	}
	if missing {
		s.step("after the restore, apply the admission policies of your Calico release (they are in its manifest " +
			"of v3 CRDs) " +
			"before anyone creates a policy; the API server must serve MutatingAdmissionPolicy")
	}
	return nil
}

// notThere says that an object is missing or being deleted; "" for an existing object, readable or
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

// The oldest Calico that runs on projectcalico.org/v3 records.
const (
	needMajor = 3
	needMinor = 32
)

// age is the relation of a version to the oldest one that runs on v3 records.
type age int

const (
	ageUnknown age = iota // no release: "master", a digest, a build from before 3.32.0 was released
	ageOld                // certainly older than 3.32
	ageFit                // 3.32 or later
)

// releasePattern matches "v3.32.1", "3.32", and suffixes added by builds: "v3.32.0-0.dev-12-gabc",
// "v3.31.2-windows-ltsc2022".
var releasePattern = pattern.New(`^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?([-+].*)?$`)

// prePattern matches the suffix of a build older than the release in its name.
var prePattern = pattern.New(`(?i)^-(0\.|\d*\.?dev|alpha|beta|rc|pre|\d+-g[0-9a-f]+)`)

// releaseAge parses a version string or an image tag. A build before 3.32.0 may lack parts needed
// by v3 and counts as unknown; builds before a later release count by their number.
func releaseAge(version string) age {
	m := releasePattern().FindStringSubmatch(version)
	if m == nil {
		return ageUnknown
	}
	major, _ := strconv.Atoi(m[1]) // at most four digits: cannot fail
	minor, _ := strconv.Atoi(m[2])
	patch, _ := strconv.Atoi(m[3]) // "" is 0
	switch {
	case major < needMajor || major == needMajor && minor < needMinor:
		return ageOld
	case major == needMajor && minor == needMinor && patch == 0 && prePattern().MatchString(m[4]):
		return ageUnknown
	}
	return ageFit
}

// calicoTag returns the tag of a container image, "" for none: a digest alone does not name a
// release. "registry:5000/calico/node:v3.32.1@sha256:..." has the tag v3.32.1. ok is false for
// other images: the tags of side-cars are irrelevant. Mirrors keep the last part of the path, some
// with a prefix ("rancher/mirrored-calico-node").
func calicoTag(image string) (tag string, ok bool) {
	image, _, _ = strings.Cut(image, "@")
	name, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if _, after, found := strings.Cut(name, "calico-"); found {
		name = after
	}
	return tag, slices.Contains([]string{
		"node", "cni", "typha", "kube-controllers", "calico", "pod2daemon-flexvol", "windows",
		"node-windows", "cni-windows",
	}, name)
}
