package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

func clusterVerifyCommand() *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "check a move: nothing lost, nothing doubled, no other tenant touched",
		ArgsUsage: "ARCHIVE ORIGIN-OUT DESTINATION-OUT",
		Description: `etcdshift kcp verify team.archive root.out.db shard-1.out.db
etcdshift kcp verify team.archive root.out.db shard-1.out.db \
    --origin root.db --destination shard-1.db \
    --cache cache.out.db --cache-before cache.db
etcdshift kcp verify -o json team.archive root.out.db shard-1.out.db \
    | jq -r '.findings[] | .code + " " + .key'`,
		UsageText: `Checks a move before any of its shards starts. ARCHIVE is the file of "kcp extract", ORIGIN-OUT
the output of "kcp purge" for the old shard, DESTINATION-OUT the output of "kcp import" for the new shard.

It answers four questions. damaged: is a file damaged? lost: is a record of the archive missing or changed on the
destination? doubled: is a record still on the origin, in a second place, or in a cache as a copy from the origin?
touched: was any other record changed?

All other records of the origin are compared with the digest from the extraction. On the destination, records written
since the import are checked; with --destination, the input of the import, all records. Copies in a cache must have the
destination's name and no other change, and copies of APIExports must exist. --cache-before, the input of the purge of
--cache, reveals changes of other records in that cache. A purge with --scrub leaves no history of the purged records:
the revision, or --origin, shows whether the archive has their last state.` + moveOrder + `

Exit status: 0 sound, 1 findings, 2 usage, 5 could not check, or not all of it, 130 interrupted. "etcdshift explain
CODE" explains a finding.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "origin",
				Usage: "compare with `FILE`, the input of extract and purge, and list each " +
					"different record"},
			&cli.StringFlag{Name: "destination", Usage: "compare every earlier record with `FILE`, the input of " +
				"import"},
			&cli.StringSliceFlag{Name: "cache", Usage: "check the copies in `FILE`, the cache server's snapshot to " +
				"restore; may be repeated"},
			&cli.StringSliceFlag{Name: "cache-before",
				Usage: "compare the snapshot of --cache with `FILE`, the input of its purge; may be repeated, in the " +
					"order of --cache"},
			&cli.StringFlag{Name: "from-shard", Usage: "use `NAME` for the origin, if the archive does " +
				"not name its shard"},
			&cli.StringFlag{Name: "as-shard", Usage: "use `NAME` for the destination, if its snapshot does " +
				"not name its shard"},
			newCodesFlag("ignore", "omit findings with `CODE`, of any question except damaged; may be repeated",
				"a finding of any question except damaged", finding.Names(move.Ignorable()...)),
			prefixFlag("work"), encryptionFlag("decrypt values of the destination with"),
			&cli.StringFlag{Name: "archive-encryption-config",
				Usage: "decrypt values of the archive with the EncryptionConfiguration in `FILE` (default: " +
					"--encryption-config)"},
			maxExpandFlag(), textOrJSON(), quietFlag(),
		},
		Action: checking(runClusterVerify),
	}
}

func runClusterVerify(c *cli.Context, args []string) error {
	if given, of := len(c.StringSlice("cache-before")), len(c.StringSlice("cache")); given > of {
		return usagef(commandPath(c), "--cache-before is given %d times, and --cache %d: each --cache-before "+
			"needs a --cache",
			given, of)
	}
	m := newMove(c, args)
	defer m.close()
	m.move.Ignore = c.StringSlice("ignore")
	verdict, err := m.check()
	if err == nil {
		err = m.print(verdict)
	}
	switch {
	case err != nil:
		return err
	case len(verdict.Findings) > 0:
		return &failure{exitFound, fmt.Errorf("the move is not sound: %s",
			phrase.Count(len(verdict.Findings), "finding")),
			"start none of these shards; \"etcdshift explain CODE\" explains a finding"}
	case len(verdict.Unchecked) > 0:
		return &failure{exitCannotCheck, fmt.Errorf("not all of the move could be checked: %s not checked",
			phrase.Count(len(verdict.Unchecked), "part")),
			"--encryption-config and --archive-encryption-config decrypt values, --origin and --cache-before show " +
				"what a scrubbed file cannot, " +
				"--cache shows whether copies of APIExports are there; -o json lists all that was not checked"}
	case !verdict.Sound():
		return errors.New("not all of the move could be checked")
	}
	return nil
}

// moveCheck checks a move and prints the verdict.
type moveCheck struct {
	c     *cli.Context
	move  move.Move
	doc   moveVerification
	files []*moveFile
}

// moveFile is a file of a move; use receives its reader, tell its JSON.
type moveFile struct {
	path, config string
	use          func(*inspect.Reader)
	tell         func(inputInfo)
	*opened      // nil until check
}

func newMove(c *cli.Context, args []string) *moveCheck {
	m := &moveCheck{c: c, move: move.Move{
		Prefixes: readPrefixes(c), FromShard: c.String("from-shard"), AsShard: c.String("as-shard"),
		Configured: c.IsSet(encryptionConfig),
	}}
	m.doc = moveVerification{answerHead: answerTo("MoveVerification"), Caches: []inputInfo{}}
	add := func(path, config string, use func(*inspect.Reader), tell func(inputInfo)) {
		if path != "" {
			m.files = append(m.files, &moveFile{path: path, config: config, use: use, tell: tell})
		}
	}
	move, doc := &m.move, &m.doc
	to := func(r **inspect.Reader) func(*inspect.Reader) { return func(is *inspect.Reader) { *r = is } }
	add(args[0], "archive-encryption-config", to(&move.Archive), func(in inputInfo) { doc.Archive = in })
	add(args[1], encryptionConfig, to(&move.OriginOut), func(in inputInfo) { doc.OriginOut = in })
	add(args[2], encryptionConfig, to(&move.DestinationOut), func(in inputInfo) { doc.DestinationOut = in })
	add(c.String("origin"), encryptionConfig, to(&move.Origin), func(in inputInfo) { doc.Origin = &in })
	add(c.String("destination"), encryptionConfig, to(&move.Destination), func(in inputInfo) { doc.Destination = &in })
	before := c.StringSlice("cache-before")
	for n, path := range c.StringSlice("cache") {
		if samePath(path, args[1]) || samePath(path, args[2]) {
			continue // shard and cache share one etcd: already read
		}
		add(path, encryptionConfig, func(r *inspect.Reader) {
			move.Caches, move.CachesBefore = append(move.Caches, r), append(move.CachesBefore, nil)
		}, func(in inputInfo) { doc.Caches = append(doc.Caches, in) })
		if n < len(before) {
			add(before[n], encryptionConfig,
				func(r *inspect.Reader) { move.CachesBefore[len(move.CachesBefore)-1] = r },
				func(in inputInfo) { doc.CachesBefore = append(doc.CachesBefore, in) })
		}
	}
	return m
}

// check opens the files and checks the move. A file damaged beyond reading is a verdict.
func (m *moveCheck) check() (verdict *move.Verdict, err error) {
	defer progress(m.c).Phase("checking the move").End()
	read := func() (err error) {
		verdict, err = m.move.Verify(m.c.Context)
		return err
	}
	for _, f := range m.files {
		if f.opened, err = openWhole(m.c, f.path, f.config); snapshot.IsDamage(err) {
			return move.Damaged(f.path, err), nil
		} else if err != nil {
			return nil, err
		}
		f.use(f.Reader)
		inner := read
		read = func() error { return f.Snapshot().Guard(inner) }
	}
	err = read()
	return verdict, err
}

func (m *moveCheck) close() {
	for _, f := range m.files {
		if f.opened != nil {
			_ = f.Close()
		}
	}
}

// moveVerification is the document of kcp verify -o json.
type moveVerification struct {
	answerHead
	Archive        inputInfo   `json:"archive"` // empty if the file could not be opened, like the next two
	OriginOut      inputInfo   `json:"originOut"`
	DestinationOut inputInfo   `json:"destinationOut"`
	Origin         *inputInfo  `json:"origin,omitempty"`      // the input of extract and purge, if given
	Destination    *inputInfo  `json:"destination,omitempty"` // the input of import, if given
	Caches         []inputInfo `json:"caches"`
	CachesBefore   []inputInfo `json:"cachesBefore,omitempty"` // inputs of the purge of caches, in order
	// everything was checked and nothing found: every answer is "no"
	Sound     bool            `json:"sound"`
	From      string          `json:"from"` // name of the shard; "" if the files do not name it
	To        string          `json:"to"`
	Clusters  []move.Moved    `json:"clusters"`
	Answers   []move.Answer   `json:"answers"`   // one per question
	Findings  []moveFinding   `json:"findings"`  // by question, code, file and key
	Unchecked []moveUnchecked `json:"unchecked"` // parts that could not be checked
	Notes     []string        `json:"notes"`     // remarks that are not findings
}

type moveFinding struct {
	Code     string        `json:"code"` // etcdshift explain CODE
	Question move.Question `json:"question"`
	File     string        `json:"file"`          // the path of the file
	Key      string        `json:"key,omitempty"` // absent for a finding about a whole file or logical cluster
	Message  string        `json:"message"`
}

type moveUnchecked struct {
	Question move.Question `json:"question"`
	File     string        `json:"file"`
	Key      string        `json:"key,omitempty"`
	Reason   string        `json:"reason"`
}

func (m *moveCheck) print(v *move.Verdict) error {
	if !wantsJSON(m.c) {
		return printMoveText(m.c.App.Writer, v)
	}
	doc := &m.doc
	doc.Sound, doc.From, doc.To, doc.Clusters, doc.Answers, doc.Notes = v.Sound(), v.From, v.To, v.Clusters,
		v.Answers, v.Notes
	doc.Findings = stream.Mapped(v.Findings, func(f move.Finding) moveFinding {
		return moveFinding{f.Code.Name, f.Question, f.File, f.Key, f.Reason}
	})
	doc.Unchecked = stream.Mapped(v.Unchecked, func(f move.Finding) moveUnchecked {
		return moveUnchecked{f.Question,
			f.File, f.Key, f.Reason}
	})
	for _, f := range m.files {
		if f.opened == nil {
			continue
		}
		in, err := f.input(m.c.Context)
		if err != nil && !snapshot.IsDamage(err) {
			return err
		}
		f.tell(in)
	}
	return render.JSON(m.c.App.Writer, m.doc)
}

func printMoveText(w io.Writer, v *move.Verdict) error {
	p := render.NewPage(w)
	for _, c := range v.Clusters {
		p.Printf("%s %s: %s from %s to %s\n", c.Name, c.Path, phrase.Count(c.Keys, "record"), shardCalled(v.From),
			shardCalled(v.To))
	}
	if len(v.Clusters) > 0 {
		p.Printf("\n")
	}
	p.Table([]any{"QUESTION", "ANSWER", "CHECKED", "FINDINGS"}, stream.Mapped(v.Answers, func(a move.Answer) []any {
		return []any{a.Question, a.Answer, a.Checked, a.Findings}
	})...)
	const more = "; -o json lists them all"
	for findings := range grouped(v.Findings, func(f move.Finding) *finding.Code { return f.Code }) {
		p.Printf("\n%s: %s\n", findings[0].Question, findings[0].Code.Name)
		p.First("   ", stream.Mapped(findings, func(f move.Finding) string { return about(f.Reason, f.File, f.Key) }),
			5, len(findings), more)
	}
	if len(v.Unchecked) > 0 {
		p.Printf("\nnot checked:\n")
	}
	unchecked := stream.Mapped(v.Unchecked, func(u move.Finding) string { return about(u.Reason, u.File, u.Key) })
	p.First("   ", unchecked, mostListed, len(unchecked), more)
	if len(v.Notes) > 0 {
		p.Printf("\n")
	}
	p.Lines("note: ", v.Notes)
	if v.Sound() {
		p.Printf("\nthe move is sound\n   -> with all front-proxies stopped, restore; start the etcds, the cache " +
			"server and the shards, " +
			"and the front-proxies last\n")
	}
	return p.Flush()
}

func shardCalled(name string) string {
	if name == "" {
		return "a shard that no file names"
	}
	return "shard " + name
}
