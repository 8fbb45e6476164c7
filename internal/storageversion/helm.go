package storageversion

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
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

// mapHelm replaces versions that are not served in the manifest of a Helm release, like the plugin
// mapkubeapis, or warns of them. Helm compares the next upgrade with that manifest, and fails for
// kinds unknown to the server. Superseded releases do not matter.
func (s *storage) mapHelm(ctx context.Context, e *transform.Entry, key keys.Key, gone *versionsGone) error {
	if !strings.HasPrefix(key.Name, helmPrefix) || e.Undecryptable != nil || gone.empty() {
		return nil
	}
	unreadable := func(err error) error {
		s.Raise(string(e.Key), codeHelmRelease.Because("the versions that this Helm release names cannot be read: %v",
			err))
		return nil
	}
	labels, packed, err := helmRelease(e, key.Resource.Resource)
	if err != nil {
		return unreadable(err)
	}
	if status := labels["status"]; packed == "" || status == "superseded" || status == "uninstalled" {
		return nil
	}
	release, err := unpackHelm(packed)
	if err != nil {
		return unreadable(err)
	}
	manifest, changes := gone.mapManifest(release.manifest, s.opts.RemoveUnserved)
	var left, changed []string
	for _, c := range changes {
		if s.opts.Helm && (c.to != "" || c.removed) {
			changed = append(changed, c.String())
		} else {
			left = append(left, c.from)
		}
	}
	if len(left) > 0 {
		s.Raise(string(e.Key), codeHelmRelease.Because("Helm release %s names versions that are not served: %s; "+
			"change them with --helm, or run \"helm mapkubeapis\" before its next upgrade", labels["name"],
			finding.List(left)))
	}
	if len(changed) == 0 {
		return nil
	}
	value, err := release.in(e, manifest)
	if err != nil {
		s.Raise(string(e.Key), codeHelmRelease.Because("Helm release %s cannot be changed: %v", labels["name"], err))
		return nil
	}
	staged, err := s.Derive(ctx, e.Key, e.Key, value)
	if staged {
		s.section.HelmReleases = append(s.section.HelmReleases, HelmRelease{string(e.Key), labels["name"], changed})
	}
	return err
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

// versionChange is a version in a manifest that is not served.
type versionChange struct {
	from    string // "GROUP/VERSION KIND"
	to      string // apiVersion; empty for none
	removed bool   // from the manifest
}

func (c versionChange) String() string {
	if c.removed {
		return c.from + ": removed"
	}
	return c.from + ": " + c.to
}

// mapManifest returns a manifest with served versions, and the changes sorted by their old version.
// With remove, it lacks objects of built-in kinds without a served version. Only the lines
// apiVersion and kind at the left margin of a document are read: a YAML parser would take gigabytes
// for a hostile release.
func (g *versionsGone) mapManifest(manifest string, remove bool) (string, []versionChange) {
	var out strings.Builder
	changes := map[string]versionChange{}
	begin, at, copied := 0, 0, 0 // of the document, of its apiVersion, and of the text behind out
	apiVersion, kind := "", ""
	finish := func(end int) {
		to, isGone := g.moved(apiVersion, kind)
		c := versionChange{apiVersion + " " + kind, to,
			remove && to == "" && g.builtin(gvr.FromAPIVersionAndKind(apiVersion, kind))}
		if isGone {
			changes[c.from] = c
		}
		switch {
		case isGone && c.removed:
			out.WriteString(manifest[copied:begin])
			copied = end
		case isGone && to != "":
			out.WriteString(manifest[copied:at] + to)
			copied = at + len(apiVersion)
		}
		begin, apiVersion, kind = end, "", ""
	}
	end := 0
	for line := range strings.Lines(manifest) {
		if strings.HasPrefix(line, "---") {
			finish(end)
		}
		if value, ok := strings.CutPrefix(line, "apiVersion:"); ok {
			apiVersion = scalar(value)
			at = end + len(line) - len(value) + strings.Index(value, apiVersion)
		}
		if value, ok := strings.CutPrefix(line, "kind:"); ok {
			kind = scalar(value)
		}
		end += len(line)
	}
	finish(end)
	out.WriteString(manifest[copied:])
	return out.String(), slices.SortedFunc(maps.Values(changes),
		func(a, b versionChange) int { return strings.Compare(a.from, b.from) })
}

func scalar(text string) string {
	text, _, _ = strings.Cut(text, " #")
	return strings.Trim(strings.TrimSpace(text), `"'`)
}

// helmText is an unpacked release.
type helmText struct {
	text     []byte // JSON
	zipped   bool
	manifest string
}

// unpackHelm unpacks a release: base64 of gzip of JSON.
func unpackHelm(release string) (r helmText, err error) {
	if r.text, err = base64.StdEncoding.DecodeString(release); err != nil {
		return r, errors.New("not base64")
	}
	if r.zipped = bytes.HasPrefix(r.text, []byte("\x1f\x8b")); r.zipped { // early Helm 3 does not compress
		unzip, err := gzip.NewReader(bytes.NewReader(r.text))
		if err != nil {
			return r, fmt.Errorf("gzip: %w", err)
		}
		if r.text, err = io.ReadAll(io.LimitReader(unzip, maxHelm+1)); err != nil {
			return r, fmt.Errorf("gzip: %w", err)
		}
		if len(r.text) > maxHelm {
			return r, fmt.Errorf("longer than %d bytes", maxHelm)
		}
	}
	manifest, err := encoding.Get(r.text, "manifest")
	if err != nil {
		return r, errors.New("not JSON")
	}
	r.manifest, _ = manifest.(string)
	return r, nil
}

// in returns the stored value e with another manifest in its release.
func (r *helmText) in(e *transform.Entry, manifest string) ([]byte, error) {
	text, err := encoding.Set(r.text, manifest, "manifest")
	if err != nil {
		return nil, err
	}
	if r.zipped {
		var out bytes.Buffer
		zip, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // like Helm
		_, err := zip.Write(text)
		if err = errors.Join(err, zip.Close()); err != nil {
			return nil, err
		}
		text = out.Bytes()
	}
	packed := base64.StdEncoding.EncodeToString(text)
	v, err := e.ParseValue()
	if err != nil {
		return nil, err
	}
	if v.GVK.Kind == "Secret" { // whose data are bytes
		packed = base64.StdEncoding.EncodeToString([]byte(packed))
	}
	if v.Format != encoding.FormatProtobuf {
		return encoding.Set(e.Value, packed, "data", "release")
	}
	content, err := native.DecodeParsed(v)
	if err != nil {
		return nil, err
	}
	content["data"].(map[string]any)["release"] = packed
	message, err := native.Encode(v, content)
	if err != nil {
		return nil, err
	}
	return encoding.WithMessage(e.Value, message)
}
