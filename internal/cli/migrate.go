package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

func specCommands(specs []transform.Spec, group string) (commands []*cli.Command) {
	for _, spec := range specs {
		if spec.Group == group {
			commands = append(commands, migration{spec}.command())
		}
	}
	return commands
}

func migrateCommand(specs []transform.Spec) *cli.Command {
	sub := specCommands(specs, transform.GroupMigrate)
	examples := stream.Mapped(sub, func(c *cli.Command) string {
		return strings.TrimSpace("etcdshift migrate " + c.Name + " before.db after.db" +
			strings.TrimPrefix(c.ArgsUsage, "IN OUT"))
	})
	return &cli.Command{
		Name:        transform.GroupMigrate,
		Usage:       "write a changed copy of a snapshot",
		Description: strings.Join(examples, "\n"),
		Subcommands: sub,
	}
}

type migration struct{ transform.Spec }

// isArchive reports whether the output is a file in the format of an archive: all or nothing, and
// not for a cluster.
func (m migration) isArchive() bool { return m.Builds && m.NotForRestore }

func (m migration) command() *cli.Command {
	text, arguments := m.Text, cmp.Or(m.ArgsText, strings.TrimSpace("IN OUT "+m.Rest))
	if m.Group == transform.GroupKCP {
		text += moveOrder
	}
	leaves, written := " 4 written, with problems allowed by --allow: records were skipped or lost fields (each is "+
		"listed with its decision),", "0 and 4"
	if m.isArchive() {
		leaves, written = "", "0"
	}
	before := strings.TrimSpace(strings.TrimSuffix(arguments, m.Rest))
	out := before[strings.LastIndex(before, " ")+1:]
	text += fmt.Sprintf(`

Inputs are never changed. %s must not exist; it appears only after it has been verified and synced.

Exit status: 0 done, 1 failed, 2 usage, 3 refused,%s 130 interrupted.
With any status except %s nothing was written, unless the message says that %s exists and only the report or the
restore failed.
For an object in a bucket, the message may say that the result is unknown.`, out, leaves, written, out)
	return &cli.Command{
		Name:        m.Name,
		Usage:       m.Usage,
		ArgsUsage:   arguments,
		Description: m.Examples,
		UsageText:   text,
		Flags:       append(specFlags(m.Flags), m.flags()...),
		Action:      m.run,
	}
}

func specFlags(flags []transform.Flag) (out []cli.Flag) {
	for _, f := range flags {
		var aliases []string
		if f.Short != "" {
			aliases = []string{f.Short}
		}
		switch value := f.Default.(type) {
		case bool:
			out = append(out, &cli.BoolFlag{Name: f.Name, Aliases: aliases, Category: f.Category,
				Usage: f.Usage, Value: value})
		case time.Duration:
			out = append(out, &cli.DurationFlag{Name: f.Name, Aliases: aliases, Category: f.Category,
				Usage: f.Usage, Value: value})
		case []string:
			if f.Choices != nil {
				many := newWordsFlag(f.Name, f.Usage, "one of", f.Choices)
				many.Category = f.Category
				out = append(out, many)
				break
			}
			out = append(out, &cli.StringSliceFlag{Name: f.Name, Aliases: aliases, Category: f.Category,
				Usage: f.Usage})
		case string, nil:
			text, _ := value.(string)
			flag := &cli.StringFlag{Name: f.Name, Aliases: aliases, Category: f.Category, Usage: f.Usage, Value: text}
			if f.Choices == nil {
				out = append(out, flag)
			} else {
				choice := oneOf(flag, f.Choices...)
				choice.bare = f.Bare
				out = append(out, choice)
			}
		}
	}
	return out
}

// flags returns the flags of every transform. A transform that builds a new file has fewer; unused
// flags are hidden.
func (m migration) flags() []cli.Flag {
	decrypts, flags := "decrypt values with", []cli.Flag{
		&cli.BoolFlag{Name: "dry-run", Usage: "plan, validate and report everything, write nothing"},
		&cli.StringFlag{Name: "report", Usage: "write the report as JSON to the new file `FILE`, whatever the outcome"},
		&cli.BoolFlag{Name: replaceReport, Usage: "let --report replace the report of an earlier run"},
		newCodesFlag("allow", "continue although records have problem `CODE`; \"etcdshift explain CODE\" describes "+
			"the effect on them and the exit status, 4 or 0; may be repeated",
			"a problem that refuses a run", finding.Allowable(m.AllCodes())),
	}
	if !m.Builds {
		decrypts = "decrypt values, and encrypt written ones, with"
		flags = append(flags,
			&cli.StringFlag{Name: "time", Usage: "create new objects with `TIME` (RFC 3339; default: the newest time " +
				"in the snapshot)"})
	}
	if !m.isArchive() {
		flags = append(flags,
			&cli.Int64Flag{Name: "bump-revision", Value: transform.DefaultBumpRevision,
				Usage: "print restore commands that raise the revision by `N`"},
			&cli.StringSliceFlag{Name: restoreToFlag, Usage: "also restore the member NAME from OUT into " +
				"the new data directory `[NAME=]DIR`, as \"etcdshift restore\" does; may be repeated; \"-\" as " +
				"OUT keeps no file"})
	}
	if !m.Builds {
		flags = append(flags, diffFlags()...)
	}
	flags = append(flags, prefixFlag("work"), encryptionFlag(decrypts), maxExpandFlag(), textOrJSON(), quietFlag())
	for _, f := range flags {
		if slices.Contains(m.Unused(), f.Names()[0]) {
			hide(f)
		}
	}
	return flags
}

// hide removes a flag from the help.
func hide(f cli.Flag) {
	switch f := f.(type) {
	case *cli.BoolFlag:
		f.Hidden = true
	case *cli.StringFlag:
		f.Hidden = true
	case *cli.StringSliceFlag:
		f.Hidden = true
	case *cli.Int64Flag:
		f.Hidden = true
	}
}

// isHidden reports whether a flag is missing in the help.
func isHidden(f cli.Flag) bool {
	shown, is := f.(cli.VisibleFlag)
	return is && !shown.IsVisible()
}

func (m migration) run(c *cli.Context) error {
	args := &transform.Args{Values: c, Arguments: c.Args().Slice(), Prefixes: readPrefixes(c)}
	options, err := m.options(c, args)
	if err != nil {
		return err
	}
	file, err := createReport(c, options)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Discard()
	}
	restores, err := m.prepareRestoreTo(c, &options)
	if err != nil {
		return err
	}
	report, err := m.runPhases(c, options, args)
	if also := restores.run(c, options.Out, report); also != nil {
		return m.unrestored(c, file, report, restores, errors.Join(err, also))
	}
	if err != nil && statusOf(err) == exitUsage || errors.Is(err, s3.ErrUncertain) {
		return err // a report would say that nothing was written
	}
	return m.reportRun(c, file, report, err)
}

// unrestored ends a run whose output was written, but not restored.
func (m migration) unrestored(c *cli.Context, file *reportFile, r *transform.Report, to *restoreTo, err error) error {
	if to.alone {
		r.Outcome, r.Error, r.Output, r.Appendix = transform.Failed, err.Error(), nil, nil
		return m.reportRun(c, file, r, err)
	}
	return errors.Join(onlyRestoreFailed(err, r), m.reportRun(c, file, r, nil))
}

// onlyRestoreFailed is the error of a run whose output was written. An interrupt counts as a
// failure: with the status of an interrupt, nothing is written.
func onlyRestoreFailed(err error, r *transform.Report) error {
	if errors.Is(err, context.Canceled) {
		err = errors.New("the restore was interrupted")
	}
	return &failure{exitFailed, fmt.Errorf("%w (%s: %s)", err, r.Output.Path, r.Outcome),
		"the output was written and verified; only the restore failed: try \"etcdshift restore\""}
}

// reportRun writes and prints the report of a run that ended with err, and returns its status.
func (m migration) reportRun(c *cli.Context, file *reportFile, report *transform.Report, err error) error {
	by := tool()
	report.Tool = &by
	err = m.verdict(report, err)
	also := file.write(c, report)
	if wantsJSON(c) {
		also = errors.Join(also, render.JSON(c.App.Writer, report))
	} else {
		also = errors.Join(also, printReport(c.App.Writer, report))
	}
	if also != nil && report.Output != nil {
		also = fmt.Errorf("%w (%s: %s)", also, report.Output.Path, report.Outcome)
		return &failure{exitFailed, also, "the output was written and verified; only the report failed"}
	}
	return errors.Join(err, also)
}

// options reads the common arguments; args keeps the arguments before the input and after the
// output.
func (m migration) options(c *cli.Context, args *transform.Args) (o transform.Options, err error) {
	names := []string{"IN", "OUT"}
	if m.Arguments != nil {
		names = m.Arguments(args)
	} else if named := strings.Fields(m.ArgsText); len(named) >= len(names) {
		names = named[:len(names)] // such as IN ARCHIVE
	}
	rest := strings.Fields(m.Rest)
	names = append(names, rest...)
	given, err := arguments(c, names...)
	if err != nil {
		return o, err
	}
	if i := slices.Index(given, ""); i >= 0 { // from an unset shell variable
		return o, usagef(commandPath(c), "takes %s; %s is empty: %q", strings.Join(names, " "),
			names[min(i, len(names)-1)], given)
	}
	in := len(given) - 2
	if len(rest) > 0 {
		in = len(names) - len(rest) - 2
	}
	args.Arguments, args.In, args.Out, args.Rest = given[:in], given[in], given[in+1], given[in+2:]
	if m.InputFirst {
		args.Arguments, args.In = given[1:in+1], given[0]
	}
	if args.In == noOut {
		return o, usagef(commandPath(c), "IN is a file, not \"-\": a change reads it several times")
	}
	o = transform.Options{
		Command: commandPath(c), In: args.In, Out: args.Out, Prefixes: args.Prefixes,
		DryRun: c.Bool("dry-run"), CountUIDs: !c.IsSet("report") && !wantsJSON(c),
		Allow: c.StringSlice("allow"), BumpRevision: c.Int64("bump-revision"), MaxExpand: snapshotConfig(c).MaxExpand,
	}
	if err := checkDiff(c); err != nil {
		return o, err
	}
	if !m.isArchive() && o.BumpRevision < 1 {
		return o, usagef(commandPath(c), "--bump-revision is %d; it takes a number from 1", o.BumpRevision)
	}
	if given := c.String("time"); c.IsSet("time") {
		if o.Time, err = time.Parse(time.RFC3339, given); err != nil {
			return o, usagef(commandPath(c), "--time is %q; it takes a time such as 2026-11-20T20:50:00Z", given)
		}
	}
	return o, nil
}

// noArchive is a change that refuses an archive as its input: the manifest would be stale.
type noArchive struct{ transform.Transform }

// Plan implements [transform.Transform].
func (n noArchive) Plan(ctx context.Context, v *transform.View) error {
	if err := n.Transform.Plan(ctx, v); err != nil { // perhaps with a better hint
		return err
	}
	return archive.Refuse(ctx, v.Reader().Snapshot())
}

// runPhases builds and runs the transform, and shows its phases. The report is never nil.
func (m migration) runPhases(c *cli.Context, o transform.Options, args *transform.Args) (*transform.Report, error) {
	fail := func(err error) (*transform.Report, error) {
		r := transform.NewReport(o.Command)
		r.Input.Path, r.Outcome, r.Error = o.In, transform.Failed, err.Error()
		return r, err
	}
	var files []*opened
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	args.Small = readSmall(c)
	args.Open = func(_ context.Context, path, configFlag string) (*transform.File, error) {
		f, err := openWhole(c, path, configFlag)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		return &transform.File{Reader: f.Reader, Decrypter: f.decrypter()}, nil
	}
	t, err := m.New(c.Context, args)
	if err != nil {
		return fail(usageOf(c, err))
	}
	if !m.Builds {
		t = noArchive{t}
	}
	o.Prefixes = args.Prefixes
	if _, err := os.Stat(o.In); err != nil && !s3.Is(o.In) { // before waiting for a missing KMS plugin
		return fail(err)
	}
	if s3.Same(o.In, o.Out) {
		return fail(fmt.Errorf("%s: %w", o.Out, transform.ErrOutIsIn))
	}
	if o.Upload, err = uploadTo(c, o.Out); err != nil && !(o.DryRun && errors.Is(err, fs.ErrExist)) {
		return fail(err)
	}
	if _, there := os.Lstat(o.Out); o.DryRun && (err != nil || there == nil) {
		fmt.Fprintf(c.App.ErrWriter, "%s exists: a dry run does not touch it; the run itself needs another "+
			"name for OUT\n", render.Printable(o.Out))
	}
	transformers, err := loadEncryption(c, encryptionConfig)
	if err != nil {
		return fail(err)
	}
	defer transformers.Close()
	if transformers != nil { // a nil pointer in an interface is not nil
		o.Encryption = transformers
	}
	phases := progress(c)
	defer phases.End()
	if s3.Is(o.In) {
		phases.Phase(o.Command + ": fetch")
		if o.Input, err = scratchOf(c, o.In, o.MaxExpand); err != nil {
			return fail(err)
		}
	}
	o.Progress = func(phase string, part func() float64) { phases.Phase(o.Command + ": " + phase).Of(part) }
	if c.Bool(diffFlag) {
		o.Diff = printStaged(c, phases)
	}
	report, err := transform.Run(c.Context, o, t)
	return report, usageOf(c, err)
}

// usageOf converts a mistake in the command line to a usage error, and returns other errors
// unchanged.
func usageOf(c *cli.Context, err error) error {
	if wrong := (*transform.UsageError)(nil); errors.As(err, &wrong) {
		return usagef(commandPath(c), "%w", err)
	}
	return err
}

// samePath reports whether two paths name one file or object, existing or not.
func samePath(a, b string) bool {
	if s3.Is(a) || s3.Is(b) {
		return s3.Same(a, b)
	}
	if x, err := os.Stat(a); err == nil {
		y, err := os.Stat(b)
		return err == nil && os.SameFile(x, y)
	}
	x, errA := os.Stat(filepath.Dir(a))
	y, errB := os.Stat(filepath.Dir(b))
	return errA == nil && errB == nil && os.SameFile(x, y) && filepath.Base(a) == filepath.Base(b)
}
