package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/fleet"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
)

func fleetCommand() *cli.Command {
	return &cli.Command{
		Name:  "fleet",
		Usage: "run a command on many snapshots, with a Kubernetes Job",
		Description: `etcdshift fleet list s3://backups/etcd/ calico-v3.json --name calico-v3
etcdshift fleet run calico-v3.json --index 7 -- report {in} {result}.html
etcdshift fleet summary calico-v3.json`,
		Subcommands: []*cli.Command{fleetListCommand(), fleetRunCommand(), fleetSummaryCommand()},
	}
}

func fleetListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "write the list of snapshots in a bucket or folder",
		ArgsUsage: "PLACE OUT",
		Description: `etcdshift fleet list s3://backups/etcd/ s3://backups/fleets/calico-v3.json \
    --name calico-v3 --match '*.db.gz' --newest
etcdshift fleet list backups/etcd calico-v3.json --name calico-v3`,
		UsageText: `Writes the list of a fleet: the path, size and etag of each snapshot below PLACE, a prefix in a
bucket or a folder, sorted by path. The Pods of an indexed Job process the list with "fleet run". --name names the
run: its results are stored beside their snapshots as SNAPSHOT.fleet-NAME.db, .json and so on. Results of any run,
.json, hidden and empty files are omitted and counted. The same files give the same list.

Prints the memory and disk space that a Pod needs for any of the snapshots. OUT has mode 0600 and replaces no file.

Exit status: 0 written, 1 failed or no snapshot found, 2 usage, 130 interrupted. With any status except 0 nothing was
written; for an object in a bucket, the message may say that the result is unknown.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "name", Usage: "name the run `NAME`: up to 40 of a-z, 0-9 and -"},
			&cli.StringFlag{Name: "match", Usage: "list only files with a name, without folders, that matches " +
				"`PATTERN`, such as '*.db.gz'"},
			&cli.BoolFlag{Name: "newest", Usage: "list only the most recently changed file of each folder"},
			textOrJSON(), quietFlag(),
		},
		Action: taking(runFleetList),
	}
}

func runFleetList(c *cli.Context, args []string) error {
	place, out := args[0], args[1]
	if place == "" || out == "" {
		return usagef(commandPath(c), "takes %s; got %q", c.Command.ArgsUsage, args)
	}
	if err := fleet.CheckName(c.String("name")); err != nil {
		return usagef(commandPath(c), "--name: %w", err)
	}
	if _, err := path.Match(c.String("match"), ""); err != nil {
		return usagef(commandPath(c), "--match is %q: %w", c.String("match"), err)
	}
	listing := progress(c).Phase("listing " + place)
	defer listing.End()
	f, err := fleet.List(c.Context, place, fleet.Choice{Name: c.String("name"), Match: c.String("match"),
		Newest: c.Bool("newest"), Warn: func(text string) { warn(c, text) }}, tool())
	if err != nil {
		return err
	}
	if err := f.Write(c.Context, out); err != nil {
		return err
	}
	listing.End()
	if wantsJSON(c) {
		return render.JSON(c.App.Writer, f)
	}
	most, needs := f.Largest(), f.Needs()
	p := render.NewPage(c.App.Writer)
	p.Printf("%s: %s, %s\n", out, phrase.Count(len(f.Snapshots), "snapshot"), render.Size(f.Bytes()))
	p.Printf("left out: %s\n", f.LeftOut.String())
	p.Printf("needs most disk: %s, %s\n\n", most.Path, render.Size(most.Bytes))
	p.Printf("completions: %d\nmemory: %dMi\nephemeral-storage: %dMi\n", len(f.Snapshots), needs.Memory>>20,
		needs.Scratch>>20)
	return p.Flush()
}

// isThere adds a hint for results without a report.
func isThere(err error) error {
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return &failure{exitRefused, fmt.Errorf("%w, and its report is not", err),
		"a run was ended between the two, or another one made it: look at the file, remove it, and run the index again"}
}
