package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "what this file is, is it whole",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift status before.db
etcdshift status -o json before.db`,
		UsageText: `Reads a file of "etcdctl snapshot save", or a raw member/snap/db, either of them compressed with gzip, zstd or zip too,
checks its digest and structure and prints what it holds. "hash" is that of "etcdutl snapshot status", "sha256" that of sha256sum.

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
	st, catalogue, err := readStatus(c, args[0])
	if st.Path == "" {
		return err
	}
	// A digest that does not match is an error beside a status that is whole otherwise, and says "wrong" in it.
	warn(c, st.Warnings)
	if printErr := printStatus(c.App.Writer, st, catalogue, asJSON); err == nil {
		err = printErr
	}
	return err
}

// readStatus reads all that status prints. The catalogue is nil where the file is not whole.
func readStatus(c *cli.Context, path string) (snapshot.Status, *inspect.Catalogue, error) {
	defer progress(c)("reading " + path)()
	transformers, err := loadEncryption(c)
	if err != nil {
		return snapshot.Status{}, nil, err
	}
	var opener inspect.Opener
	defer transformers.Close()
	if transformers != nil { // a nil one in an interface would not be nil
		opener = transformers
	}
	s, err := snapshot.Open(c.Context, path, snapshotConfig(c))
	if err != nil {
		return snapshot.Status{}, nil, err
	}
	defer s.Close()
	st, err := s.Status(c.Context)
	if err != nil {
		return st, nil, err
	}
	var catalogue *inspect.Catalogue
	err = s.Guard(func() error {
		catalogue, err = inspect.Survey(c.Context, inspect.NewReader(s, opener, readPrefixes(c)...))
		return err
	})
	return st, catalogue, err
}

func printStatus(w io.Writer, st snapshot.Status, catalogue *inspect.Catalogue, asJSON bool) error {
	if asJSON {
		return printJSON(w, struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			snapshot.Status
			*inspect.Catalogue
		}{apiVersion, "Status", st, catalogue})
	}
	kind := "etcdctl snapshot"
	if st.Raw {
		kind = "database file (member/snap/db)"
	}
	t := newTable(w)
	t.row("file", st.Path)
	t.row("kind", kind)
	t.row("size", fileSize(st))
	t.row("sha256", st.SHA256)
	t.row("digest", st.Digest)
	t.row("hash", st.Hash)
	t.row("etcd", st.EtcdVersion)
	t.row("revision", currentRevision(st))
	t.row("compacted", compacted(st))
	t.row("keys", st.Keys)
	t.row("records", fmt.Sprintf("%d (%d tombstones)", st.Records, st.Tombstones))
	t.row("pages", fmt.Sprintf("%d of %d bytes (%d free)", st.Pages, st.PageSize, st.FreePages))
	t.row("leases", fmt.Sprintf("%d, held by %s", st.Leases, plural(st.LeasedKeys, "key")))
	t.row("auth", auth(st))
	if len(st.Alarms) == 0 {
		t.row("alarms", "none")
	}
	for _, a := range st.Alarms {
		t.row("alarm", fmt.Sprintf("%s of member %s, which a restore keeps", a.Kind, a.Member))
	}
	for _, m := range st.Members {
		t.row("member", fmt.Sprintf("%s (%s) %s", m.Name, m.ID, strings.Join(m.PeerURLs, ",")))
	}
	if err := t.flush(); err != nil || catalogue == nil {
		return err
	}
	return printCatalogue(w, catalogue)
}

func fileSize(st snapshot.Status) string {
	if st.Compression == "" {
		return size(st.Bytes)
	}
	return fmt.Sprintf("%s, %s of %s", size(st.Bytes), st.Compression, size(st.ExpandedBytes))
}

// currentRevision tells a revision that etcdutl gets wrong: it takes that of the last record, which a compaction may have removed.
func currentRevision(st snapshot.Status) string {
	if st.LastRecord == st.Revision {
		return fmt.Sprint(st.Revision)
	}
	return fmt.Sprintf("%d, as a server would start with (\"etcdutl snapshot status\" prints %d)", st.Revision, st.LastRecord)
}

func auth(st snapshot.Status) string {
	state := "off"
	if st.AuthEnabled {
		state = "on"
	}
	if st.AuthUsers+st.AuthRoles == 0 {
		return state
	}
	return fmt.Sprintf("%s (%s, %s)", state, plural(st.AuthUsers, "user"), plural(st.AuthRoles, "role"))
}

func compacted(st snapshot.Status) string {
	switch {
	case st.ScheduledCompact > st.CompactRevision:
		return fmt.Sprintf("%d (interrupted on the way to %d)", st.CompactRevision, st.ScheduledCompact)
	case st.CompactRevision == 0:
		return "never"
	}
	return fmt.Sprint(st.CompactRevision)
}
