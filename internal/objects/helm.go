package objects

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
)

// HelmPrefix begins the names of Secrets and ConfigMaps with Helm releases (helm pkg/storage).
const HelmPrefix = "sh.helm.release.v1."

// maxHelm is the length limit of an unpacked release: a stored release has at most 1.5 MiB, and
// text of manifests compresses tenfold.
const maxHelm = 16 << 20 // bytes

// HelmRelease is an unpacked Helm release.
type HelmRelease struct {
	Name     string
	Text     []byte // JSON
	Zipped   bool   // as stored
	Manifest string
}

// ReadHelm unpacks the release in a Secret or ConfigMap; nil for none, and for a superseded or
// uninstalled one, which Helm does not compare with the next upgrade.
func ReadHelm(v encoding.Value) (*HelmRelease, error) {
	var labels map[string]string
	var packed string
	switch v.GVK.Kind {
	case "Secret":
		secret, err := native.As[corev1.Secret](v, nil)
		if err != nil {
			return nil, err
		}
		labels, packed = secret.Labels, string(secret.Data["release"])
	case "ConfigMap":
		config, err := native.As[corev1.ConfigMap](v, nil)
		if err != nil {
			return nil, err
		}
		labels, packed = config.Labels, config.Data["release"]
	}
	if status := labels["status"]; packed == "" || status == "superseded" || status == "uninstalled" {
		return nil, nil
	}
	return unpackHelm(labels["name"], packed)
}

// unpackHelm unpacks a release: base64 of gzip of JSON.
func unpackHelm(name, packed string) (*HelmRelease, error) {
	text, err := base64.StdEncoding.DecodeString(packed)
	if err != nil {
		return nil, errors.New("not base64")
	}
	r := &HelmRelease{Name: name, Text: text}
	if r.Zipped = bytes.HasPrefix(text, []byte("\x1f\x8b")); r.Zipped { // early Helm 3 does not compress
		unzip, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		if r.Text, err = io.ReadAll(io.LimitReader(unzip, maxHelm+1)); err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		if len(r.Text) > maxHelm {
			return nil, fmt.Errorf("longer than %d bytes", maxHelm)
		}
	}
	manifest, err := encoding.Get(r.Text, "manifest")
	if err != nil {
		return nil, errors.New("not JSON")
	}
	r.Manifest, _ = manifest.(string)
	return r, nil
}

// HelmDocument is a document of a manifest, with its place in the text.
type HelmDocument struct {
	Begin, End       int // bytes
	At               int // of APIVersion
	APIVersion, Kind string
}

// HelmDocuments yields the documents of a manifest. Only the lines apiVersion and kind at the left
// margin are read: a YAML parser would take gigabytes for a hostile release.
func HelmDocuments(manifest string) iter.Seq[HelmDocument] {
	return func(yield func(HelmDocument) bool) {
		var doc HelmDocument
		for line := range strings.Lines(manifest) {
			if strings.HasPrefix(line, "---") {
				if !yield(doc) {
					return
				}
				doc = HelmDocument{Begin: doc.End, End: doc.End}
			}
			if value, ok := strings.CutPrefix(line, "apiVersion:"); ok {
				doc.APIVersion = scalar(value)
				doc.At = doc.End + len(line) - len(value) + strings.Index(value, doc.APIVersion)
			}
			if value, ok := strings.CutPrefix(line, "kind:"); ok {
				doc.Kind = scalar(value)
			}
			doc.End += len(line)
		}
		yield(doc)
	}
}

func scalar(text string) string {
	text, _, _ = strings.Cut(text, " #")
	return strings.Trim(strings.TrimSpace(text), `"'`)
}
