package doctor

import (
	"cmp"
	"fmt"
	"slices"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/pattern"
)

// Codes about releases of Kubernetes.
var (
	codeVersionDead = finding.Lookup("dead-version")
	codeVersionOld  = finding.Lookup("old-version")
	codePrunedField = finding.Lookup("pruned-field").As(finding.Warning, "")
)

// countVersion counts an object of a built-in kind, unless every release decodes its version.
func countVersion(d *doctor, e *inspect.Entry) {
	v, _ := e.ParseValue() // did not fail before
	always, known := d.always[v.GVK]
	if !known {
		always = true
		for minor := native.OldestRelease; minor <= native.LinkedRelease; minor++ {
			always = always && native.DecodedBy(v.GVK, minor)
		}
		d.always[v.GVK] = always
	}
	if !always {
		d.sometimes.add(v.GVK, e.Key)
	}
}

// unknownFields returns the fields of an object of a built-in kind that the release to restore with
// does not know.
func (d *doctor) unknownFields(e *inspect.Entry) (fields []group) {
	v, err := e.ParseValue()
	if d.options.Kubernetes == 0 || err != nil || !isKubernetes(e) || !native.DecodedBy(v.GVK, d.options.Kubernetes) {
		return nil
	}
	apiVersion, kind := v.GVK.ToAPIVersionAndKind()
	for _, path := range native.UnknownFields(v, d.options.Kubernetes) {
		field := group{codePrunedField, apiVersion + " " + kind + ": " + anyIndex().ReplaceAllString(path, "[]")}
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return fields
}

// anyIndex matches an index of a list in the path of a field.
var anyIndex = pattern.New(`\[[0-9]+\]`)

// checkReleases reports objects of built-in kinds that the API server to restore with cannot
// decode. Without that release, those of the cluster and of native.LinkedRelease count.
func checkReleases(d *doctor) error {
	own, err := clusterRelease(d)
	if err != nil {
		return err
	}
	for gvk, c := range d.sometimes.all() {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		subject := apiVersion + " " + kind
		if code, reason := checkVersion(gvk, release{minor: d.options.Kubernetes}, own); code != nil {
			d.raiseMany(*c, code, "object", "%[1]s of %[2]s: %[3]s", subject, reason)
		}
	}
	return nil
}

// checkVersion returns the code for a stored kind and its reason, nil for none. target is the
// release to restore with, own the release of the cluster; either may be unknown.
func checkVersion(gvk gvr.GroupVersionKind, target, own release) (code *finding.Code, reason string) {
	const linked = native.LinkedRelease
	if first, _ := native.Releases(gvk); own.atLeast { // the cluster stored it
		own.minor = max(own.minor, first)
	}
	by := cmp.Or(target, own, release{minor: linked})
	switch {
	case native.DecodedBy(gvk, by.minor) && (target.minor > 0 || native.DecodedBy(gvk, linked)):
		return nil, ""
	case native.DecodedBy(gvk, by.minor):
		return codeVersionOld, fmt.Sprintf("%s decodes the version, 1.%d does not; %s; %s", by, linked,
			decoders(gvk, "does"), way(gvk, linked))
	case !native.InRelease(gvk.GroupKind(), by.minor):
		return codeUnknownKind, fmt.Sprintf("%s does not have the kind; %s", by, decoders(gvk, "decodes this version"))
	}
	return codeVersionDead, fmt.Sprintf("%s does not decode the version; %s; %s", by, decoders(gvk, "does"),
		way(gvk, by.minor))
}

// decoders names the releases that decode a kind.
func decoders(gvk gvr.GroupVersionKind, does string) string {
	switch first, last := native.Releases(gvk); {
	case last == 0:
		return "no known release " + does
	case last == native.LinkedRelease:
		return fmt.Sprintf("1.%d is the first that %s", first, does)
	default:
		return fmt.Sprintf("1.%d is the last that %s", last, does)
	}
}

// way says how to change objects that a minor release does not decode.
func way(gvk gvr.GroupVersionKind, minor int) string {
	if native.Rewrites(gvk, max(minor, native.OldestRelease)) {
		return "migrate storage-versions can rewrite it"
	}
	return "migrate storage-versions cannot rewrite it: delete it"
}
