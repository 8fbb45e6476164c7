package storageversion

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	helmPrefix = "sh.helm.release.v1." // names of releases, in Secrets and ConfigMaps (helm pkg/storage)
	// maxHelm is the length limit of an unpacked release: a stored release has at most 1.5 MiB, and
	// text of manifests compresses tenfold.
	maxHelm = 16 << 20 // bytes
)

// reportHelm warns of a Helm release whose manifest names removed versions. Helm compares the next
// upgrade with that manifest, and fails for kinds unknown to the server. Superseded releases do not
// matter.
func (s *storage) reportHelm(e *transform.Entry, key keys.Key, gone *versionsGone) {
	if !strings.HasPrefix(key.Name, helmPrefix) || e.Undecryptable != nil || len(gone.kinds) == 0 {
		return
	}
	labels, release, err := helmRelease(e, key.Resource.Resource)
	if status := labels["status"]; err == nil && (release == "" || status == "superseded" || status == "uninstalled") {
		return
	}
	var named []string
	if err == nil {
		named, err = gone.inRelease(release)
	}
	if err != nil {
		s.Raise(string(e.Key), codeHelmRelease.Because("the versions that this Helm release names cannot be read: %v",
			err))
	} else if len(named) > 0 {
		s.Raise(string(e.Key), codeHelmRelease.Because(
			"Helm release %s names versions that no server knows: %s; run \"helm mapkubeapis\" before its next upgrade",
			labels["name"], finding.List(named)))
	}
}

func helmRelease(e *transform.Entry, resource string) (labels map[string]string, release string, err error) {
	switch resource {
	case "secrets":
		secret, err := native.As[corev1.Secret](e.ParseValue())
		return secret.Labels, string(secret.Data["release"]), err
	case "configmaps":
		config, err := native.As[corev1.ConfigMap](e.ParseValue())
		return config.Labels, config.Data["release"], err
	}
	return nil, "", nil
}

// inRelease lists the objects at removed versions in the manifest of a release, as "GROUP/VERSION
// KIND". Only the lines apiVersion and kind at the left margin of a document are read: a YAML
// parser would take gigabytes for a hostile release.
func (g *versionsGone) inRelease(release string) ([]string, error) {
	manifest, err := unpackHelm(release)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	apiVersion, kind := "", ""
	for line := range strings.Lines(manifest + "\n---\n") {
		if strings.HasPrefix(line, "---") {
			if _, isGone := g.moved(apiVersion, kind); isGone {
				named[apiVersion+" "+kind] = true
			}
			apiVersion, kind = "", ""
		}
		if value, ok := strings.CutPrefix(line, "apiVersion:"); ok {
			apiVersion = scalar(value)
		}
		if value, ok := strings.CutPrefix(line, "kind:"); ok {
			kind = scalar(value)
		}
	}
	return slices.Sorted(maps.Keys(named)), nil
}

func scalar(text string) string {
	text, _, _ = strings.Cut(text, " #")
	return strings.Trim(strings.TrimSpace(text), `"'`)
}

// unpackHelm returns the manifest of a release: base64 of gzip of JSON.
func unpackHelm(release string) (string, error) {
	packed, err := base64.StdEncoding.DecodeString(release)
	if err != nil {
		return "", fmt.Errorf("not base64")
	}
	text := packed
	if bytes.HasPrefix(packed, []byte("\x1f\x8b")) { // releases of early Helm 3 are not compressed
		unzip, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return "", fmt.Errorf("gzip: %w", err)
		}
		if text, err = io.ReadAll(io.LimitReader(unzip, maxHelm+1)); err != nil {
			return "", fmt.Errorf("gzip: %w", err)
		}
		if len(text) > maxHelm {
			return "", fmt.Errorf("longer than %d bytes", maxHelm)
		}
	}
	var out struct {
		Manifest string `json:"manifest"`
	}
	if json.Unmarshal(text, &out) != nil {
		return "", fmt.Errorf("not JSON")
	}
	return out.Manifest, nil
}
