package main

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "what this file is, is it whole",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift status before.db
etcdshift status -o json before.db`,
		UsageText: `Reads a file of "etcdctl snapshot save", or a raw member/snap/db, either of them compressed with gzip, zstd or zip too,
checks its digest and structure and prints what it holds. "sha256" is that of sha256sum, "hash" that of "etcdutl snapshot status", "hashkv" that of "etcdctl endpoint hashkv". They
differ between two saves of the same objects; "content" does not: it is of the live keys and their values alone.

The second table shows at which versions objects are really stored, whatever the API or status.storedVersions say; below it stand
the objects that break when their version is removed from a CustomResourceDefinition now, or that are broken already.

Exit status: 0 read, 1 could not be read or is damaged, 2 usage, 130 interrupted.`,
		Flags:  readFlags("open values that are encrypted at rest with", textOrJSON()),
		Action: runStatus,
	}
}

// status is what the command prints.
type status struct {
	documentHead
	snapshot.Status
	HashKV      string `json:"hashKV"`      // as "etcdctl endpoint hashkv" prints it of a server that starts on the file
	ContentHash string `json:"contentHash"` // of live keys and values alone, hex
	*inspect.Catalogue
	Archive *archive.Manifest `json:"archive,omitempty"` // of a file that "cluster extract" made
}

func runStatus(c *cli.Context) error {
	args, err := arguments(c)
	if err != nil {
		return err
	}
	return readSnapshots(c, args, func(files []*opened) error {
		st, err := readStatus(c, files[0])
		if err != nil {
			return err
		}
		// What is wrong with an archive's manifest is an error beside a status that is whole otherwise.
		st.Archive, err = archive.Open(c.Context, files[0].Snapshot())
		if errors.Is(err, archive.ErrNotArchive) {
			err = nil
		}
		if err != nil && !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrFormat) {
			return err
		}
		if wantsJSON(c) {
			return errors.Join(render.JSON(c.App.Writer, st), err)
		}
		return errors.Join(printStatus(c.App.Writer, st), err)
	})
}

func readStatus(c *cli.Context, o *opened) (st status, err error) {
	defer progress(c).Phase("reading " + o.Snapshot().Path()).End()
	if err := o.Snapshot().FreeList(); err != nil {
		warn(c, err.Error())
	}
	if st.Status, err = o.Snapshot().Status(c.Context); err != nil && !errors.Is(err, snapshot.ErrDigest) {
		return st, err
	}
	if st.documentHead, err = o.document(c.Context, "Status"); err != nil {
		return st, err
	}
	hash, err := o.Snapshot().HashKV(c.Context)
	if err != nil {
		return st, err
	}
	content, err := o.Snapshot().ContentHash(c.Context)
	if err != nil {
		return st, err
	}
	st.HashKV, st.ContentHash = fmt.Sprint(hash), hex.EncodeToString(content[:])
	st.Catalogue, err = inspect.Survey(c.Context, o.Reader)
	return st, err
}

func printStatus(w io.Writer, st status) error {
	kind := "etcdctl snapshot"
	if st.Raw {
		kind = "database file (member/snap/db)"
	}
	if st.Archive != nil {
		kind = archiveText(st.Archive)
	}
	t := render.NewTable(w)
	t.Row("file", st.Path)
	t.Row("kind", kind)
	t.Row("size", fileSize(st))
	t.Row("sha256", st.SHA256)
	t.Row("digest", st.Digest)
	t.Row("hash", st.Hash)
	t.Row("hashkv", st.HashKV)
	t.Row("content", st.ContentHash)
	if st.Archive == nil { // else no etcd wrote it
		t.Row("etcd", st.EtcdVersion)
	}
	t.Row("revision", currentRevision(st))
	t.Row("compacted", compacted(st))
	t.Row("keys", st.Keys)
	t.Row("records", fmt.Sprintf("%d (%s)", st.Records, render.Plural(st.Tombstones, "tombstone")))
	t.Row("pages", fmt.Sprintf("%d of %d bytes (%d free)", st.Pages, st.PageSize, st.FreePages))
	t.Row("leases", fmt.Sprintf("%d, held by %s", st.Leases, render.Plural(st.LeasedKeys, "key")))
	t.Row("auth", auth(st))
	if len(st.Alarms) == 0 {
		t.Row("alarms", "none")
	}
	for _, a := range st.Alarms {
		t.Row("alarm", fmt.Sprintf("%s of member %s, which a restore keeps", a.Kind, a.Member))
	}
	for _, m := range st.Members {
		t.Row("member", fmt.Sprintf("%s (%s) %s", m.Name, m.ID, strings.Join(m.PeerURLs, ",")))
	}
	for _, p := range st.Prefixes {
		t.Row("prefix", fmt.Sprintf("%s (%s)", cmp.Or(p.Prefix, "/"), p.Flavour))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return printCatalogue(w, st.Catalogue)
}

func fileSize(st status) string {
	if st.Compression == "" {
		return render.Size(st.Bytes)
	}
	return fmt.Sprintf("%s, %s of %s", render.Size(st.Bytes), st.Compression, render.Size(st.ExpandedBytes))
}

// currentRevision tells a revision that etcdutl gets wrong: it takes that of the last record, which a compaction may have removed.
func currentRevision(st status) string {
	if st.LastRecord == st.Revision {
		return fmt.Sprint(st.Revision)
	}
	return fmt.Sprintf("%d, as a server would start with (\"etcdutl snapshot status\" prints %d)", st.Revision, st.LastRecord)
}

func auth(st status) string {
	state := "off"
	if st.AuthEnabled {
		state = "on"
	}
	if st.AuthUsers+st.AuthRoles == 0 {
		return state
	}
	return fmt.Sprintf("%s (%s, %s)", state, render.Plural(st.AuthUsers, "user"), render.Plural(st.AuthRoles, "role"))
}

func compacted(st status) string {
	switch {
	case st.ScheduledCompact > st.CompactRevision:
		return fmt.Sprintf("%d (interrupted on the way to %d)", st.CompactRevision, st.ScheduledCompact)
	case st.CompactRevision == 0:
		return "never"
	}
	return fmt.Sprint(st.CompactRevision)
}
