package cli

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func sizesCommand() *cli.Command {
	return &cli.Command{
		Name:      "sizes",
		Usage:     "show what uses the space in a snapshot",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift sizes before.db
etcdshift sizes --by field before.db
etcdshift sizes --top 50 -o json before.db`,
		UsageText: `Shows the space of live values, of history (overwritten and deleted values) and of free pages,
and the live values by resource, namespace, kind of the owner, and field. LIVE and HISTORY are the bytes of records,
with keys. Each list is sorted by LIVE, then by HISTORY, both largest first, then by name.

For "mvcc: database space exceeded" it estimates, within about 2%, the space that a compaction and a defragmentation
would save. A snapshot has the size of its database, including free pages, and so has a member restored from it.

Exit status: 0 read, 1 unreadable or damaged, 2 usage, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			oneOf(&cli.StringFlag{Name: "by", Usage: "list all by `DIMENSION`: resource, namespace, owner or field " +
				"(default: the largest of each)"},
				"resource", "namespace", "owner", "field"),
			&cli.IntFlag{Name: "top", Value: 10, Usage: "list the `N` largest"},
			textOrJSON()),
		Action: taking(runSizes),
	}
}

// sizesDocument is the document of sizes -o json.
type sizesDocument struct {
	documentHead
	*inspect.Sizes
}

func runSizes(c *cli.Context, args []string) error {
	if c.Int("top") < 0 {
		return usagef(commandPath(c), "--top is %d; it takes a number from 0", c.Int("top"))
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	return readSnapshots(c, args, func(files []*opened) error {
		reading.Of(part(1, 2, files[0]))
		sizes, err := inspect.Measure(c.Context, files[0].Reader, c.Int("top"))
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
		for _, l := range sizeLists(sizes) {
			if c.IsSet("by") && c.String("by") != l.by {
				*l.shares = nil
			}
		}
		return render.JSON(c.App.Writer, sizesDocument{head, sizes})
	})
}

// sizeList is a list selected by --by.
type sizeList struct {
	by      string
	shares  *[]inspect.Share
	none    string // stands for an empty name
	history bool   // has a history column
}

func sizeLists(s *inspect.Sizes) []sizeList {
	return []sizeList{
		{"resource", &s.Resources, "", true}, {"namespace", &s.Namespaces, "(cluster-scoped)", true},
		{"owner", &s.Owners, "(no owner)", false}, {"field", &s.Fields, "", false},
	}
}

func printSizes(c *cli.Context, s *inspect.Sizes) error {
	p := render.NewPage(render.Folding(c.App.Writer))
	if !c.IsSet("by") {
		printTotals(p, s)
	}
	for _, l := range sizeLists(s) {
		switch c.String("by") {
		case "":
			p.Printf("\n")
			l.print(p, c.Int("top"))
		case l.by:
			l.print(p, len(*l.shares))
		}
	}
	if len(s.Largest) > 0 && !c.IsSet("by") {
		p.Printf("\n")
		p.Table([]any{"LARGEST VALUES", "BYTES"}, stream.Mapped(s.Largest,
			func(l inspect.Largest) []any { return []any{l.Key, l.Bytes} })...)
	}
	return p.Flush()
}

func printTotals(p *render.Page, s *inspect.Sizes) {
	part := func(name string, bytes int64, what string) []any {
		return []any{name, render.Size(bytes), share(bytes, s.Image), what}
	}
	records := func(name string, a inspect.Amount) []any {
		return part(name, a.Bytes, phrase.Count(a.Records, "record"))
	}
	p.Table(nil,
		[]any{"database", render.Size(s.Image)},
		records("live values", s.Live),
		records("superseded", s.Superseded),
		records("tombstones", s.Tombstones),
		part("free pages", s.FreePages, "")[:3],
		part("overhead", s.Overhead, "room in pages, headers, other buckets"),
		records("compaction would free", s.Savings.Compaction),
		[]any{"after defragmentation", "about " + render.Size(s.Savings.Defragmented)},
		[]any{"after both", "about " + render.Size(s.Savings.Compacted)})
}

func share(part, whole int64) string {
	return strconv.FormatFloat(100*float64(part)/float64(max(whole, 1)), 'f', 1, 64) + "%"
}

func (l sizeList) print(p *render.Page, most int) {
	all := *l.shares
	var live int64
	for _, s := range all {
		live += s.Live
	}
	cells := func(row ...any) []any {
		if l.history {
			return row
		}
		return row[:4]
	}
	p.Table(cells(strings.ToUpper(l.by), "OBJECTS", "LIVE", "OF ALL", "HISTORY"),
		stream.Mapped(all[:min(len(all), most)], func(s inspect.Share) []any {
			return cells(cmp.Or(s.Name, l.none), s.Objects, s.Live, share(s.Live, live), s.History)
		})...)
	p.First("", nil, most, len(all), "; --by "+l.by+" lists them all")
}
