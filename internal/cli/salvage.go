package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/salvage"
	"github.com/etcdshift/etcdshift/transform"
)

func salvageCommand() *cli.Command {
	return &cli.Command{
		Name:      "salvage",
		Usage:     "write the readable records of damaged files into a sound snapshot",
		ArgsUsage: "DAMAGED... OUT",
		Description: `etcdshift salvage damaged.db out.db
etcdshift salvage m1/member/snap/db m2/member/snap/db out.db
etcdshift salvage damaged.db out.db --wal /var/lib/etcd/member/wal
etcdshift salvage damaged.db out.db --include-unsure`,
		UsageText: `Reads files that etcd and the other commands refuse: damaged or zeroed pages, a file cut short, no valid
meta page. It reads all readable pages of the tree, and then searches every page for the bytes of other records. Give
the files of several members of one cluster together: a record in one file replaces a lost record of another.

A record is sure if it is in the tree, or if its revision is above the last compaction. OUT has all sure records. A
key is unsure if its records are at or below the compaction and only outside of the tree: the object may have been
deleted before the compaction. Unsure keys are listed, and written only with --include-unsure.

Revisions above the compaction without a record are lost, and are counted. OUT is compacted at the last lost revision,
so that it shows no incomplete state. A value has no checksum: a value that is not an object of its key, or that the
encryption configuration does not decrypt, is listed, but other changed values are not found. Look at the objects in
OUT before you restore it.

The write-ahead log decides: of a data directory, its own log; of other files, the log that --wal names. Records that
only the log has are added and named, and a key that the log deletes is gone. A log that begins with the first entry
of the cluster leaves nothing lost or unsure. Otherwise only the writes with a sure revision count. A damaged log
counts up to its damage. Entries that are left out, and logs that are not used, count as lost.

Exit status: 0 nothing is lost, 1 failed, 2 usage, 4 written, but something is lost, unsure or damaged, 130
interrupted.`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "include-unsure", Usage: "also write the newest record of each unsure key"},
			&cli.StringFlag{Name: "wal", Usage: "read the log in the folder `DIR`, or in the data directory DIR"},
			encryptionFlag("check encrypted values with"), maxExpandFlag(), textOrJSON(), quietFlag(),
		},
		Action: taking(runSalvage),
	}
}

// salvaged is the document of salvage -o json.
type salvaged struct {
	answerHead
	Output        snapshot.FileInfo `json:"output"`
	IncludeUnsure bool              `json:"includeUnsure"` // the unsure keys are in the output
	salvage.Report
	Unreadable []unreadableValue `json:"unreadableValues"` // of live keys in the output, by revision
	Unchecked  int               `json:"unchecked"`        // number of encrypted values, without a configuration
}

// unreadableValue is a value that is not an object of its key, or that cannot be decrypted.
type unreadableValue struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

func runSalvage(c *cli.Context, args []string) error {
	paths, out := args[:len(args)-1], args[len(args)-1]
	if out == "-" || slices.Contains(paths, "-") || out == "" {
		return usagef(commandPath(c), "DAMAGED and OUT are files, not \"-\"")
	}
	for _, path := range paths {
		if err := onlyFile(c, "DAMAGED", path); err != nil {
			return err
		}
	}
	transformers, err := loadEncryption(c, encryptionConfig)
	if err != nil {
		return err
	}
	o := &opened{transformers: transformers}
	defer transformers.Close()
	target, err := create(c, out)
	if err != nil {
		return err
	}
	defer func() { _ = target.Discard() }()
	cfg := snapshotConfig(c)
	if cfg.LogDir = c.String("wal"); c.IsSet("wal") && cfg.LogDir == "" {
		return usagef(commandPath(c), "--wal takes the folder of a log")
	}
	reading := progress(c).Phase("reading " + strings.Join(paths, ", "))
	defer reading.End()
	r, err := salvage.Open(c.Context, paths, cfg)
	if err != nil {
		return err
	}
	defer r.Close()
	doc := salvaged{answerHead: answerTo("SalvagedSnapshot"), IncludeUnsure: c.Bool("include-unsure"),
		Report: r.Report, Unreadable: []unreadableValue{}}
	check := func(ctx context.Context, s *snapshot.Snapshot) error {
		return doc.check(ctx, inspect.NewReader(s, o.decrypter()), o.transformers != nil)
	}
	res, err := r.Write(c.Context, out, target, doc.IncludeUnsure, check)
	if err != nil {
		return err
	}
	doc.Output = res.FileInfo
	reading.End()
	warn(c, r.Warnings()...)
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, doc)
	} else {
		err = doc.print(render.NewPage(c.App.Writer))
	}
	if err != nil {
		return &failure{exitFailed, fmt.Errorf("%w (%s: %s)", err, out, transform.Written),
			"the snapshot was written; only printing failed"}
	}
	return doc.verdict(out)
}

// check reads all live values of the output, encrypted ones if decrypts.
func (d *salvaged) check(ctx context.Context, r *inspect.Reader, decrypts bool) error {
	return stream.Each(r.Live(ctx, nil), func(e *inspect.Entry) error {
		switch {
		case e.Undecryptable != nil && decrypts: // only damage of an encrypted value is certain to be found
			d.Unreadable = append(d.Unreadable, unreadableValue{string(e.Key), e.Undecryptable.Error()})
			return nil
		case e.Undecryptable != nil:
			d.Unchecked++
			return nil
		}
		key, err := e.ParseKey()
		if err != nil || key.Resource.Resource == "" { // not of Kubernetes: any value is right
			return nil
		}
		if err = e.Check(); err == nil {
			_, err = native.Decode(e.Value)
		}
		if err != nil && !errors.Is(err, native.ErrUnknownKind) {
			d.Unreadable = append(d.Unreadable, unreadableValue{string(e.Key), err.Error()})
		}
		return nil
	})
}

// mostSalvaged is the number of ranges, keys and values of one sort in the text.
const mostSalvaged = 20

func (d *salvaged) print(p *render.Page) error {
	for _, f := range d.Files {
		tree := map[string]string{
			"meta":   fmt.Sprintf("%s in the tree", phrase.Count(f.ByTree, "record")),
			"search": fmt.Sprintf("%s in a tree found without a meta page", phrase.Count(f.ByTree, "record")),
			"none":   "no tree",
		}[f.Tree]
		p.Line(render.Plain, fmt.Sprintf("%s: %s, %s elsewhere, %s in the tree", f.Path, tree,
			phrase.Count(f.ByBytes, "record"), phrase.Count(f.Bad, "unreadable place")))
	}
	if l := d.Log; l != nil {
		kind := "from the first entry of the cluster"
		if l.Inferred {
			kind = "its first entries are gone: only sure writes count"
		}
		p.Line(render.Plain, fmt.Sprintf("log %s: entries %d to %d; %s", l.Path, l.First, l.Last, kind))
	}
	compacted := "compaction: at an unknown revision"
	if d.CompactRevision != nil {
		compacted = fmt.Sprintf("compaction: at revision %d", *d.CompactRevision)
	}
	p.Line(render.Plain, fmt.Sprintf("%s; last revision: %d; sure records: %d", compacted, d.LastRevision, d.Sure))
	for _, part := range []struct {
		head string
		list []string
	}{
		{fmt.Sprintf("added from the log: %s", phrase.Count(len(d.addedText()), "record")), d.addedText()},
		{fmt.Sprintf("lost: %d revisions", d.LostRevisions), rangesText(d.Lost)},
		{"unreadable in the tree: records with the revisions", rangesText(d.Gaps)},
		{fmt.Sprintf("unsure, %s: perhaps deleted before the compaction", d.unsureText()),
			stream.Mapped(d.Unsure, func(u salvage.UnsureKey) string {
				return fmt.Sprintf("%s (revision %d)", u.Key, u.Revision)
			})},
		{"damaged records", stream.Mapped(d.Damaged, func(r salvage.DamagedRecord) string {
			return fmt.Sprintf("%s (revision %d): %s", r.Key, r.Revision, r.Why)
		})},
		{"unreadable entries of other buckets, left out", d.Entries},
		{"values that are not objects of their key, or cannot be decrypted",
			stream.Mapped(d.Unreadable, func(u unreadableValue) string { return u.Key + ": " + u.Reason })},
	} {
		if len(part.list) == 0 {
			continue
		}
		p.Line(render.Bold, part.head)
		for _, line := range part.list[:min(len(part.list), mostSalvaged)] {
			p.Line(render.Plain, "  "+line)
		}
		if more := len(part.list) - mostSalvaged; more > 0 {
			p.Line(render.Plain, fmt.Sprintf("  ... and %d more; -o json lists them all", more))
		}
	}
	if d.Unchecked > 0 {
		p.Line(render.Plain, fmt.Sprintf("not checked: %s", phrase.Count(d.Unchecked, "encrypted value")))
	}
	o := d.Output
	p.Line(render.Bold, fmt.Sprintf("%s: %s, revision %d, %s, sha256 %s", o.Path, render.Size(o.Bytes), o.Revision,
		phrase.Count(o.Keys, "key"), o.SHA256))
	return p.Flush()
}

// addedText describes the records that only the log has.
func (d *salvaged) addedText() []string {
	if d.Log == nil {
		return nil
	}
	return stream.Mapped(d.Log.Added, func(r salvage.LoggedRecord) string {
		text := fmt.Sprintf("%s (revision %d)", r.Key, r.Revision)
		if r.Deleted {
			text += ": deleted"
		}
		if r.Renumbered {
			text += ": create revision and version are unknown; it counts as created"
		}
		return text
	})
}

func (d *salvaged) unsureText() string {
	if d.IncludeUnsure {
		return "written"
	}
	return "not written"
}

// rangesText describes ranges of revisions.
func rangesText(all []salvage.Range) []string {
	return stream.Mapped(all, func(r salvage.Range) string {
		switch {
		case r.From == r.To:
			return fmt.Sprint(r.From)
		case r.To == math.MaxInt64:
			return fmt.Sprintf("%d and later", r.From)
		}
		return fmt.Sprintf("%d to %d", r.From, r.To)
	})
}

// verdict returns an error if something is lost, unsure or damaged.
func (d *salvaged) verdict(out string) error {
	var all []string
	for _, part := range []struct {
		n    int
		noun string
	}{
		{int(min(d.LostRevisions, math.MaxInt32)), "lost revision"}, {len(d.Gaps), "unreadable range"},
		{len(d.Unsure), "unsure key"}, {len(d.Damaged), "damaged record"},
		{len(d.Entries), "unreadable element"}, {len(d.Unreadable), "unreadable value"},
		{len(d.UnusedLogs), "unused log"},
	} {
		if part.n > 0 {
			all = append(all, phrase.Count(part.n, part.noun))
		}
	}
	if d.Log != nil && (d.Log.LeftOut > 0 || d.Log.Damage != "") {
		all = append(all, fmt.Sprintf("the log after entry %d", d.Log.Last))
	}
	if d.CompactRevision == nil {
		all = append(all, "the revision of the compaction")
	}
	if all == nil {
		return nil
	}
	hint := "look at the objects before a restore: \"etcdshift diff OLDER-BACKUP " + transform.ShellWord(out) +
		"\", \"etcdshift doctor " + transform.ShellWord(out) + "\""
	return &failure{exitAllowed, fmt.Errorf("%s was written, but not everything was found: %s", out,
		strings.Join(all, ", ")), hint}
}
