package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing/fstest"
	"time"
)

// release is the configuration and state of a run.
type release struct {
	version, root, out, key, url string
	platforms                    []platform
	date                         time.Time // of the commit, used for all files
	common                       fstest.MapFS
	linked                       map[platform][]module
}

// platform is an operating system and architecture, in Go's names.
type platform struct{ os, arch string }

func parsePlatform(word string) (platform, error) {
	system, arch, ok := strings.Cut(word, "/")
	if !ok {
		return platform{}, fmt.Errorf("platform %q: want one such as linux/amd64", word)
	}
	return platform{system, arch}, nil
}

func (p platform) String() string { return p.os + "-" + p.arch }

func (p platform) program() string {
	if p.os == "windows" {
		return "etcdshift.exe"
	}
	return "etcdshift"
}

// host is the platform of this machine.
var host = platform{runtime.GOOS, runtime.GOARCH}

// environment returns Go's build environment, independent of user settings except the cache. An
// empty value would not override a setting of "go env -w".
func (p platform) environment() []string {
	return []string{
		"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS=" + p.os, "GOARCH=" + p.arch,
		"GOAMD64=v1", "GOARM64=v8.0",
	}
}

// name returns the prefix of file names for a platform.
func (r *release) name(p platform) string { return "etcdshift-" + r.version + "-" + p.String() }

// archive returns the name of the archive for a platform.
func (r *release) archive(p platform) string {
	if p.os == "windows" {
		return r.name(p) + ".zip"
	}
	return r.name(p) + ".tar.gz"
}

// staged returns the path of an intermediate file.
func (r *release) staged(name string) string { return filepath.Join(r.out+".staged", name) }

// program returns the path of the program built for a platform.
func (r *release) program(p platform) string { return r.staged(filepath.Join(p.String(), p.program())) }

// tag excludes later major versions: Go would expect another module path.
var tag = regexp.MustCompile(`^v[01]\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// check refuses a commit that its program could not name: changed files, or another tag.
func (r *release) check(ctx context.Context) error {
	if !tag.MatchString(r.version) {
		return fmt.Errorf("version %q: want a tag such as v1.2.3", r.version)
	}
	changes, err := r.run(ctx, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" {
		return fmt.Errorf("the clone has changes:\n%s", changes)
	}
	tags, err := r.run(ctx, nil, "git", "tag", "--points-at", "HEAD")
	if err != nil {
		return err
	}
	if got := strings.Fields(tags); len(got) != 1 || got[0] != r.version {
		return fmt.Errorf("the commit has the tags %q, want %s alone: git tag %s", got, r.version, r.version)
	}
	date, err := r.run(ctx, nil, "git", "show", "-s", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(date))
	r.date = at.UTC()
	return err
}

// build builds the program for each platform.
func (r *release) build(ctx context.Context) error {
	for _, p := range r.platforms {
		path, err := r.compile(ctx, p)
		if err != nil {
			return err
		}
		if p != host {
			continue
		}
		got, err := r.run(ctx, nil, path, "version", "-o", "json")
		if err != nil || !strings.Contains(got, `"version": "`+r.version+`"`) {
			return errors.Join(err, fmt.Errorf("%s does not say that it is %s", path, r.version))
		}
	}
	return nil
}

// compile builds the program for a platform and returns its path.
func (r *release) compile(ctx context.Context, p platform) (string, error) {
	path, err := filepath.Abs(r.program(p))
	if err != nil {
		return "", err
	}
	_, err = r.run(ctx, p.environment(),
		"go", "build", "-buildvcs=true", "-trimpath", "-ldflags", "-s -w", "-o", path, "./cmd/etcdshift")
	return path, err
}

// ask runs the program built for this machine.
func (r *release) ask(ctx context.Context, args ...string) (string, error) {
	path, err := filepath.Abs(r.program(host))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the manual needs the program of this machine among the platforms: %w", err)
	}
	return r.run(ctx, nil, path, args...)
}

// run runs a command in the project folder and returns its output.
func (r *release) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.Stdin = r.root, append(os.Environ(), env...), os.Stdin // a key may need its passphrase
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, stderr.String())
	}
	return string(out), nil
}
