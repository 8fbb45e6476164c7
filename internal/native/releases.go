package native

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// Minor releases of Kubernetes, as in 1.37.
const (
	OldestRelease = 29 // the first with a known storage version of every kind
	LinkedRelease = 37 // of the linked k8s.io/kubernetes
)

// ParseRelease returns the minor release of "1.36" or "v1.36.3": 36. An error lists the accepted
// releases.
func ParseRelease(text string) (minor int, err error) {
	var major int
	n, _ := fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d.%d", &major, &minor)
	if n != 2 || major != 1 || minor < OldestRelease || minor > LinkedRelease {
		return 0, fmt.Errorf("it takes a release from 1.%d to 1.%d", OldestRelease, LinkedRelease)
	}
	return minor, nil
}

// releases lists the kinds whose versions differ between the releases 1.17 to 1.37, one a
// line: group, kind, and each version with the minor releases that decode the version, behind
// another colon those that store objects at the version, and behind a third those that serve the
// version, where k8s.io/api lacks them and they differ from the first. "-" stands for all releases.
//
// Sources: register.go of the modules k8s.io/api 0.17 to 0.37, and of k8s.io/kubernetes 1.29 to
// 1.37 pkg/apis/*/install and the storage table test/integration/etcd/data.go. Ranges before 1.29
// are those of the Go types.
//
//go:embed releases.txt
var releases string

// span is a range of minor releases; the zero value is empty.
type span struct{ first, last int }

func (s span) has(minor int) bool { return s.last > 0 && s.first <= minor && minor <= s.last }

// parseSpan parses "31", "31-33", "-33", "31-" and "-".
func parseSpan(text string) span {
	if text == "" {
		return span{}
	}
	first, last, isRange := strings.Cut(text, "-")
	s := span{last: LinkedRelease}
	s.first, _ = strconv.Atoi(first)
	if !isRange {
		s.last = s.first
	} else if last != "" {
		s.last, _ = strconv.Atoi(last)
	}
	return s
}

// versionSpans says which releases decode, store and serve a version.
type versionSpans struct {
	version                string
	decode, stored, served span
}

var kindSpans = sync.OnceValue(func() map[schema.GroupKind][]versionSpans {
	all := map[schema.GroupKind][]versionSpans{}
	for line := range strings.Lines(releases) {
		f := strings.Fields(line)
		kind := schema.GroupKind{Group: f[0], Kind: f[1]}
		for _, text := range f[2:] {
			parts := append(strings.Split(text, ":"), "", "")
			v := versionSpans{parts[0], parseSpan(parts[1]), parseSpan(parts[2]), parseSpan(parts[3])}
			if v.served.last == 0 {
				v.served = v.decode
			}
			all[kind] = append(all[kind], v)
		}
	}
	return all
})

// DecodedBy reports whether an API server of a minor release decodes a stored built-in kind.
func DecodedBy(gvk schema.GroupVersionKind, minor int) bool {
	return decoders(gvk).has(minor)
}

// decoders returns the releases that decode a stored built-in kind.
func decoders(gvk schema.GroupVersionKind) span {
	spans, listed := kindSpans()[gvk.GroupKind()]
	if !listed && (legacyscheme.Scheme.Recognizes(gvk) || inServer(gvk)) {
		return span{last: LinkedRelease}
	}
	for _, s := range spans {
		if s.version == gvk.Version {
			return s.decode
		}
	}
	return span{}
}

// inServer reports whether a kind belongs to a server inside kube-apiserver, with its own scheme.
func inServer(gvk schema.GroupVersionKind) bool {
	switch gvk.GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return gvk.Version == "v1" || gvk.Version == "v1beta1"
	}
	return false
}

// Releases returns the first and the last minor release that decode a stored built-in kind: 0 for
// a first release before 1.17, and for a last one if none is known.
func Releases(gvk schema.GroupVersionKind) (first, last int) {
	s := decoders(gvk)
	return s.first, s.last
}

// InRelease reports whether an API server of a minor release decodes any version of a kind.
func InRelease(kind schema.GroupKind, minor int) bool {
	spans, listed := kindSpans()[kind]
	if !listed {
		return len(legacyscheme.Scheme.VersionsForGroupKind(kind)) > 0 || inServer(kind.WithVersion("v1"))
	}
	for _, s := range spans {
		if s.decode.has(minor) {
			return true
		}
	}
	return false
}
