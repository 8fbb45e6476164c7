package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// module is a Go module with code in the program.
type module struct {
	path, version string
	sum           string   // h1:... from go.sum; empty for the standard library
	dir           string   // source folder
	licences      []string // SPDX identifiers
	texts         []string // names of license and notice files in dir
}

func (m module) expression() string { return strings.Join(m.licences, " AND ") }

// Templates of "go list" for the modules of packages.
const (
	fields = `{{.Path}} {{.Version}} {{or .Sum "-"}} {{.Dir}}`
	deps   = `{{with .Module}}{{if not .Main}}{{with or .Replace .}}` + fields + `{{end}}{{end}}{{end}}`
)

// authorities is the module of the certificates in the image; programs do not link it.
const authorities = "golang.org/x/crypto/x509roots/fallback"

// findLicences fills r.linked with the modules of the program on each platform, by path, including
// the standard library. It returns the modules of all platforms and of the image's certificates.
func (r *release) findLicences(ctx context.Context) ([]module, error) {
	classes, err := assets.DefaultClassifier()
	if err != nil {
		return nil, err
	}
	std, err := r.run(ctx, nil, "go", "env", "GOVERSION", "GOROOT")
	if err != nil {
		return nil, err
	}
	version, root, _ := strings.Cut(strings.TrimSpace(std), "\n")
	standard := "std " + strings.TrimPrefix(version, "go") + " - " + root + "\n"
	known := map[string]module{}
	r.linked = map[platform][]module{}
	for _, p := range r.platforms {
		out, err := r.run(ctx, p.environment(), "go", "list", "-deps", "-f", deps, "./cmd/etcdshift")
		if err != nil {
			return nil, err
		}
		lines := slices.Sorted(strings.Lines(out + standard))
		for _, line := range slices.Compact(lines) {
			m, err := readModule(classes, line)
			if err != nil {
				return nil, err
			}
			known[m.path], r.linked[p] = m, append(r.linked[p], m)
		}
	}
	out, err := r.run(ctx, nil, "go", "list", "-C", "release", "-m", "-f", fields, authorities)
	if err != nil {
		return nil, err
	}
	m, err := readModule(classes, out)
	m.licences = append(m.licences, "MPL-2.0") // Mozilla's list; not declared by the module
	known[authorities] = m
	return slices.SortedFunc(maps.Values(known), func(a, b module) int { return strings.Compare(a.path, b.path) }), err
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense|patents)([.-].*)?$`)

// readModule finds the licenses of a module, a line of "go list", in its top folder.
func readModule(classes *classifier.Classifier, line string) (m module, err error) {
	words := strings.SplitN(strings.TrimSpace(line), " ", 4)
	if len(words) != 4 {
		return m, fmt.Errorf("go list printed %q", line)
	}
	m = module{path: words[0], version: words[1], sum: strings.TrimPrefix(words[2], "-"), dir: words[3]}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return m, fmt.Errorf("module %s: its sources: %w", m.path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
		if err != nil {
			return m, err
		}
		m.texts = append(m.texts, e.Name())
		for _, match := range classes.Match(text).Matches {
			if match.MatchType == "License" {
				m.licences = append(m.licences, match.Name)
			}
		}
	}
	slices.Sort(m.licences)
	m.licences = slices.Compact(m.licences)
	if len(m.licences) == 0 {
		return m, fmt.Errorf("module %s %s: no licence found in %s", m.path, m.version, m.dir)
	}
	return m, nil
}

// compareLicences compares licences.tsv, whose changes a person reviews, with the release. It has a
// line for each module: path, tab, licenses. Versions change often, licenses rarely.
func (r *release) compareLicences(ctx context.Context) error {
	all, err := r.findLicences(ctx)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, m := range all {
		fmt.Fprintf(&list, "%s\t%s\n", m.path, m.expression())
	}
	stored, err := os.ReadFile(filepath.Join(r.root, "release", "licences.tsv"))
	if err == nil && string(stored) == list.String() {
		return nil
	}
	return errors.Join(err, fmt.Errorf("release/licences.tsv differs from what is released: read the licences "+
		"that are new, "+
		"write this to it:\n%s", &list))
}

// mozilla is the notice for the license of authorities.
const mozilla = `The certificates in the image, /etc/ssl/certs/ca-certificates.crt, are Mozilla's, under the terms of
the Mozilla Public License 2.0 (https://mozilla.org/MPL/2.0/). Their source is certdata.txt of NSS:
https://hg.mozilla.org/mozilla-central/raw-file/tip/security/nss/lib/ckfw/builtins/certdata.txt
`

// addLicences adds the licenses of all released code.
func (r *release) addLicences(ctx context.Context) error {
	all, err := r.findLicences(ctx)
	if err != nil {
		return err
	}
	r.add(r.common, path.Join("licences", authorities, "NOTICE"), 0o644, []byte(mozilla))
	for _, m := range all {
		for _, name := range m.texts {
			text, err := os.ReadFile(filepath.Join(m.dir, name))
			if err != nil {
				return err
			}
			r.add(r.common, path.Join("licences", m.path, name), 0o644, text)
		}
	}
	return nil
}
