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
	"github.com/etcdshift/etcdshift/transform"
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
		Flags:  []cli.Flag{prefixFlag(), encryptionFlag("open values that are encrypted at rest with"), maxExpandFlag(), outputFlag(), quietFlag()},
		Action: runStatus,
	}
}

func runStatus(c *cli.Context) error {
	args, err := arguments(c, "SNAPSHOT")
	if err != nil {
		return err
	}
	asJSON, err := wantsJSON(c)
	if err != nil {
		return err
	}
	o, err := openSnapshot(c, args[0])
	if err != nil {
		return err
	}
	defer o.Close()
	if err := o.snapshot.FreeList(); err != nil {
		warn(c, err.Error())
	}
	st := status{documentHead: documentHead{Kind: "Status"}}
	err = st.read(c, o)
	beside := errors.Is(err, snapshot.ErrDigest) || errors.Is(err, transform.ErrEmptyPrefix) || errors.Is(err, archive.ErrDamaged) || errors.Is(err, archive.ErrFormat)
	if err != nil && !beside {
		return err
	}
	// A digest that does not match is an error beside a status that is whole otherwise, and says "wrong" in it; so is a manifest of an
	// archive that cannot be read, which says nothing in it.
	if asJSON {
		return errors.Join(render.JSON(c.App.Writer, st), err)
	}
	return errors.Join(printStatus(c.App.Writer, st), err)
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

// read fills in st. An error of the digest, or of an archive's manifest, is returned beside a status that is whole.
func (st *status) read(c *cli.Context, o *opened) error {
	defer progress(c).Phase("reading " + o.snapshot.Path()).End()
	s, digestErr := o.snapshot.Status(c.Context)
	if digestErr != nil && !errors.Is(digestErr, snapshot.ErrDigest) {
		return digestErr
	}
	st.Status = s
	in, err := o.input(c.Context)
	if err != nil {
		return err
	}
	st.documentHead = document("Status", in)
	hash, err := o.snapshot.HashKV(c.Context)
	if err != nil {
		return err
	}
	content, err := o.snapshot.ContentHash(c.Context)
	if err != nil {
		return err
	}
	st.HashKV, st.ContentHash = fmt.Sprint(hash), hex.EncodeToString(content[:])
	err = o.snapshot.Guard(func() error {
		st.Catalogue, err = inspect.Survey(c.Context, o.Reader)
		return err
	})
	if err != nil {
		return errors.Join(err, digestErr)
	}
	digestErr = errors.Join(digestErr, o.snapshot.Guard(func() error {
		return lookBelow(c, func() error { return nil }, o)
	}))
	st.Archive, err = archiveOf(c.Context, o.snapshot)
	return errors.Join(err, digestErr)
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
