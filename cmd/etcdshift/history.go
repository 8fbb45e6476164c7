package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/timeline"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "every revision the file keeps, deletions too",
		ArgsUsage: "SNAPSHOT... KEY|TYPE/NAME",
		Description: `etcdshift history before.db deployment/web -n shop
etcdshift history monday.db tuesday.db wednesday.db configmap/prices -o jsonl`,
		UsageText: `Tells what became of one key: created, updated, deleted, recreated; what changed each time, field by field; who wrote, as
managedFields have it; and about when: the time of a revision lies between those that Leases, Events and other objects carry.

A snapshot keeps what was written since the last compaction, often a few minutes, and one record of each key from before. Several
snapshots of one cluster, in any order, give one history; what none of them keeps is said.

Exit status: 0 told, 1 not found, could not be read or is damaged, 2 usage, 130 interrupted.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the object is in `NAMESPACE`; needed where several have one of that name"},
			&cli.StringFlag{Name: "cluster", Usage: "the object is in logical cluster `NAME` of kcp; needed where several have one of that name"},
			&cli.BoolFlag{Name: "all", Usage: "show changes that are noise too: managedFields, renewals, heartbeats"},
			prefixFlag(), encryptionFlag("decrypt with"), showSecretsFlag(), maxExpandFlag(), streamFlag(), quietFlag(),
		},
		Action: runHistory,
	}
}

func runHistory(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) < 2 {
		return usagef(commandPath(c), "takes SNAPSHOT... KEY|TYPE/NAME; got %d: %q", len(args), args)
	}
	format, err := oneOf(c, "output", "text", "json", "jsonl")
	if err != nil {
		return err
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	h := &historian{c: c, word: args[len(args)-1]}
	defer h.close()
	if err := h.open(args[:len(args)-1]); err != nil {
		return err
	}
	return h.read(0, func() error {
		return lookBelow(c, func() error {
			if err := h.find(); err != nil {
				return err
			}
			for _, s := range h.sides {
				if err := h.clock.Read(c.Context, s); err != nil {
					return err
				}
			}
			reading.End()
			return h.print(format)
		}, h.files...)
	})
}

// historian tells the history of one key.
type historian struct {
	c     *cli.Context
	word  string         // KEY or TYPE/NAME
	files []*opened      // as sides
	sides []compare.Side // by revision
	key   []byte
	place keys.Key // empty where the key is no object's
	clock timeline.Clock
	same  compare.Same // whether the files are of one cluster; "" of one file
}

func (h *historian) close() {
	for _, f := range h.files {
		f.Close()
	}
}

// open opens the snapshots and puts them in the order of their revisions.
func (h *historian) open(paths []string) error {
	for _, path := range paths {
		f, err := openSnapshot(h.c, path)
		if err != nil {
			return err
		}
		h.files = append(h.files, f)
		h.sides = append(h.sides, compare.Side{Snapshot: f.snapshot, Reader: f.Reader})
	}
	ctx := h.c.Context
	if err := timeline.Sort(ctx, h.sides); err != nil {
		return err
	}
	slices.SortStableFunc(h.files, func(a, b *opened) int { return h.at(a.snapshot) - h.at(b.snapshot) })
	for i := 1; i < len(h.sides); i++ {
		same, err := sameCluster(h.c, h.sides[i-1], h.sides[i])
		if err != nil {
			return err
		}
		if h.same == "" || same == compare.No || same == compare.Unknown && h.same == compare.Yes {
			h.same = same
		}
	}
	return nil
}

// sameCluster warns where two snapshots are not, or perhaps not, of one cluster.
func sameCluster(c *cli.Context, a, b compare.Side) (compare.Same, error) {
	same, why, err := compare.SameCluster(c.Context, a, b)
	switch paths := a.Snapshot.Path() + " and " + b.Snapshot.Path(); {
	case why == "":
	case same == compare.No:
		warn(c, paths+" are of two clusters: "+why)
	default:
		warn(c, "nothing tells whether "+paths+" are of one cluster: "+why)
	}
	return same, err
}

// at is the place of a snapshot in sides.
func (h *historian) at(s *snapshot.Snapshot) int {
	return slices.IndexFunc(h.sides, func(side compare.Side) bool { return side.Snapshot == s })
}

// read runs fn, which reads the files from number i on; see opened.read.
func (h *historian) read(i int, fn func() error) error {
	if i == len(h.files) {
		return fn()
	}
	return h.files[i].read(h.c.Context, func() error { return h.read(i+1, fn) })
}

// find finds the key: the word itself where a snapshot has a record of it, else that of the object it names.
func (h *historian) find() error {
	ctx := h.c.Context
	for _, s := range h.sides {
		sees, err := s.Reader.Sees(ctx, []byte(h.word))
		if err != nil {
			return err
		}
		for _, err := range s.Snapshot.History(ctx, []byte(h.word)) {
			if err != nil {
				return err
			}
			if sees {
				return h.take([]byte(h.word))
			}
			break
		}
	}
	if strings.HasPrefix(h.word, "/") {
		return h.notThere()
	}
	var readers []*inspect.Reader
	for _, s := range h.sides {
		readers = append(readers, s.Reader)
	}
	want, err := resolveEver(h.c, h.word, readers...)
	if err != nil {
		return err
	}
	if want.name == "" {
		return usagef(commandPath(h.c), "%q is no key of the file, and not TYPE/NAME", h.word)
	}
	found := map[string]keys.Key{}
	for _, s := range h.sides {
		if err := h.search(s, want, found); err != nil {
			return err
		}
	}
	return h.choose(found)
}

// search finds the keys of objects that fit, live or deleted.
func (h *historian) search(s compare.Side, want asked, found map[string]keys.Key) error {
	layouts, err := s.Reader.Layouts(h.c.Context)
	if err != nil {
		return err
	}
	namespace, cluster := h.c.String("namespace"), h.c.String("cluster")
	consider := func(key []byte) {
		place, _, err := layouts.Parse(key)
		if err == nil && want.wants(place) && (namespace == "" || place.Namespace == namespace) && (cluster == "" || place.Cluster == cluster) {
			found[string(key)] = place
		}
	}
	for _, gr := range want.resources {
		for _, dir := range layouts.Dirs(gr) {
			for rec, err := range s.Snapshot.Live(h.c.Context, dir) {
				if err != nil {
					return err
				}
				consider(rec.Key)
			}
			for d, err := range s.Snapshot.Deleted(h.c.Context, dir) {
				if err != nil {
					return err
				}
				consider(d.Key)
			}
		}
	}
	return nil
}

// notThere says that there is no record of what is asked for.
func (h *historian) notThere() error {
	return &failure{exitFailed, fmt.Errorf("%q is not there%s, nor was it since the last compaction", h.word, belowNamed(h.c)),
		`"etcdshift keys" lists what there is`}
}

// choose takes the only key that was found.
func (h *historian) choose(found map[string]keys.Key) error {
	switch len(found) {
	case 0:
		return h.notThere()
	case 1:
		for key := range found {
			return h.take([]byte(key))
		}
	}
	var names []string
	for key, place := range found {
		names = append(names, placeName(place)+" ("+key+")")
	}
	slices.Sort(names)
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return usagef(commandPath(h.c), "%q is the name of several: %q%s; say which with --namespace, --cluster, or by its key", h.word, names, more)
}

func (h *historian) take(key []byte) error {
	h.key = key
	for _, s := range h.sides {
		layouts, err := s.Reader.Layouts(h.c.Context)
		if err != nil {
			return err
		}
		if place, _, err := layouts.Parse(key); err == nil {
			h.place = place
			return nil
		}
	}
	return nil
}

// print tells the history in one of the formats.
func (h *historian) print(format string) error {
	begin, show, end := h.printText()
	if format != "text" {
		begin, show, end = h.printList(format)
	}
	if err := begin(); err != nil {
		return err
	}
	options := timeline.Options{All: h.c.Bool("all"), ShowSecrets: h.c.Bool("show-secrets")}
	for s, err := range timeline.History(h.c.Context, h.sides, h.key, options) {
		if err == nil {
			err = show(s)
		}
		if err != nil {
			return errors.Join(err, end()) // what was told stays told
		}
	}
	return end()
}
