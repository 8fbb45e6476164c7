package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "will it restore, is every record sound",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift verify before.db
etcdshift verify --encryption-config encryption.yaml before.db
etcdshift verify -o json before.db && etcdutl snapshot restore before.db`,
		UsageText: `Reads the whole file: digest, pages, the free list, the order of records, each record's numbers against those of the one
before it, and every lease, alarm, user, role, member and version that etcd decodes when it starts; odd ones that etcd accepts are warnings.
"etcdutl snapshot restore" checks no more than the digest. With --encryption-config, also whether its keys open every value
that is encrypted at rest. Of an archive that "cluster extract" made, also whether it still holds exactly what its manifest says.

Exit status: 0 nothing found, 1 damage found, 2 usage, 5 could not judge, 130 interrupted.`,
		Flags:  readFlags("see whether every value that is encrypted at rest opens with", textOrJSON()),
		Action: runVerify,
	}
}

// verification is what verify prints.
type verification struct {
	documentHead          // input is empty but for the path where the file could not be opened
	Path         string   `json:"path"`
	Sound        bool     `json:"sound"`
	Findings     []string `json:"findings"`
	Warnings     []string `json:"warnings,omitempty"`
	Archive      string   `json:"archive,omitempty"` // of which logical cluster it is an archive
	text         string   // that in words
}

func runVerify(c *cli.Context) error {
	args, err := arguments(c)
	if err != nil {
		return err
	}
	v := verification{documentHead: document("Verification", inputInfo{Path: args[0]}), Path: args[0], Findings: []string{}}
	damage, err := verifyFile(c, &v)
	if err != nil {
		return &failure{status: exitCannotJudge, err: err}
	}
	v.Sound = damage == nil
	warn(c, v.Warnings...)
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, v)
	} else {
		err = printVerification(c, v)
	}
	if err != nil {
		return &failure{status: exitCannotJudge, err: err}
	}
	if damage != nil {
		if errors.Is(damage, encoding.ErrEncrypted) {
			return &failure{exitFound, fmt.Errorf("%s: %s that no key of the configuration opens", args[0], render.Plural(len(v.Findings), "value")), hintFor(damage)}
		}
		return &failure{exitFound, fmt.Errorf("%s is damaged: %d found", args[0], len(v.Findings)), hintFor(damage)}
	}
	return nil
}

// verifyFile fills in v and returns the first damage it found; an error means that it could not look.
func verifyFile(c *cli.Context, v *verification) (damage, err error) {
	defer progress(c).Phase("verifying " + v.Path).End()
	o, err := openFile(c, v.Path, encryptionConfig)
	if isDamage(err) {
		v.Findings = append(v.Findings, err.Error())
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	defer o.Close()
	s := o.Snapshot()
	v.Warnings = s.Warnings()
	for found := range snapshot.Verify(c.Context, s) {
		if !isDamage(found) {
			return nil, found
		}
		if damage == nil {
			damage = found
		}
		v.Findings = append(v.Findings, found.Error())
	}
	for odd := range snapshot.Odd(c.Context, s) {
		if len(v.Warnings) == mostListed {
			v.Warnings = append(v.Warnings, "... and more")
			break
		}
		v.Warnings = append(v.Warnings, odd.Error())
	}
	if err := c.Context.Err(); err != nil {
		return nil, err
	}
	if damage == nil {
		if damage, err = verifyArchive(c.Context, s, v); err != nil {
			return nil, err
		}
	}
	v.Input, _ = o.input(c.Context) // what is wrong with it was found above
	if damage != nil {              // values of a damaged file are not to be trusted
		return damage, nil
	}
	o.Reader = o.Below(readPrefixes(c)...)
	err = s.Guard(func() error {
		if o.transformers != nil {
			damage, err = openAll(c.Context, o.Reader, v)
		}
		return checkPrefixes(c, err, o)
	})
	return damage, err
}

// verifyArchive checks an archive of logical clusters against its manifest. Of any other file it finds nothing.
func verifyArchive(ctx context.Context, s *snapshot.Snapshot, v *verification) (damage, err error) {
	m, err := archive.OpenChecked(ctx, s)
	if errors.Is(err, archive.ErrNotArchive) {
		return nil, nil
	}
	if m != nil {
		v.Archive, v.text = m.Name, archiveText(m)
	}
	if errors.Is(err, archive.ErrDamaged) {
		v.Findings = append(v.Findings, err.Error())
		return err, nil
	}
	return nil, err
}

// openAll tries to open every value and lists those that stay closed; the first of their reasons is sealed.
func openAll(ctx context.Context, r *inspect.Reader, v *verification) (sealed, err error) {
	for e, err := range r.Live(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if e.Undecryptable == nil {
			continue
		}
		if !errors.Is(e.Undecryptable, encoding.ErrEncrypted) { // a KMS plugin that does not answer any more
			return nil, e.Undecryptable
		}
		if sealed == nil {
			sealed = e.Undecryptable
		}
		v.Findings = append(v.Findings, fmt.Sprintf("%s: %v", e.Key, e.Undecryptable))
	}
	return sealed, nil
}

// isDamage tells what is wrong with a snapshot from what kept it from being judged: what is no snapshot at all has no damage.
func isDamage(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	for _, damage := range []error{snapshot.ErrDamaged, snapshot.ErrDigest, snapshot.ErrTruncated} {
		if errors.Is(err, damage) {
			return true
		}
	}
	return false
}

func printVerification(c *cli.Context, v verification) error {
	if v.Sound {
		text := ""
		if v.text != "" {
			text = ": an " + render.Printable(v.text) + ", as it was made"
		}
		_, err := fmt.Fprintf(c.App.Writer, "%s is sound%s\n", render.Printable(v.Path), text)
		return err
	}
	out := bufio.NewWriter(c.App.Writer)
	for _, f := range v.Findings[:min(len(v.Findings), mostListed)] {
		fmt.Fprintln(out, render.Printable(f))
	}
	if n := len(v.Findings); n > mostListed {
		fmt.Fprintf(out, "... and %d more; -o json lists them all\n", n-mostListed)
	}
	return out.Flush() // its error is the first of any of the above
}
