package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// module is a Go module whose code is in the program.
type module struct {
	path, version string
	sum           string   // as go.sum has it, h1:...; empty for the standard library
	dir           string   // where its sources are
	licences      []string // SPDX identifiers
	texts         []string // names of the files with licences and notices, in dir
}

// linked are the modules in a program, by path, the standard library among them.
func (r *release) linked(ctx context.Context, program string) ([]module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var all []module
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		all = append(all, module{path: d.Path, version: d.Version, sum: d.Sum})
	}
	return r.licensed(ctx, all, info.GoVersion)
}

// imported are the modules of which the programs for all platforms are made, without a build.
func (r *release) imported(ctx context.Context) ([]module, error) {
	const deps = `{{with .Module}}{{if not .Main}}{{with .Replace}}{{.Path}} {{.Version}}{{else}}{{.Path}} {{.Version}}{{end}}{{end}}{{end}}`
	seen := map[string]module{}
	for _, p := range r.platforms {
		out, err := r.run(ctx, p.environment(), "go", "list", "-deps", "-f", deps, "./cmd/etcdshift")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
			seen[path] = module{path: path, version: version}
		}
	}
	all, err := r.licensed(ctx, slices.Collect(maps.Values(seen)), runtime.Version())
	if err != nil {
		return nil, err
	}
	data, err := r.authorities(ctx)
	all = append(all, data)
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return all, err
}

// authorities is the module of the certificates in the image, which no program links.
func (r *release) authorities(ctx context.Context) (module, error) {
	m := module{path: "golang.org/x/crypto/x509roots/fallback"}
	out, err := r.run(ctx, nil, "go", "list", "-C", "release", "-m", "-f", "{{.Version}} {{.Dir}}", m.path)
	if err != nil {
		return m, err
	}
	m.version, m.dir, _ = strings.Cut(strings.TrimSpace(out), " ")
	classes, err := assets.DefaultClassifier()
	if err != nil {
		return m, err
	}
	err = m.read(classes)
	m.licences = append(m.licences, "MPL-2.0") // of Mozilla's list, which the module does not say
	return m, err
}

// mozilla is the notice beside the licence of authorities.
const mozilla = `The certificates in the image, /etc/ssl/certs/ca-certificates.crt, are Mozilla's, under the terms of the Mozilla Public License 2.0
(https://mozilla.org/MPL/2.0/). Their source is certdata.txt of NSS:
https://hg.mozilla.org/mozilla-central/raw-file/tip/security/nss/lib/ckfw/builtins/certdata.txt
`

// licensed adds the standard library of a version of Go to modules, sorts them and finds their
// licences.
func (r *release) licensed(ctx context.Context, all []module, goVersion string) ([]module, error) {
	root, err := r.run(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs, err := r.sources(ctx)
	if err != nil {
		return nil, err
	}
	for i, m := range all {
		all[i].dir = dirs[m.path+"@"+m.version]
	}
	all = append(all, module{path: "std", version: strings.TrimPrefix(goVersion, "go"), dir: strings.TrimSpace(root)})
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.path, b.path) })
	classes, err := assets.DefaultClassifier()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := all[i].read(classes); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// sources says where the sources of each module of the project are.
func (r *release) sources(ctx context.Context) (map[string]string, error) {
	out, err := r.run(ctx, nil, "go", "list", "-m", "-json", "all")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var m struct{ Path, Version, Dir string }
		switch err := d.Decode(&m); {
		case err == nil:
			all[m.Path+"@"+m.Version] = m.Dir
		case errors.Is(err, io.EOF):
			return all, nil
		default:
			return nil, err
		}
	}
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense|patents)([.-].*)?$`)

// read finds the licences of a module in its topmost folder.
func (m *module) read(classes *classifier.Classifier) error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("module %s: its sources: %w", m.path, err)
	}
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, e.Name()))
		if err != nil {
			return err
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
		return fmt.Errorf("module %s %s: no licence found in %s", m.path, m.version, m.dir)
	}
	return nil
}

// list has a line for each module: path, tab, licences. Versions change often, licences do not.
func list(all []module) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%s\t%s\n", m.path, strings.Join(m.licences, " AND "))
	}
	return b.String()
}

// compareLicences: licences.tsv, which a person reads when it changes, lists what is linked on any
// platform, and the certificates of the image.
func (r *release) compareLicences(ctx context.Context) error {
	all, err := r.imported(ctx)
	if err != nil {
		return err
	}
	stored, err := os.ReadFile(filepath.Join(r.root, "release", "licences.tsv"))
	if err != nil || !bytes.Equal(stored, []byte(list(all))) {
		return errors.Join(err, fmt.Errorf("release/licences.tsv differs from what is released: read the licences that are new, write this to it:\n%s",
			list(all)))
	}
	return nil
}

// writeLicences copies the licences of all that is linked on any platform, and of the image's
// certificates.
func (r *release) writeLicences(ctx context.Context) error {
	union := map[string]module{}
	for _, p := range r.platforms {
		all, err := r.linked(ctx, r.program(p))
		if err != nil {
			return err
		}
		for _, m := range all {
			union[m.path] = m
		}
	}
	data, err := r.authorities(ctx)
	if err != nil {
		return err
	}
	union[data.path] = data
	notice := r.staged(path.Join("licences", data.path, "NOTICE"))
	if err := create(notice, func(w io.Writer) error { _, err := io.WriteString(w, mozilla); return err }); err != nil {
		return err
	}
	for name, m := range union {
		for _, text := range m.texts {
			to := r.staged(path.Join("licences", name, text))
			if err := create(to, func(w io.Writer) error { return copyFile(w, filepath.Join(m.dir, text)) }); err != nil {
				return err
			}
		}
	}
	return nil
}
