package calico

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReleaseAge(t *testing.T) {
	for version, want := range map[string]age{
		"v3.32.0": ageFit, "3.32.0": ageFit, "v3.32": ageFit, "v3.33.1": ageFit, "v4.0.0": ageFit, "v3.100.0": ageFit,
		"v3.31.9": ageOld, "v3.4.0": ageOld, "v2.6.12": ageOld, "3.29.1": ageOld,
		"v3.32.0-0.dev": ageUnknown, "v3.32.0-0.dev-311-gabc123": ageUnknown, "v3.32.0-rc1": ageUnknown,
		"v3.32.0-12-g87c15906f2": ageUnknown,
		"v3.33.0-0.dev":          ageFit, "v3.32.1-0.dev": ageFit, "v3.31.0-0.dev": ageOld,
		"v3.32.0-windows-ltsc2022": ageFit, "v3.31.3-amd64": ageOld, "v3.32.0-fips": ageFit, "v3.32.0+build.7": ageFit,
		"master": ageUnknown, "latest": ageUnknown, "": ageUnknown, "release-v3.32": ageUnknown, "3": ageUnknown,
		"v3.32.0.1":               ageUnknown,
		"v99999999999999999999.1": ageUnknown,
	} {
		require.Equal(t, want, releaseAge(version), "%q", version)
	}
}

func TestCalicoTag(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/calico/node:v3.32.1": "v3.32.1", "rancher/mirrored-calico-node:v3.26.3": "v3.26.3",
		"node:master": "master",
		"registry:5000/mirror/calico/cni:v3.31.0@sha256:aa": "v3.31.0",
		"docker.io/calico/node-windows:v3.31.0":             "v3.31.0",
		"calico/calico:v3.33.0":                             "v3.33.0", "registry:5000/cni": "",
		"quay.io:443/calico/node":          "",
		"quay.io/calico/typha@sha256:0123": "", "example/calico-typha@sha256:00": "",
		"docker.io/flannel/flannel:v0.24.4": "-", "calico.example/exporter:v1.2.3": "-",
		"example/calico-exporter:v1.0.0": "-", "": "-",
	} {
		tag, ok := calicoTag(image)
		require.Equal(t, want != "-", ok, "%q", image)
		if ok {
			require.Equal(t, want, tag, "%q", image)
		}
	}
}
