package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/internal/save"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

func saveCommand() *cli.Command {
	return &cli.Command{
		Name:      "save",
		Usage:     "take a snapshot of a live etcd, or of a stopped member's data directory",
		ArgsUsage: "OUT",
		Description: `etcdshift save before.db --cacert ca.crt --cert etcd.crt --key etcd.key \
    --endpoints https://10.0.0.1:2379,https://10.0.0.2:2379
ETCDCTL_USER=root:PASSWORD etcdshift save before.db
etcdshift save --data-dir /var/lib/etcd before.db`,
		UsageText: `Takes the same snapshot as "etcdctl snapshot save", with the flags and variables
(ETCDCTL_ENDPOINTS) of etcdctl; a flag overrides its variable. Of several endpoints, followers come before the
leader. Refused are learners, members without a leader or with a CORRUPT alarm, and members more than --max-lag raft
entries behind the newest; a member must also confirm with its leader that it is up to date. If a download breaks
off, the next member is tried, up to three times each, always from the start.

OUT has mode 0600, replaces no file, and appears only after it was received completely, read back and synced; its
SHA-256 is compared with the SHA-256 from the member. Give the endpoints of members, not of a load balancer. In a
cluster without quorum, "etcdctl snapshot save" still saves the data of one member.

--data-dir DIR makes OUT from the data directory of a stopped or dead member, and does not change DIR. OUT has the
database and the later entries of the write-ahead log: the data of the member after a restart. In a cluster of several
members, entries that may not be committed are left out, and a warning lists their keys: --peer names the data
directories of other members, and entries in a majority of the logs are committed. DIR may also be a folder with
backups of etcdbrctl (Gardener): OUT then has the newest full snapshot (Full-*) and the delta snapshots after it
(Incr-*), up to --at.

--wal-history also puts back the revisions that compaction removed and the log still has: "history", "timeline", "diff",
"get --deleted" and "get --revision" then reach further back. If the log lacks the first entries of the cluster, or the
member was restored, --base names an earlier snapshot of the member, or the snapshot from which it was restored. Every
record is compared with the database; if one differs, nothing is written. Such an OUT is for reading; "etcdshift
compact" removes the history again.

Without --base, the first revision of such a log is inferred: from the revisions in later requests, and from the
database. OUT has only writes with a sure revision; a log with too many other writes is refused. Values from before the
log are unknown: the answer lists their keys. A state with an unknown value is not in OUT, but its sure records are in
free pages of OUT: "get --deleted", "history", "timeline" and "export --deleted" show them with --free-pages.

Exit status: 0 saved, 1 failed or no suitable member, 2 usage, 3 no history from the log with --wal-history, 130
interrupted. With any status except 0 there is no OUT.`,
		Flags: append(etcdFlags(),
			&cli.StringFlag{Name: "data-dir", Usage: "read the data directory `DIR` of a stopped member, or a folder " +
				"with backups of etcdbrctl"},
			&cli.StringFlag{Name: "at", Usage: "end the delta snapshots of etcdbrctl with `REVISION`, or with a " +
				"time: RFC 3339 or a UTC date and time"},
			&cli.StringFlag{Name: "wal-dir",
				Usage: "with --data-dir, read the log in the folder `DIR`, as of etcd --wal-dir (default: member/wal)"},
			&cli.StringSliceFlag{Name: "peer", Usage: "with --data-dir, also read the log of another member, from " +
				"its data directory `DIR`; repeatable"},
			&cli.BoolFlag{Name: "wal-history",
				Usage: "with --data-dir, put back compacted revisions that the log still has"},
			&cli.StringFlag{Name: "base",
				Usage: "with --wal-history, begin with the earlier snapshot `FILE` of the member"},
			&cli.Int64Flag{Name: "max-lag", Value: save.DefaultMaxLag,
				Usage: "refuse a member more than `N` raft entries behind the newest"},
			textOrJSON(), quietFlag()),
		Action: taking(runSave),
	}
}

// notStdout refuses "-" as OUT.
func notStdout(c *cli.Context) error {
	err := usagef(commandPath(c), "OUT is a file, not \"-\": it appears only after it is complete and verified")
	return &failure{exitUsage, err, "name a file, and pipe it afterwards"}
}

// savedHistory describes the revisions of --wal-history.
type savedHistory struct {
	Oldest  int64 `json:"oldest"`  // the first revision with the whole store
	Records int   `json:"records"` // that compaction had removed

	Inferred *snapshot.InferredHistory `json:"inferred,omitempty"` // if the first entries of the log are gone
}

// lines describes the history as text.
func (h *savedHistory) lines(newest int64) string {
	s := fmt.Sprintf("history: %s put back, revisions %d to %d\n", phrase.Count(h.Records, "record"), h.Oldest, newest)
	in := h.Inferred
	if in == nil {
		return s
	}
	s += fmt.Sprintf("log: begins with revision %d; %s with a sure revision; %d without a sure revision are left out\n",
		in.Oldest, phrase.Count(in.Sure, "write"), in.Flagged)
	if in.FreePages > 0 {
		s += fmt.Sprintf("free pages: %s, for \"get --deleted\", \"history\" and \"timeline\" with --free-pages\n",
			phrase.Count(in.FreePages, "record"))
	}
	if len(in.Unknown) == 0 {
		return s
	}
	s += fmt.Sprintf("unknown values: %s existed before the log; the first known change of each:\n",
		phrase.Count(len(in.Unknown), "key"))
	for i, u := range in.Unknown {
		if i == maxUnknownShown {
			return s + fmt.Sprintf("  and %d others; -o json lists all\n", len(in.Unknown)-i)
		}
		change := "changed"
		if u.Deleted {
			change = "deleted"
		}
		s += fmt.Sprintf("  %s  %s at %d\n", render.Printable(u.Key), change, u.Until)
	}
	return s
}

// maxUnknownShown limits the keys with unknown values in the text.
const maxUnknownShown = 20

// saved is the document of save -o json.
type saved struct {
	answerHead
	Output   snapshot.FileInfo `json:"output"`
	Member   *save.Member      `json:"member,omitempty"`  // source of the snapshot, if it was live
	DataDir  *snapshot.DataDir `json:"dataDir,omitempty"` // source of the snapshot, with --data-dir
	History  *savedHistory     `json:"history,omitempty"` // of --wal-history
	Refused  []save.Untaken    `json:"refused"`           // unsuitable endpoints
	Failed   []save.Untaken    `json:"failed"`            // interrupted downloads, in order
	Warnings []string          `json:"warnings"`
}

func runSave(c *cli.Context, args []string) error {
	out := args[0]
	switch {
	case out == "":
		return usagef(commandPath(c), "OUT is empty")
	case out == "-":
		return notStdout(c)
	case c.Int64("max-lag") < 0:
		return usagef(commandPath(c), "--max-lag is %d; it takes a number from 0", c.Int64("max-lag"))
	}
	switch {
	case c.Bool("wal-history") && c.String("data-dir") == "":
		return usagef(commandPath(c), "--wal-history needs --data-dir DIR: it reads the log of a data directory")
	case c.IsSet("wal-dir") && c.String("data-dir") == "":
		return usagef(commandPath(c), "--wal-dir needs --data-dir DIR, the data directory of this log")
	case c.IsSet("peer") && c.String("data-dir") == "":
		return usagef(commandPath(c), "--peer needs --data-dir DIR: it is another member of the same cluster")
	case c.IsSet("base") && !c.Bool("wal-history"):
		return usagef(commandPath(c), "--base needs --wal-history: the history begins with it")
	case c.String("data-dir") != "":
		return saveDirectory(c, out)
	}
	if err := fromEnvironment(c); err != nil {
		return err
	}
	spec, err := clientOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := commandTimeout(c)
	defer cancel()
	r, err := download(ctx, c, out, save.Options{Etcd: spec, MaxLag: uint64(c.Int64("max-lag"))})
	if err != nil {
		return saveFailure(err, out)
	}
	return printSaved(c, saved{answerTo("SavedSnapshot"), r.FileInfo, &r.Member, nil, nil, listed(r.Refused),
		listed(r.Failed), listed(r.Warnings)})
}

func saveFailure(err error, out string) error {
	if errors.Is(err, syscall.ENOSPC) && !s3.Is(out) {
		return &failure{exitFailed, err, "the folder of OUT needs room for the whole database of a member"}
	}
	return err
}

func commandTimeout(c *cli.Context) (context.Context, context.CancelFunc) {
	limit := c.Duration("command-timeout")
	if limit <= 0 {
		return context.WithCancel(c.Context)
	}
	return context.WithTimeoutCause(c.Context, limit, fmt.Errorf("not done within the %s of --command-timeout", limit))
}

// download saves a snapshot and shows its progress.
func download(ctx context.Context, c *cli.Context, out string, o save.Options) (*save.Result, error) {
	var done atomic.Uint64 // progress as float bits
	part := func() float64 { return math.Float64frombits(done.Load()) }
	o.Received = func(received, total int64) { done.Store(math.Float64bits(float64(received) / float64(total))) }
	shown := progress(c).Phase("saving " + out)
	defer shown.End()
	o.Tell = func(line string) {
		shown.End()
		if !c.Bool("quiet") {
			fmt.Fprintln(c.App.ErrWriter, render.Printable(line))
		}
		shown.Phase("saving " + out).Of(part)
	}
	o.Create = func(path string) (*publish.File, error) { return create(c, path) }
	return save.Run(ctx, out, o)
}

func printSaved(c *cli.Context, doc saved) (err error) {
	warn(c, doc.Warnings...)
	if wantsJSON(c) {
		err = render.JSON(c.App.Writer, doc)
	} else {
		_, err = fmt.Fprintf(c.App.Writer, "%s: %s, revision %d, %s, sha256 %s\n", render.Printable(doc.Output.Path),
			render.Size(doc.Output.Bytes), doc.Output.Revision, phrase.Count(doc.Output.Keys, "key"), doc.Output.SHA256)
		if h := doc.History; err == nil && h != nil {
			_, err = fmt.Fprint(c.App.Writer, h.lines(doc.Output.Revision))
		}
	}
	if err != nil {
		return &failure{exitFailed, fmt.Errorf("%w (%s: %s)", err, doc.Output.Path, transform.Written),
			"the snapshot was saved; only printing failed"}
	}
	return nil
}
