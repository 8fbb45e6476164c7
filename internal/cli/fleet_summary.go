package cli

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func fleetSummaryCommand() *cli.Command {
	return &cli.Command{
		Name:      "summary",
		Usage:     "print one table of all reports of a run",
		ArgsUsage: "LIST",
		Description: `etcdshift fleet summary calico-v3.json
etcdshift fleet summary calico-v3.json -o json |
    jq -r '.snapshots[] | select(.outcome == "refused") | .path'
etcdshift fleet summary pages.json --result .html`,
		UsageText: `Reads the report of each snapshot, SNAPSHOT.fleet-NAME.json, and prints the outcome, the changes,
the problems by code and the error. Without a report the outcome is "missing"; a report that cannot be read is
"unreadable", a report about another file than the list is "other", and a report without its output is "lost". With
--result .html it checks only that each page exists ("written" or "missing"), or is about a replaced snapshot
("other").

Exit status: 0 all are written, unchanged or planned; 1 some are not; 2 usage; 5 could not read the list; 130
interrupted.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "result", Value: ".json",
				Usage: "look for results with names that end with `ENDING`"},
			listFormats(), quietFlag(),
		},
		Action: checking(runFleetSummary),
	}
}

// fleetSummaryHead is the head of fleet summary -o json, before the snapshots.
type fleetSummaryHead struct {
	answerHead
	List  string `json:"list"` // as given
	Name  string `json:"name"` // of the run
	Place string `json:"place"`
}

// fleetSummaryTail is the tail of fleet summary -o json.
type fleetSummaryTail struct {
	Totals fleetTotals `json:"totals"`
}

// fleetTotals counts snapshots by outcome.
type fleetTotals struct {
	Written    int `json:"written"`
	Unchanged  int `json:"unchanged"`
	Planned    int `json:"planned"`
	Refused    int `json:"refused"`
	Failed     int `json:"failed"`
	Missing    int `json:"missing"`
	Unreadable int `json:"unreadable"`
	Other      int `json:"other"`
	Lost       int `json:"lost"`
}

// by yields the outcomes in document order, each with its count.
func (t *fleetTotals) by() iter.Seq2[fleet.Outcome, *int] {
	return func(yield func(fleet.Outcome, *int) bool) {
		_ = yield(fleet.Written, &t.Written) && yield(fleet.Unchanged, &t.Unchanged) &&
			yield(fleet.Planned, &t.Planned) &&
			yield(fleet.Refused, &t.Refused) && yield(fleet.Failed, &t.Failed) && yield(fleet.Missing, &t.Missing) &&
			yield(fleet.Unreadable, &t.Unreadable) && yield(fleet.Other, &t.Other) && yield(fleet.Lost, &t.Lost)
	}
}

func runFleetSummary(c *cli.Context, args []string) error {
	f, err := fleet.Read(c.Context, args[0])
	if err != nil {
		return err
	}
	add, end, err := summaryPrinter(c, args[0], f)
	if err != nil {
		return err
	}
	var totals fleetTotals
	left := 0
	for row, err := range f.Summary(c.Context, c.String("result")) {
		if err != nil {
			return err
		}
		for outcome, count := range totals.by() {
			if outcome == row.Outcome {
				*count++
			}
		}
		if !row.Done() {
			left++
		}
		if err := add(row); err != nil {
			return err
		}
	}
	if err := end(totals); err != nil {
		return err
	}
	if left > 0 {
		return &failure{exitFound, fmt.Errorf("%s: %d of %s not done", args[0], left,
			phrase.Count(len(f.Snapshots), "snapshot")),
			`"etcdshift fleet run LIST --index N -- COMMAND" runs one again; docs/guides/fleet.md tells what to move ` +
				`away before`}
	}
	return nil
}

// summaryPrinter returns a function that prints a row, and one that ends the list.
func summaryPrinter(
	c *cli.Context, path string, f *fleet.Fleet,
) (add func(*fleet.Row) error, end func(fleetTotals) error, err error) {
	if format := c.String("output"); format != "text" {
		list := render.NewList(c.App.Writer, format)
		head := fleetSummaryHead{answerTo("FleetSummary"), path, f.Name, f.Place}
		return func(r *fleet.Row) error { return list.Add(r) },
			func(t fleetTotals) error { return list.End(fleetSummaryTail{t}) }, list.Begin(head, "snapshots")
	}
	table := render.NewFlow(c.App.Writer, "INDEX", "SNAPSHOT", "OUTCOME", "CREATED", "UPDATED", "DELETED",
		"PROBLEMS", "ERROR")
	add = func(r *fleet.Row) error {
		problems := strings.Join(stream.Mapped(r.Problems,
			func(p fleet.Problems) string { return fmt.Sprintf("%s %d", p.Code, p.Count) }), ", ")
		changes := []string{"", "", ""}
		if r.Done() { // otherwise incomplete numbers of a plan
			changes = stream.Mapped([]int{r.Changes.Created, r.Changes.Updated, r.Changes.Deleted}, strconv.Itoa)
		}
		return table.Row(strconv.Itoa(r.Index), r.Path, string(r.Outcome), changes[0], changes[1], changes[2],
			problems, r.Error)
	}
	end = func(t fleetTotals) error {
		if err := table.Flush(); err != nil {
			return err
		}
		var parts []string
		for outcome, count := range t.by() {
			if *count > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", *count, outcome))
			}
		}
		_, err := fmt.Fprintf(c.App.Writer, "\n%s\n", strings.Join(parts, ", "))
		return err
	}
	return add, end, nil
}
