package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

func clusterListCommand() *cli.Command {
	return &cli.Command{
		Name:      "list",
		Usage:     "which logical clusters live here, and the orphans of others",
		ArgsUsage: "SHARD...",
		Description: `etcdshift cluster list root.db
etcdshift cluster list root.db shard-1.db --cache cache.db
etcdshift cluster list -o json root.db | jq -r '.orphans[].keys[]'`,
		UsageText: `Lists the logical clusters of kcp that live on each SHARD, with their contents, needs and owners. Then, if there are any: orphans,
which are keys of logical clusters that do not live on that shard, as a live migration leaves them; copies in a cache of logical
clusters that do not live where they were copied from; keys of no logical cluster; and records that are unreadable or
contradict their key.

More shards show more: where the owner of an orphan lives, which logical cluster lives twice, which copies are stale. A cache in the
etcd of a shard is found there; one of its own is given with --cache.

Exit status: 0 read, regardless of findings; 1 unreadable, damaged or no shard of kcp; 2 usage; 130 interrupted.`,
		Flags: readFlags("decrypt values with",
			&cli.StringSliceFlag{Name: "cache", Usage: "read the cache server's snapshot `FILE` too; may be repeated"},
			outputFlag("table", "wide", "json")),
		Action: runClusterList,
	}
}

// surveyed is a file that was read.
type surveyed struct {
	clusters.Named
	input inputInfo
}

func runClusterList(c *cli.Context) error {
	shards, err := arguments(c)
	if err != nil {
		return err
	}
	caches := c.StringSlice("cache")
	if slices.Contains(shards, "") { // a shell variable that is not set
		return usagef(commandPath(c), "takes SHARD...; got %q", shards)
	}
	for _, list := range [][]string{shards, caches} {
		if err := once(c, list); err != nil {
			return err
		}
	}
	read, wrong := []surveyed{}, []error(nil)
	var vacant vacancy
	for i, path := range slices.Concat(shards, caches) {
		if i >= len(shards) {
			if at := slices.IndexFunc(shards, func(s string) bool { return samePath(s, path) }); at >= 0 { // shard and cache of one etcd
				if err := read[at].holds(false); err != nil {
					return err
				}
				continue
			}
		}
		f, err := surveyFile(c, path, &vacant)
		if err == nil {
			err = f.holds(i < len(shards))
		}
		if err != nil && !errors.Is(err, snapshot.ErrDigest) {
			return cmp.Or(vacant.err(), err) // nothing lies below a prefix that is misspelt, no shard either
		}
		read, wrong = append(read, f), append(wrong, err)
	}
	if err := printClusterList(c, read, len(shards)); err != nil {
		return err
	}
	return errors.Join(append(wrong, vacant.err())...)
}

// once refuses a file that is named twice: everything in it would live twice.
func once(c *cli.Context, paths []string) error {
	for i, path := range paths {
		if j := slices.IndexFunc(paths[:i], func(other string) bool { return samePath(other, path) }); j >= 0 {
			return usagef(commandPath(c), "%q and %q are the same file", paths[j], path)
		}
	}
	return nil
}

// surveyFile reads one file, and adds to vacant. A wrong digest is an error beside what was read.
func surveyFile(c *cli.Context, path string, vacant *vacancy) (f surveyed, err error) {
	defer progress(c).Phase("reading " + path).End()
	o, err := openSnapshot(c, path, encryptionConfig)
	if err != nil {
		return f, err
	}
	defer o.Close()
	f.Path = path
	err = o.read(c.Context, func() error {
		if f.File, err = clusters.ReadChecked(c.Context, o.Reader); err != nil {
			return err
		}
		if err := vacant.add(c.Context, o); err != nil {
			return err
		}
		f.input, err = o.input(c.Context)
		return err
	})
	return f, err
}

// holds returns an error if a file is not of the kind it was given as.
func (f surveyed) holds(shard bool) error {
	var err error
	hint := ""
	switch {
	case shard && len(f.Shards) == 0:
		_, err = f.Shard(nil)
		if len(f.Caches) > 0 {
			hint = "give the snapshot of a cache server with --cache, beside that of a shard"
		}
	case !shard && len(f.Caches) == 0:
		_, err = f.Cache(nil)
		if len(f.Shards) > 0 {
			hint = "give the snapshot of a shard as an argument, without --cache"
		}
	}
	if err == nil {
		return nil
	}
	return &failure{exitFailed, fmt.Errorf("%s: %w", f.Path, err), hint}
}

// printClusterList prints the survey of all files; the first ones were given as shards.
func printClusterList(c *cli.Context, read []surveyed, shards int) error {
	var of, with []clusters.Named
	for i, f := range read {
		if i < shards {
			of = append(of, f.Named)
		}
		if len(f.Caches) > 0 {
			with = append(with, f.Named)
		}
	}
	found := clusters.Survey(of, with)
	if wantsJSON(c) {
		return render.JSON(c.App.Writer, clusterListOf(read, found))
	}
	return printSurvey(c.App.Writer, read, found, c.String("output") == "wide")
}

// flavourOf returns the layout of all files together, and their storages.
func flavourOf(read []surveyed) (flavour keys.Flavour, prefixes []keys.Storage) {
	prefixes = []keys.Storage{}
	for _, f := range read {
		for _, s := range f.Storages {
			if !slices.ContainsFunc(prefixes, func(o keys.Storage) bool { return o.Prefix == s.Prefix && o.Flavour == s.Flavour }) {
				prefixes = append(prefixes, s)
			}
		}
	}
	return keys.NewLayouts(prefixes...).Flavour(), prefixes
}
