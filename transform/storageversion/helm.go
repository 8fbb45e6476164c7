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

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	helmPrefix = "sh.helm.release.v1." // of the names of releases, in Secrets and ConfigMaps alike (helm pkg/storage)
	// maxHelm is how long an unpacked release may be. What is stored is at most 1.5 MiB, and text of manifests shrinks tenfold.
	maxHelm = 16 << 20 // bytes
)

// reportHelm warns of a Helm release whose manifest names versions that are gone: Helm compares the next upgrade with that
// manifest, and stops where the server does not know a kind in it. Releases that another one superseded do not matter.
func (r *run) reportHelm(e *transform.Entry, key keys.Key, gone *versionsGone) {
	if !strings.HasPrefix(key.Name, helmPrefix) || e.Undecryptable != nil || len(gone.kinds) == 0 {
		return
	}
	labels, release, err := helmRelease(e.Value, key.Resource.Resource)
	if err != nil {
		r.view.Raise(string(e.Key), codeHelmRelease.Because("the versions that this Helm release names cannot be read: %v", err))
		return
	}
	if release == "" || labels["status"] == "superseded" || labels["status"] == "uninstalled" {
		return
	}
	named, err := gone.inRelease(release)
	if err != nil {
		r.view.Raise(string(e.Key), codeHelmRelease.Because("the versions that this Helm release names cannot be read: %v", err))
	} else if len(named) > 0 {
		r.view.Raise(string(e.Key), codeHelmRelease.Because("Helm release %s names versions that no server knows: %s; run \"helm mapkubeapis\" before its next upgrade", labels["name"], finding.List(named)))
	}
}

// helmRelease is the release that a Secret or a ConfigMap holds, packed.
func helmRelease(value []byte, resource string) (labels map[string]string, release string, err error) {
	v, err := encoding.Parse(value)
	if err != nil {
		return nil, "", err
	}
	decode := func(into interface{ Unmarshal([]byte) error }) error {
		if v.Format == encoding.FormatProtobuf {
			return into.Unmarshal(v.Raw)
		}
		if json.Unmarshal(v.Raw, into) != nil {
			return fmt.Errorf("%s value: not a %s", v.Format, v.GVK.Kind) // the library's text quotes the value
		}
		return nil
	}
	switch resource {
	case "secrets":
		var s corev1.Secret
		err = decode(&s)
		return s.Labels, string(s.Data["release"]), err
	case "configmaps":
		var c corev1.ConfigMap
		err = decode(&c)
		return c.Labels, c.Data["release"], err
	}
	return nil, "", nil
}

// inRelease lists what the manifest of a release names at versions that are gone, as "GROUP/VERSION KIND". Of a document only
// the lines apiVersion and kind are read, at its left margin: a parser would take gigabytes for what a hostile release holds.
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

// scalar is the plain or quoted word that stands for a value in YAML.
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
