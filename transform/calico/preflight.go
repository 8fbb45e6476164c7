package calico

import (
	"context"
	"fmt"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// preflight reports what stands in the way of the migration as a whole, all of it in one go; it stages nothing. Where the
// snapshot does not tell it warns and says what to check. Where nothing is left of the v1 group it has nothing to say.
func preflight(ctx context.Context, v *transform.View, k keys.Kubernetes, set *crdSet) error {
	if set.idle() {
		return nil
	}
	found, err := findInstallation(ctx, v, k)
	if err != nil {
		return err
	}
	if err := checkVersion(ctx, v, k, found); err != nil {
		return err
	}
	if err := checkTiers(ctx, v, k); err != nil {
		return err
	}
	if err := checkMigration(ctx, v, k, set); err != nil {
		return err
	}
	if err := checkRBAC(ctx, v, k, found); err != nil {
		return err
	}
	return checkAdmission(ctx, v, k)
}

// checkVersion demands Calico 3.32 or later of ClusterInformation, which calico-node writes when it starts, and of the
// images. Where none of them tells it warns.
func checkVersion(ctx context.Context, v *transform.View, k keys.Kubernetes, found *installation) error {
	kd, _ := kindOfV3("clusterinformations")
	key := k.Format(keys.Key{Resource: kd.v1(), Name: "default"})
	entry, err := v.Get(ctx, key)
	if err != nil {
		return err
	}
	doubt := "neither ClusterInformation nor the images in the snapshot tell a release of Calico"
	told, product := false, ""
	if entry != nil {
		told, product = clusterVersion(v, entry)
	}
	for _, c := range found.components {
		told = imageVersions(v, c) || told
	}
	if product != "" {
		told, doubt = false, fmt.Sprintf("the cluster runs %s, whose releases count otherwise and whose own kinds are not known here", product)
	}
	if !told {
		v.Raise(string(key), codeVersionUnknown.Because("%s", doubt))
		v.Report().AddStep("before the restore, check that every Calico component is of release %d.%d or later", needMajor, needMinor)
	}
	return nil
}

// clusterVersion judges spec.calicoVersion; told says whether it tells a release of Calico, product is the name of another
// product that counts otherwise. A record that cannot be read is reported where it is migrated.
func clusterVersion(v *transform.View, entry *transform.Entry) (told bool, product string) {
	obj, _, err := encoding.DecodeObject(entry.Value)
	if err != nil {
		return false, ""
	}
	spec, _ := obj["spec"].(map[string]any)
	if variant := text(spec, "variant"); variant != "" && variant != "Calico" {
		return false, variant
	}
	version := text(spec, "calicoVersion")
	age := releaseAge(version)
	if age == ageOld {
		v.Raise(string(entry.Key), codeCalicoTooOld.Because("spec.calicoVersion is %q; %s records need Calico %d.%d or later", version, apiVersionV3, needMajor, needMinor))
	}
	return age != ageUnknown, ""
}

// imageVersions judges the images of one workload.
func imageVersions(v *transform.View, c component) (told bool) {
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
		v.Raise(string(c.key), codeCalicoTooOld.Because("%s; %s records need Calico %d.%d or later", strings.Join(old, ", "), apiVersionV3, needMajor, needMinor))
	}
	return told || len(old) > 0
}
