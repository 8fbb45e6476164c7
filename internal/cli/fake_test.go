package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/calico"
	"github.com/etcdshift/etcdshift/transform"
)

// fakeMain is the program with a fake transform behind "migrate calico-v3" that follows its flags
// and ignores Calico. Tests use it to test the command line with every outcome.
func fakeMain() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	spec := calico.Spec
	spec.New = func(ctx context.Context, a *transform.Args) (transform.Transform, error) {
		t, err := calico.Spec.New(ctx, a)
		if err != nil {
			return nil, err
		}
		return fake{t.(*calico.Migration).Options, a.Prefixes}, nil
	}
	os.Exit(runCommands(ctx, commandsFor([]transform.Spec{spec}), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

type fake struct {
	calico.Options
	prefixes []string
}

// Plan adds a space to every config map; it refuses two of them without --conflicts, fails at one
// prefix, waits for an interrupt at another, and adds its choices as a step.
func (f fake) Plan(ctx context.Context, v *transform.View) error {
	crds := string(bytes.TrimSpace(f.V3CRDs))
	f.V3CRDs = nil
	v.Report().AddStep("choices: prefixes %q, %+v, CRDs %q", f.prefixes, f.Options, crds)
	for _, p := range f.prefixes {
		switch p {
		case "/broken":
			return errors.New("the fake is broken\nin two places")
		case "/wait":
			fmt.Fprintln(os.Stderr, "waiting")
			<-ctx.Done()
			return ctx.Err()
		}
	}
	v.Raise("", (&finding.Code{Name: "fake", Level: finding.Warning}).Because("a warning"))
	for _, key := range []string{"a", "b\x1b[2J"} {
		if f.Conflicts == "" && f.KeepV1 {
			v.Raise(key, (&finding.Code{Name: "conflict", Level: finding.Error,
				Allowed: finding.Skipped}).Because("two of them"))
		}
	}
	if f.NewUIDs {
		v.Report().UIDs = append(v.Report().UIDs, transform.UID{Seen: "a", Written: "b"},
			transform.UID{Seen: "a", Written: "a"})
		v.Report().Renamed = append(v.Report().Renamed, transform.Rename{Kind: "Tier", From: "x", To: "y"})
		v.Report().References = append(v.Report().References, transform.Reference{Key: "a"})
		v.Report().Kinds = append(v.Report().Kinds, transform.KindCount{Kind: "Tier", From: "a/v1",
			To: "b/v3", Migrated: 7})
	}
	if f.KeepV1 {
		return nil
	}
	for e, err := range v.Live(ctx, []byte("/registry/configmaps/")) {
		if err != nil {
			return err
		}
		if err := v.Put(ctx, e.Key, append(bytes.Clone(e.Value), ' ')); err != nil {
			return err
		}
	}
	return v.Delete(ctx, []byte("/registry/namespaces/team-b"))
}
