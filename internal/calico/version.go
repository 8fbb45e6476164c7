package calico

import (
	"regexp"
	"strconv"
	"strings"
)

// The oldest Calico that can run on projectcalico.org/v3 records.
const (
	needMajor = 3
	needMinor = 32
)

// age is what a version says about running on v3 records.
type age int

const (
	ageUnknown age = iota // no release: "master", a digest, a build from before 3.32.0 was released
	ageOld                // certainly older than 3.32
	ageFit                // 3.32 or later
)

// releasePattern takes "v3.32.1", "3.32", and what builds append: "v3.32.0-0.dev-12-gabc",
// "v3.31.2-windows-ltsc2022".
var releasePattern = regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?([-+].*)?$`)

// prePattern marks a suffix of a build made before the release it is named after.
var prePattern = regexp.MustCompile(`(?i)^-(0\.|\d*\.?dev|alpha|beta|rc|pre|\d+-g[0-9a-f]+)`)

// releaseAge reads a version string or an image tag. A build on the way to 3.32.0 may lack parts
// that v3 needs, so it counts as unknown; builds on the way to a later one count by their number.
func releaseAge(version string) age {
	m := releasePattern.FindStringSubmatch(version)
	if m == nil {
		return ageUnknown
	}
	major, _ := strconv.Atoi(m[1]) // at most four digits: cannot fail
	minor, _ := strconv.Atoi(m[2])
	patch, _ := strconv.Atoi(m[3]) // "" is 0
	switch {
	case major < needMajor || major == needMajor && minor < needMinor:
		return ageOld
	case major == needMajor && minor == needMinor && patch == 0 && prePattern.MatchString(m[4]):
		return ageUnknown
	}
	return ageFit
}

// imageTag returns the tag of a container image, "" when it has none (a digest alone tells
// nothing). "registry:5000/calico/node:v3.32.1@sha256:..." has the tag v3.32.1.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	path := image[strings.LastIndexByte(image, '/')+1:]
	_, tag, _ := strings.Cut(path, ":")
	return tag
}

// calicoImage tells an image of Calico from those of side-cars, whose tags mean nothing here.
// Mirrors keep the last part of the path, some with a prefix ("rancher/mirrored-calico-node").
func calicoImage(image string) bool {
	image, _, _ = strings.Cut(image, "@")
	name, _, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if _, after, found := strings.Cut(name, "calico-"); found {
		name = after
	}
	switch name {
	case "node", "cni", "typha", "kube-controllers", "calico", "pod2daemon-flexvol", "windows", "node-windows", "cni-windows":
		return true
	}
	return false
}
