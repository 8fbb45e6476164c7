package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/archive"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/logicalcluster"
)

func clusterImportCommand() *cli.Command {
	return migration{
		name:  "import",
		usage: "write a snapshot with the logical clusters of an archive, or with orphans back where they belong",
		examples: `etcdshift cluster import consumer.archive shard-1.db shard-1-after.db
etcdshift cluster import --fix-owner --cache cache.db consumer.archive root.db root-after.db
etcdshift cluster import --orphans-from shard-1.db root.db root-after.db`,
		text: `Brings every record of an archive that "cluster extract" made into a shard's snapshot: under the storage prefix of the shard, byte for
byte, with leases of the same time to live, each at a revision of its own on top. Values that are encrypted at rest are opened, and
encrypted as the shard's API servers would. Definitions of bound types that the shard lacks are brought along. Of a LogicalCluster
the mark of a live migration is dropped.

LogicalCluster and Workspace go on naming the old shard: the kcp of the new one corrects both when it runs. With --fix-owner both are
changed at once, and the label region, which kcp never corrects; that takes the file that has the Workspace.

With --orphans-from SHARD1 there is no archive: keys of logical clusters that live on SHARD, and that a live migration left on
SHARD1, are put back where SHARD lacks them. What is there already stays.` + moveOrder,
		usageArgs: "ARCHIVE SHARD OUT  or  --orphans-from SHARD1 SHARD OUT",
		args:      importArgs,
		codes:     logicalcluster.ImportCodes(),
		settles: map[string]string{
			"encrypted":          "open them with --archive-encryption-config FILE, the configuration of the origin",
			"owner-elsewhere":    "leave --fix-owner out, and kcp tells the Workspace when it runs",
			"unknown-identity":   "where a cache server knows it, give its snapshot with --cache FILE",
			"would-be-plaintext": "give --encryption-config FILE, the configuration of the shard that they go to",
		},
		flags: []cli.Flag{
			&cli.StringFlag{Name: "orphans-from", Usage: "put back the orphans that lie in the snapshot `SHARD1` and whose logical clusters live on SHARD"},
			&cli.BoolFlag{Name: "fix-owner", Usage: "have LogicalCluster and Workspace name the new shard at once, and its region"},
			&cli.StringFlag{Name: "as-shard", Usage: "take `S` for the name of the new shard (default: what it calls itself)"},
			&cli.StringFlag{Name: "cache", Usage: "take identities and regions from the cache server's snapshot `FILE` too"},
			&cli.StringFlag{Name: "archive-encryption-config",
				Usage: "open values of the archive, or of SHARD1, with the EncryptionConfiguration in `FILE` (default: --encryption-config)"},
		},
		build: buildImport,
	}.command()
}

// importArgs are the arguments of the form of the command that the flags tell.
func importArgs(c *cli.Context) []string {
	if c.IsSet("orphans-from") {
		return []string{"SHARD", "OUT"}
	}
	return []string{"ARCHIVE", "SHARD", "OUT"}
}

// mover is a transform that proves what it has brought.
type mover interface {
	transform.Transform
	transform.Checker
}

// importing is an import with the files that it reads beside the shard.
type importing struct {
	mover
	files []io.Closer
}

// Close closes the files.
func (i *importing) Close() error {
	var errs []error
	for _, f := range i.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

func buildImport(c *cli.Context, args []string) (_ transform.Transform, err error) {
	for _, flag := range []string{"fix-owner", "as-shard"} {
		if c.IsSet("orphans-from") && given(c, flag) {
			return nil, usagef(commandPath(c), "--%s is for an archive; with --orphans-from no logical cluster moves", flag)
		}
	}
	i := &importing{}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	cache, err := i.openCache(c)
	if err != nil {
		return nil, err
	}
	if c.IsSet("orphans-from") {
		return i, i.openOrphans(c, cache)
	}
	return i, i.openArchive(c, args[0], cache)
}

// openCache reads the file of --cache, if any.
func (i *importing) openCache(c *cli.Context) (f *clusters.File, err error) {
	if !c.IsSet("cache") {
		return nil, nil
	}
	o, err := openWhole(c, c.String("cache"), "encryption-config")
	if err != nil {
		return nil, err
	}
	i.files = append(i.files, o)
	err = o.read(c.Context, func() error {
		if f, err = clusters.Read(c.Context, o.Reader); err == nil && len(f.Caches) == 0 {
			_, err = f.Cache(nil) // says what it is instead
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.String("cache"), err)
	}
	return f, nil
}

// openOrigin opens the file that records come from.
func (i *importing) openOrigin(c *cli.Context, path string) (*opened, inspect.Opener, error) {
	flag := "encryption-config"
	if c.IsSet("archive-encryption-config") {
		flag = "archive-encryption-config"
	}
	o, err := openWhole(c, path, flag)
	if err != nil {
		return nil, nil, err
	}
	i.files = append(i.files, o)
	if o.transformers == nil { // in an interface it would not be nil
		return o, nil, nil
	}
	return o, o.transformers, nil
}

func (i *importing) openArchive(c *cli.Context, path string, cache *clusters.File) error {
	o, opener, err := i.openOrigin(c, path)
	if err != nil {
		return err
	}
	var m *archive.Manifest
	err = o.read(c.Context, func() error {
		m, err = logicalcluster.CheckArchive(c.Context, o.snapshot)
		return err
	})
	if err != nil {
		return err
	}
	i.mover = logicalcluster.NewImport(logicalcluster.ImportOptions{
		Archive: o.snapshot, Manifest: m, Opener: opener, AsShard: c.String("as-shard"), FixOwner: c.Bool("fix-owner"),
		Prefixes: readPrefixes(c), Cache: cache,
	})
	return nil
}

func (i *importing) openOrphans(c *cli.Context, cache *clusters.File) error {
	o, opener, err := i.openOrigin(c, c.String("orphans-from"))
	if err != nil {
		return err
	}
	i.mover = logicalcluster.NewPutBack(logicalcluster.PutBackOptions{From: o.snapshot, Opener: opener, Prefixes: readPrefixes(c), Cache: cache})
	return nil
}
