package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
)

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "every revision the file keeps, deletions too",
		ArgsUsage: "SNAPSHOT... KEY|TYPE/NAME",
		Description: `etcdshift history before.db deployment/web -n shop
etcdshift history monday.db tuesday.db wednesday.db configmap/prices -o jsonl`,
		UsageText: `Shows the history of one key: created, updated, deleted, recreated; the changes of each revision, field by field; the writers, from
managedFields; and the approximate time, from Leases, Events and other objects written nearby.

A snapshot keeps the writes since the last compaction, often a few minutes, and one older record of each key. Several snapshots
of one cluster, in any order, give one history, which names the revisions that none of them keeps.

Exit status: 0 shown, 1 not found, unreadable or damaged, 2 usage, 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringFlag{Name: "namespace", Aliases: []string{"n"}, Usage: "the object is in `NAMESPACE`; needed where several have one of that name"},
			&cli.StringFlag{Name: "cluster", Usage: "the object is in logical cluster `NAME` of kcp; needed where several have one of that name"},
			&cli.BoolFlag{Name: "all", Usage: "show changes that are noise too: managedFields, renewals, heartbeats"},
			showSecretsFlag(), listFormats()),
		Action: runHistory,
	}
}

func runHistory(c *cli.Context) error {
	args, err := arguments(c)
	if err != nil {
		return err
	}
	reading := progress(c).Phase("reading " + args[0])
	defer reading.End()
	paths, word := args[:len(args)-1], args[len(args)-1]
	return readSnapshots(c, paths, func(files []*opened) error {
		h := &historian{c: c, files: files}
		if err := compare.Sort(c.Context, h.files); err != nil {
			return err
		}
		h.sides = mapped(h.files, func(o *opened) *inspect.Reader { return o.Reader })
		if err := h.compareClusters(); err != nil {
			return err
		}
		if err := h.find(word); err != nil {
			return err
		}
		for _, s := range h.sides {
			if err := h.clock.Read(c.Context, s); err != nil {
				return err
			}
		}
		reading.End()
		return h.print()
	})
}

// historian tells the history of one key.
type historian struct {
	c       *cli.Context
	files   []*opened         // by revision
	sides   []*inspect.Reader // of files
	subject compare.Subject
	clock   compare.Clock
	same    compare.Same // whether the files are of one cluster; "" of one file
}

// compareClusters finds out whether the files are of one cluster.
func (h *historian) compareClusters() error {
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
func sameCluster(c *cli.Context, a, b *inspect.Reader) (compare.Same, error) {
	same, why, err := compare.SameCluster(c.Context, a, b)
	switch paths := a.Snapshot().Path() + " and " + b.Snapshot().Path(); {
	case why == "":
	case same == compare.No:
		warn(c, paths+" are of two clusters: "+why)
	default:
		warn(c, "nothing tells whether "+paths+" are of one cluster: "+why)
	}
	return same, err
}

// find finds the key: the word itself if it is stored anywhere, else that of the named object.
func (h *historian) find(word string) error {
	ctx := h.c.Context
	for _, s := range h.sides {
		sees, err := s.Sees(ctx, []byte(word))
		if err != nil {
			return err
		}
		for _, err := range s.Snapshot().History(ctx, []byte(word)) {
			if err != nil {
				return err
			}
			if sees {
				return h.take(word)
			}
			break
		}
	}
	found := map[string]compare.Subject{}
	if !strings.HasPrefix(word, "/") {
		all, err := parseNames(h.c, []string{word}, (*inspect.Reader).TypesEver, h.sides...)
		if err != nil {
			return err
		}
		if all[0].names == nil {
			return usagef(commandPath(h.c), "%q is no key of the file, and not TYPE/NAME", word)
		}
		for _, s := range h.sides {
			for k, err := range all[0].keysOf(ctx, s, scopeOf(h.c), true) {
				if err != nil {
					return err
				}
				found[k.key] = compare.NewSubject([]byte(k.key), k.parsed)
			}
		}
	}
	return h.choose(word, found)
}

// choose takes the only key that was found.
func (h *historian) choose(word string, found map[string]compare.Subject) error {
	var names []string
	for key, subject := range found {
		h.subject = subject
		names = append(names, fmt.Sprintf("%v (%s)", subject, key))
	}
	switch {
	case len(names) == 0:
		return &failure{exitFailed, fmt.Errorf("%q is not there%s, nor was it since the last compaction", word, belowNamed(h.c)),
			`"etcdshift keys" lists what there is`}
	case len(names) == 1:
		return nil
	}
	slices.Sort(names)
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return usagef(commandPath(h.c), "%q is the name of several: %q%s; say which with --namespace, --cluster, or by its key", word, names, more)
}

// take takes a key, and the object that it names in any of the snapshots.
func (h *historian) take(key string) error {
	h.subject = compare.Subject{Key: key}
	for _, s := range h.sides {
		layouts, err := s.Layouts(h.c.Context)
		if err != nil {
			return err
		}
		if place, _, err := layouts.Parse([]byte(key)); err == nil {
			h.subject = compare.NewSubject([]byte(key), place)
			return nil
		}
	}
	return nil
}

// print tells the history in one of the formats.
func (h *historian) print() error {
	begin, show, end := h.printText()
	if h.c.String("output") != "text" {
		begin, show, end = h.printList()
	}
	if err := begin(); err != nil {
		return err
	}
	options := compare.Options{All: h.c.Bool("all"), ShowSecrets: h.c.Bool("show-secrets"), Clock: &h.clock}
	for s, err := range compare.History(h.c.Context, h.sides, []byte(h.subject.Key), options) {
		if err == nil {
			err = show(s)
		}
		if err != nil {
			return errors.Join(err, end()) // what was told stays told
		}
	}
	return end()
}
