package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/transform/kcp/verify"
)

func clusterVerifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "is a whole move sound: nothing lost, nothing doubled, nothing of another tenant touched",
		ArgsUsage: "ARCHIVE ORIGIN-OUT DESTINATION-OUT",
		Description: `etcdshift cluster verify team.archive root.out.db shard-1.out.db
etcdshift cluster verify team.archive root.out.db shard-1.out.db --origin root.db --destination shard-1.db --cache cache.out.db --cache-before cache.db
etcdshift cluster verify -o json team.archive root.out.db shard-1.out.db | jq -r '.findings[] | .code + " " + .key'`,
		UsageText: `Judges a move before any shard of it is started. ARCHIVE is what "cluster extract" made, ORIGIN-OUT what "cluster purge" made of
the shard that it came from, DESTINATION-OUT what "cluster import" made of the shard that it went to.

Each question has an answer: is a file damaged; is anything of the archive lost, which is not on the destination as it was; is
anything doubled, which is still on the origin, in a second place, or in a cache as the origin wrote it; was anything touched that
is none of the logical clusters' own. All other records of the origin are compared with those at the extraction by their digest.
Of the destination, what was written since the import began is judged; with --destination, the input of the import, all of it.
Copies in a cache have to be under the destination's name, with nothing else changed in them; those of an APIExport must be there.
--cache-before, the input of the purge of --cache, tells whether anything else in that cache was touched.
A purge with --scrub leaves no history of what it took away: whether the archive has the last of that is told by the revision, or
by --origin.` + moveOrder + `

Exit status: 0 sound, 1 findings, 2 usage, 5 could not judge, or not all of it, 130 interrupted. docs/logical-clusters.md explains
the codes of findings.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "origin", Usage: "compare with `FILE`, the input of extract and purge: names each record that differs"},
			&cli.StringFlag{Name: "destination", Usage: "compare with `FILE`, the input of import: every record that was there before"},
			&cli.StringSliceFlag{Name: "cache", Usage: "judge the copies in the cache server's snapshot `FILE`, as it is to be started; may be repeated"},
			&cli.StringSliceFlag{Name: "cache-before",
				Usage: "compare the snapshot of --cache with `FILE`, the input of its purge; may be repeated, in the order of --cache"},
			&cli.StringFlag{Name: "from-shard", Usage: "the origin is the shard `NAME`, where the archive does not say"},
			&cli.StringFlag{Name: "as-shard", Usage: "the destination is the shard `NAME`, where its file does not say"},
			&cli.StringSliceFlag{Name: "ignore", Usage: "leave out findings with `CODE`, of any question but damaged (repeatable)"},
			prefixFlag("work"), encryptionFlag("open values of the destination that are encrypted at rest with"),
			&cli.StringFlag{Name: "archive-encryption-config", Usage: "open values of the archive with the EncryptionConfiguration in `FILE`, where it is not that of the destination"},
			maxExpandFlag(), textOrJSON(), quietFlag(),
		},
		Action: runClusterVerify,
	}
}

func runClusterVerify(c *cli.Context) error {
	args, err := arguments(c)
	if err != nil {
		return err
	}
	if given, of := len(c.StringSlice("cache-before")), len(c.StringSlice("cache")); given > of {
		return usagef(commandPath(c), "--cache-before is given %d times, and --cache %d: each goes with one of --cache", given, of)
	}
	ignored, err := ignoredCodes(c)
	if err != nil {
		return err
	}
	files, damage, err := openMove(c, args)
	defer files.close()
	verdict := damage
	if err == nil && damage == nil {
		verdict, err = files.judge(c, ignored)
	}
	if err == nil {
		err = printMove(c, files, verdict)
	}
	switch {
	case err != nil:
		return &failure{status: exitCannotJudge, err: err}
	case len(verdict.Findings) > 0:
		return &failure{exitFound, fmt.Errorf("the move is not sound: %s", render.Plural(len(verdict.Findings), "finding")),
			"start none of these shards; docs/logical-clusters.md explains the codes"}
	case len(verdict.Unjudged) > 0:
		return &failure{exitCannotJudge, fmt.Errorf("not all of the move could be judged: %s left open", render.Plural(len(verdict.Unjudged), "matter")),
			"--encryption-config and --archive-encryption-config open what is encrypted at rest, --origin and --cache-before tell what a scrubbed file cannot, " +
				"--cache whether copies of APIExports are there; -o json lists all that was left open"}
	case !verdict.Sound():
		return &failure{status: exitCannotJudge, err: errors.New("not all of the move could be judged")}
	}
	return nil
}

func ignoredCodes(c *cli.Context) (codes []verify.Code, err error) {
	for _, name := range c.StringSlice("ignore") {
		if !slices.Contains(verify.Codes(), verify.Code(name)) {
			return nil, usagef(commandPath(c), "--ignore is %q, which is no code of docs/logical-clusters.md", name)
		}
		if !verify.Code(name).Ignorable() {
			return nil, usagef(commandPath(c), "--ignore is %q: of damaged files nothing else is judged", name)
		}
		codes = append(codes, verify.Code(name))
	}
	return codes, nil
}

// moveFiles are the files of a move, open; origin and destination may be nil.
type moveFiles struct {
	archive, originOut, destinationOut, origin, destination *opened
	caches                                                  []*opened
	cachesBefore                                            []*opened // one a cache, nil where it is not given
}

// openMove opens all files. What is damaged beyond reading is a verdict.
func openMove(c *cli.Context, args []string) (m *moveFiles, damage *verify.Verdict, err error) {
	m = &moveFiles{}
	for _, f := range []struct {
		to   **opened
		path string
	}{
		{&m.archive, args[0]}, {&m.originOut, args[1]}, {&m.destinationOut, args[2]}, {&m.origin, c.String("origin")}, {&m.destination, c.String("destination")},
	} {
		if f.path == "" && f.to != &m.archive && f.to != &m.originOut && f.to != &m.destinationOut {
			continue
		}
		flag := encryptionConfig
		if f.to == &m.archive {
			flag = "archive-encryption-config"
		}
		if *f.to, err = openWhole(c, f.path, flag); err != nil {
			damage, err = damagedFile(f.path, err)
			return m, damage, err
		}
	}
	for n, path := range c.StringSlice("cache") {
		if samePath(path, args[1]) || samePath(path, args[2]) {
			continue // shard and cache of one etcd: it is read
		}
		if damage, err = m.openCache(c, path, n); err != nil || damage != nil {
			return m, damage, err
		}
	}
	return m, nil, nil
}

// openCache opens the nth file of --cache, and that of --cache-before that goes with it.
func (m *moveFiles) openCache(c *cli.Context, path string, n int) (*verify.Verdict, error) {
	o, err := openWhole(c, path, encryptionConfig)
	if err != nil {
		return damagedFile(path, err)
	}
	m.caches, m.cachesBefore = append(m.caches, o), append(m.cachesBefore, nil)
	if all := c.StringSlice("cache-before"); n < len(all) {
		if o, err = openWhole(c, all[n], encryptionConfig); err != nil {
			return damagedFile(all[n], err)
		}
		m.cachesBefore[len(m.cachesBefore)-1] = o
	}
	return nil, nil
}

// damagedFile makes a verdict of an error that says what is wrong with a file.
func damagedFile(path string, err error) (*verify.Verdict, error) {
	if !isDamage(err) {
		return nil, err
	}
	return verify.Damaged(path, err), nil
}

func (m *moveFiles) all() (all []*opened) {
	for _, o := range slices.Concat([]*opened{m.archive, m.originOut, m.destinationOut, m.origin, m.destination}, m.caches, m.cachesBefore) {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

func (m *moveFiles) close() {
	for _, o := range m.all() {
		_ = o.Close()
	}
}

func (m *moveFiles) judge(c *cli.Context, ignored []verify.Code) (verdict *verify.Verdict, err error) {
	defer progress(c).Phase("judging the move").End()
	move := verify.Move{
		Archive: m.archive.Reader, OriginOut: m.originOut.Reader, DestinationOut: m.destinationOut.Reader,
		Prefixes: readPrefixes(c), FromShard: c.String("from-shard"), AsShard: c.String("as-shard"), Ignore: ignored,
		Configured: c.IsSet(encryptionConfig),
	}
	for to, from := range map[**inspect.Reader]*opened{&move.Origin: m.origin, &move.Destination: m.destination} {
		if from != nil {
			*to = from.Reader
		}
	}
	for n, o := range m.caches {
		move.Caches, move.CachesBefore = append(move.Caches, o.Reader), append(move.CachesBefore, nil)
		if before := m.cachesBefore[n]; before != nil {
			move.CachesBefore[n] = before.Reader
		}
	}
	read := func() (err error) {
		verdict, err = move.Verify(c.Context)
		return err
	}
	for _, o := range m.all() {
		inner := read
		read = func() error { return o.Snapshot().Guard(inner) }
	}
	return verdict, read()
}
