package storageversion

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// mapHelm replaces versions that are not served in the manifest of a Helm release, like the plugin
// mapkubeapis, or warns of them. Helm compares the next upgrade with that manifest, and fails for
// kinds unknown to the server. Superseded releases do not matter. changed reports a staged change.
func (s *storage) mapHelm(
	ctx context.Context, e *transform.Entry, key keys.Key, gone *versionsGone,
) (changed bool, err error) {
	if !strings.HasPrefix(key.Name, objects.HelmPrefix) || e.Undecryptable != nil || gone.empty() {
		return false, nil
	}
	var release *objects.HelmRelease
	v, err := e.ParseValue()
	if err == nil {
		release, err = objects.ReadHelm(v)
	}
	if err != nil {
		s.Raise(string(e.Key), codeHelmRelease.Because("the versions that this Helm release names cannot be read: %v",
			err))
	}
	if release == nil {
		return false, nil
	}
	manifest, changes := gone.mapManifest(release.Manifest, s.opts.RemoveUnserved)
	var left, mapped []string
	for _, c := range changes {
		if s.opts.Helm && (c.to != "" || c.removed) {
			mapped = append(mapped, c.String())
		} else {
			left = append(left, c.from)
		}
	}
	if len(left) > 0 {
		s.Raise(string(e.Key), codeHelmRelease.Because("Helm release %s names versions that are not served: %s; "+
			"change them with --helm, or run \"helm mapkubeapis\" before its next upgrade", release.Name,
			finding.List(left)))
	}
	if len(mapped) == 0 {
		return false, nil
	}
	value, err := withManifest(e, release, manifest)
	if err != nil {
		s.Raise(string(e.Key), codeHelmRelease.Because("Helm release %s cannot be changed: %v", release.Name, err))
		return false, nil
	}
	staged, err := s.Derive(ctx, e.Key, e.Key, value)
	if staged {
		s.section.HelmReleases = append(s.section.HelmReleases, HelmRelease{string(e.Key), release.Name, mapped})
	}
	return staged, err
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
// With remove, it lacks objects of built-in kinds without a served version.
func (g *versionsGone) mapManifest(manifest string, remove bool) (string, []versionChange) {
	var out strings.Builder
	changes := map[string]versionChange{}
	copied := 0 // the text before it is in out
	for doc := range objects.HelmDocuments(manifest) {
		to, isGone := g.moved(doc.APIVersion, doc.Kind)
		c := versionChange{doc.APIVersion + " " + doc.Kind, to,
			remove && to == "" && g.builtin(gvr.FromAPIVersionAndKind(doc.APIVersion, doc.Kind))}
		if isGone {
			changes[c.from] = c
		}
		switch {
		case isGone && c.removed:
			out.WriteString(manifest[copied:doc.Begin])
			copied = doc.End
		case isGone && to != "":
			out.WriteString(manifest[copied:doc.At] + to)
			copied = doc.At + len(doc.APIVersion)
		}
	}
	out.WriteString(manifest[copied:])
	return out.String(), slices.SortedFunc(maps.Values(changes),
		func(a, b versionChange) int { return strings.Compare(a.from, b.from) })
}

// withManifest returns the stored value e with another manifest in its release.
func withManifest(e *transform.Entry, r *objects.HelmRelease, manifest string) ([]byte, error) {
	text, err := encoding.Set(r.Text, manifest, "manifest")
	if err != nil {
		return nil, err
	}
	if r.Zipped {
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
