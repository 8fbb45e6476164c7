package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/extract"
)

func clusterExtractCommand() *cli.Command {
	return &cli.Command{
		Name:      "extract",
		Usage:     "write one logical cluster into an archive",
		ArgsUsage: "NAME SHARD ARCHIVE",
		Description: `etcdshift cluster extract 2y3qvnqz5ga11oc4 root.db consumer.archive
etcdshift cluster extract 2y3qvnqz5ga11oc4 root.db consumer.archive --with-children
etcdshift status consumer.archive && etcdshift get consumer.archive configmaps -A --cluster 2y3qvnqz5ga11oc4`,
		UsageText: `Writes every live record of the logical cluster NAME, and of no other, into a new file: keys, values, revisions and leases as the
shard has them, byte for byte, encrypted or not. With it go the bound definitions that its APIBindings name. A manifest says what
the archive holds and relies on, with digests that docs/archive.md explains.

NAME is the name that etcdshift cluster list prints, not a path.

The archive is an etcd snapshot: status, get, keys, sizes, verify and the other commands that read one read it too. It is not meant
to be restored as a shard: it has nothing but the logical cluster. cluster import takes it in; the shard stays as it is until
cluster purge takes it out there.

The shard is never changed and ARCHIVE must not exist; it gets its name when it was opened, checked against its manifest, and is on
disk.` + moveOrder + `

Exit status: 0 done, 1 failed, 2 usage, 3 refused, 130 interrupted. With any but 0 nothing was written; where only the report could
not be, the message says that ARCHIVE is there.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "with-children",
				Usage: "extract all logical clusters too that live on this shard and belong to a Workspace in one that is extracted"},
			&cli.StringFlag{Name: "as-shard", Usage: "take `S` for the name of this shard (default: what it calls itself)"},
			&cli.BoolFlag{Name: "dry-run", Usage: "read, judge and report everything, write nothing"},
			&cli.StringFlag{Name: "report", Usage: "write the report as JSON to a new `FILE`, whatever the outcome"},
			&cli.StringSliceFlag{Name: "allow", Usage: "go on although there is problem `CODE`; docs/problems.md says what that means; may be repeated"},
			workPrefixFlag(), encryptionFlag("open what tells what the logical cluster needs by"), maxExpandFlag(), outputFlag(), quietFlag(),
		},
		Action: runClusterExtract,
	}
}

func runClusterExtract(c *cli.Context) error {
	m := migration{transform.Spec{Codes: extract.Codes(), Settles: map[string]string{
		"encrypted": "open them with --encryption-config FILE",
	}}}
	if _, err := wantsJSON(c); err != nil {
		return err
	}
	args, err := fullArguments(c, []string{"NAME", "SHARD", "ARCHIVE"})
	if err == nil {
		err = m.checkAllow(c)
	}
	if err != nil {
		return err
	}
	o := extract.Options{
		Name: args[0], In: args[1], Out: args[2], WithChildren: c.Bool("with-children"), AsShard: c.String("as-shard"), DryRun: c.Bool("dry-run"),
		Allow: c.StringSlice("allow"), Prefixes: readPrefixes(c), MaxExpand: snapshotConfig(c).MaxExpand,
	}
	file, err := createReport(c, transform.Options{In: o.In, Out: o.Out})
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Discard()
	}
	r, err := extractArchive(c, o)
	return m.tell(c, file, outcomeOf{r.Report, r, func(w io.Writer) error { return printExtraction(w, r) }}, err)
}

// extractArchive runs it and shows on a terminal which stage it is in. The report is never nil.
func extractArchive(c *cli.Context, o extract.Options) (*extract.Report, error) {
	fail := func(err error) (*extract.Report, error) {
		r := &extract.Report{Report: transform.NewReport(commandPath(c))}
		r.Input.Path, r.Outcome, r.Error = o.In, transform.Failed, err.Error()
		return r, err
	}
	if _, err := os.Stat(o.In); err != nil { // before a KMS plugin that is not there is waited for
		return fail(err)
	}
	transformers, err := loadEncryption(c)
	if err != nil {
		return fail(err)
	}
	defer transformers.Close()
	if transformers != nil { // a nil one in an interface would not be nil
		o.Opener = transformers
	}
	phases := progress(c)
	defer phases.End()
	o.Progress = func(phase string) { phases.Phase(commandPath(c) + ": " + phase) }
	return extract.Run(c.Context, o)
}

// printExtraction prints for a person: what went in first, what to do next last.
func printExtraction(w io.Writer, r *extract.Report) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s: %s\n", r.Command, outcome(r.Report))
	if r.Outcome != transform.Failed {
		printFiles(out, r.Report)
	}
	if r.Manifest != nil {
		printManifest(out, r.Manifest)
	}
	printProblems(out, r.Report)
	if r.Manifest != nil {
		printNext(out, r.Report)
	}
	return out.Flush() // its error is the first of any of the above
}

// printManifest prints what an archive holds and what it relies on.
func printManifest(w io.Writer, m *archive.Manifest) {
	for _, c := range m.Clusters {
		fmt.Fprintf(w, "\nlogical cluster %s (%s)\n", render.Printable(c.Name), render.Printable(c.Path))
		t := render.NewTable(w)
		t.Row("RESOURCE", "KEYS", "BYTES", "SHA256")
		for _, r := range c.Resources {
			name := r.Resource
			if r.Identity != "" {
				name += " of " + r.Identity[:8]
			}
			t.Row(name, r.Keys, r.Bytes, r.SHA256)
		}
		t.Row("all of it", c.Keys, c.Bytes, c.SHA256)
		t.Flush()
	}
	fmt.Fprintln(w)
	t := render.NewTable(w)
	t.Row("whole archive", fmt.Sprintf("%s, %d bytes", render.Plural(m.Total.Keys, "key"), m.Total.Bytes), m.Total.SHA256)
	t.Row("rest of the shard", fmt.Sprintf("%s, %d bytes", render.Plural(m.Origin.Rest.Keys, "key"), m.Origin.Rest.Bytes), m.Origin.Rest.SHA256)
	t.Flush()
	printReliance(w, m)
}

// printReliance prints what has to be where the archive is to go.
func printReliance(w io.Writer, m *archive.Manifest) {
	t := render.NewTable(w)
	for _, d := range m.Definitions {
		t.Row("definition", d.Resource, d.UID, "in the archive")
	}
	for _, d := range m.Missing {
		t.Row("definition", d.Resource, d.UID, "missing")
	}
	for _, i := range m.Identities {
		what := "relied on"
		if i.Own {
			what = "its own"
		}
		for _, e := range i.Exports {
			from := e.Path
			if from == "" {
				from = e.Cluster
			}
			t.Row("identity", e.Name+" of "+from, i.Hash, what)
		}
		if len(i.Exports) == 0 {
			t.Row("identity", "no binding tells whose", i.Hash, what)
		}
	}
	for _, l := range m.Leases {
		t.Row("lease", fmt.Sprintf("%d s", l.TTL), l.ID, "of "+render.Plural(l.Keys, "key"))
	}
	for _, e := range m.Encryption {
		t.Row("encrypted by", e.Name, render.Plural(e.Keys, "value"))
	}
	fmt.Fprintln(w)
	t.Flush()
}
