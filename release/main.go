// Release builds all files of a release from the checked-out commit: programs, archives, packages,
// an image, lists of components, and one bundle for machines without a network. The same commit,
// tag and Go version give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	r := &release{}
	flag.StringVar(&r.version, "version", "", "the tag, `vX.Y.Z`, of the commit that is checked out")
	flag.StringVar(&r.root, "root", "..", "the `folder` of the project, a clone without changes")
	flag.StringVar(&r.out, "out", "../dist", "the `folder` to make, which must not exist")
	flag.StringVar(&r.key, "key", "", "sign with the minisign secret key in `file`, beside which the public one "+
		"ends with .pub")
	flag.StringVar(&r.url, "url", "https://github.com/etcdshift/etcdshift/releases/download", "where releases will be")
	const all = "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64"
	platforms := flag.String("platforms", all, "what to build for")
	licences := flag.Bool("licences", false, "only compare the licences of what is linked on the platforms with "+
		"licences.tsv")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := func() error {
		for word := range strings.FieldsSeq(*platforms) {
			p, err := parsePlatform(word)
			if err != nil {
				return err
			}
			r.platforms = append(r.platforms, p)
		}
		if *licences {
			return r.compareLicences(ctx)
		}
		return r.make(ctx)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// make fills the folder out, which gets its name when complete.
func (r *release) make(ctx context.Context) error {
	if _, err := os.Lstat(r.out); err == nil {
		return fmt.Errorf("%s exists", r.out)
	}
	if err := r.check(ctx); err != nil {
		return err
	}
	out := r.out
	r.out = out + ".part"
	for _, dir := range []string{r.out, r.staged("")} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		r.build, r.collect, r.archives, r.packages, r.image, r.components, r.manifests, r.sums, r.sign, r.bundle,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(r.staged("")); err != nil {
		return err
	}
	part := r.out
	r.out = out
	return os.Rename(part, out)
}
