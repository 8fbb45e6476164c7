package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
)

func sizesCommand() *cli.Command {
	return &cli.Command{
		Name:      "sizes",
		Usage:     "what fills it",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift sizes before.db
etcdshift sizes --by field before.db
etcdshift sizes --top 50 -o json before.db`,
		UsageText: `Says what fills the file: live values against history (what was written over or deleted) against free pages, and the live
values by resource, namespace, kind of the owner, and field. LIVE and HISTORY are the bytes of records, with
keys. Each list has the most LIVE bytes first, then the most HISTORY, then the names in order.

For "mvcc: database space exceeded" it estimates, within about 2%, what a compaction and a defragmentation would save. A snapshot is
as large as the database it was saved from, free pages included, and so is a member that is restored from it.

Exit status: 0 read, 1 could not be read or is damaged, 2 usage, 130 interrupted.`,
		Flags: readFlags("open values that are encrypted at rest with",
			&cli.StringFlag{Name: "by", Action: oneOf("by", "resource", "namespace", "owner", "field"),
				Usage: "list all by `WHAT`: resource, namespace, owner or field (default: the largest of each)"},
			&cli.IntFlag{Name: "top", Value: 10, Usage: "list the `N` largest"},
			textOrJSON()),
		Action: runSizes,
	}
}

// sizesDocument is what sizes -o json prints.
type sizesDocument struct {
	documentHead
	*inspect.Sizes
}

func runSizes(c *cli.Context) error {
	args, err := arguments(c)
	if err != nil {
		return err
	}
	if c.Int("top") < 0 {
		return usagef(commandPath(c), "--top is %d; it takes a number from 0", c.Int("top"))
	}
	defer progress(c).Phase("reading " + args[0]).End()
	return readSnapshots(c, args, func(files []*opened) error {
		sizes, err := inspect.Measure(c.Context, files[0].Snapshot(), files[0].Reader, c.Int("top"))
		if err != nil {
			return err
		}
		if !wantsJSON(c) {
			return printSizes(c, sizes)
		}
		head, err := files[0].document(c.Context, "Sizes")
		if err != nil {
			return err
		}
		return render.JSON(c.App.Writer, sizesDocument{head, chosenSizes(c, sizes)})
	})
}

// chosenSizes leaves out what --by does not name.
func chosenSizes(c *cli.Context, s *inspect.Sizes) *inspect.Sizes {
	out := *s
	for name, list := range map[string]*[]inspect.Share{"resource": &out.Resources, "namespace": &out.Namespaces, "owner": &out.Owners, "field": &out.Fields} {
		if c.IsSet("by") && c.String("by") != name {
			*list = nil
		}
	}
	return &out
}

func printSizes(c *cli.Context, s *inspect.Sizes) error {
	out := bufio.NewWriter(c.App.Writer)
	if !c.IsSet("by") {
		printTotals(out, s)
	}
	none := map[string]string{"namespace": "(cluster-scoped)", "owner": "(no owner)"}
	for _, by := range []struct {
		name, heading string
		shares        []inspect.Share
	}{{"resource", "RESOURCE", s.Resources}, {"namespace", "NAMESPACE", s.Namespaces}, {"owner", "OWNER", s.Owners}, {"field", "FIELD", s.Fields}} {
		most := c.Int("top")
		switch c.String("by") {
		case "":
			fmt.Fprintln(out)
		case by.name:
			most = len(by.shares)
		default:
			continue
		}
		printShares(out, by.heading, by.shares, most, none[by.name])
	}
	if len(s.Largest) > 0 && !c.IsSet("by") {
		fmt.Fprintln(out)
		t := render.NewTable(out)
		t.Row("LARGEST VALUES", "BYTES")
		for _, l := range s.Largest {
			t.Row(l.Key, l.Bytes)
		}
		t.Flush()
	}
	return out.Flush()
}

func printTotals(out io.Writer, s *inspect.Sizes) {
	t := render.NewTable(out)
	part := func(name string, a inspect.Amount) {
		t.Row(name, render.Size(a.Bytes), share(a.Bytes, s.Image), render.Plural(a.Records, "record"))
	}
	t.Row("database", render.Size(s.Image))
	part("live values", s.Live)
	part("superseded", s.Superseded)
	part("tombstones", s.Tombstones)
	t.Row("free pages", render.Size(s.FreePages), share(s.FreePages, s.Image))
	t.Row("overhead", render.Size(s.Overhead), share(s.Overhead, s.Image), "room in pages, headers, other buckets")
	t.Row("compaction would free", render.Size(s.Savings.Compaction.Bytes), share(s.Savings.Compaction.Bytes, s.Image), render.Plural(s.Savings.Compaction.Records, "record"))
	t.Row("after defragmentation", about(s.Savings.Defragmented))
	t.Row("after both", about(s.Savings.Compacted))
	t.Flush()
}

func about(bytes int64) string { return "about " + render.Size(bytes) }

// share is a part of the whole in percent.
func share(part, whole int64) string {
	return strconv.FormatFloat(100*float64(part)/float64(max(whole, 1)), 'f', 1, 64) + "%"
}

func printShares(out io.Writer, heading string, shares []inspect.Share, most int, none string) {
	var live, history int64
	for _, s := range shares {
		live, history = live+s.Live, history+s.History
	}
	t := render.NewTable(out)
	cells := func(name, objects, live, share, history any) {
		row := []any{name, objects, live, share}
		if heading == "RESOURCE" || heading == "NAMESPACE" {
			row = append(row, history)
		}
		t.Row(row...)
	}
	cells(heading, "OBJECTS", "LIVE", "OF ALL", "HISTORY")
	for _, s := range shares[:min(len(shares), most)] {
		name := s.Name
		if name == "" {
			name = none
		}
		cells(name, s.Objects, s.Live, share(s.Live, live), s.History)
	}
	t.Flush()
	if n := len(shares) - most; n > 0 {
		fmt.Fprintf(out, "... and %d more; --by %s lists them all\n", n, map[string]string{"RESOURCE": "resource", "NAMESPACE": "namespace", "OWNER": "owner", "FIELD": "field"}[heading])
	}
}
