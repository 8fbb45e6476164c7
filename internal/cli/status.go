package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/snapshot"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "print a summary of a snapshot and check its integrity",
		ArgsUsage: "SNAPSHOT...",
		Description: `etcdshift status before.db
etcdshift status -o json before.db
etcdshift status n1.db n2.db n3.db`,
		UsageText: `Reads a file of "etcdctl snapshot save" or a raw member/snap/db, also compressed with gzip, zstd or zip,
or the data directory of a stopped member, checks its digest and structure and prints a summary. "sha256" is the
value of sha256sum, "hash" of "etcdutl snapshot status", "hashkv" of "etcdctl endpoint hashkv". They differ between
two saves of the same objects. "content", printed with --content, does not: it covers only live keys and values.

Warnings come first, such as objects that break when their version is removed from a CustomResourceDefinition, or
that are broken already. The table shows the versions of the stored bytes, regardless of the API and
status.storedVersions.

Of several snapshots, such as those of all members of a cluster, status prints which to restore: it compares the
state at the first revision that two of them have, and every record after it, and prints the first revision at which
they differ. The newest snapshot of a majority that agrees is the best one; without a majority, nothing in the files
says which is right.

Exit status: 0 read, 1 unreadable, damaged, or several that do not agree, 2 usage, 130 interrupted.`,
		Flags: readFlags("decrypt values with", textOrJSON(), &cli.BoolFlag{Name: "content",
			Usage: "print a hash of the live keys and values, too"}),
		Action: taking(runStatus),
	}
}

// status is the document of status -o json.
type status struct {
	documentHead
	report.Status
	Archive *archive.Manifest     `json:"archive,omitempty"`     // of a file made by "kcp extract"
	Part    *archive.PartManifest `json:"partArchive,omitempty"` // of a file made by "extract"
}

func runStatus(c *cli.Context, args []string) error {
	return readSnapshots(c, args, func(files []*opened) error {
		if len(files) > 1 {
			return statusSeveral(c, files)
		}
		st, err := readStatus(c, files[0])
		if err != nil {
			return err
		}
		// A bad manifest of an archive is an error beside a complete status.
		st.Archive, err = archive.Open(c.Context, files[0].Snapshot())
		if errors.Is(err, archive.ErrKind) {
			st.Part, err = archive.ReadPart(c.Context, files[0].Snapshot())
		}
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
	defer progress(c).Phase("reading " + o.Snapshot().Path()).Of(part(2, 2, o)).End()
	if err := o.Snapshot().FreeList(); err != nil {
		warn(c, err.Error())
	}
	read, err := report.ReadStatus(c.Context, o.Reader, c.Bool("content"))
	if err != nil {
		return st, err
	}
	st.Status = *read
	st.documentHead, err = o.document(c.Context, "Status")
	return st, err
}

func printStatus(w io.Writer, st status) error {
	kind := "etcdctl snapshot"
	switch {
	case st.DataDir != nil:
		kind = "data directory of a member"
	case st.Compression == snapshot.Etcdbrctl:
		kind = "backups of etcdbrctl"
	case st.Raw:
		kind = "database file (member/snap/db)"
	}
	rows := [][]any{
		{"file", st.Path}, {"kind", kind}, {"size", fileSize(st)}, {"sha256", st.SHA256}, {"digest", st.Digest},
		{"hash", st.Hash}, {"hashkv", st.HashKV},
	}
	if st.ContentHash != "" {
		rows = append(rows, []any{"content", st.ContentHash})
	}
	switch {
	case st.Archive != nil:
		rows[1][1] = archiveText(st.Archive)
	case st.Part != nil:
		rows[1][1] = partText(st.Part)
	default: // no etcd wrote an archive
		rows = append(rows, []any{"etcd", st.EtcdVersion})
	}
	add := func(name, format string, args ...any) { rows = append(rows, []any{name, fmt.Sprintf(format, args...)}) }
	if d := st.DataDir; d != nil {
		add("cluster", "%s", d.Cluster)
		add("log", "entry %d (member %s)", d.Entry, d.Member)
	}
	add("revision", "%s", st.Status.CurrentRevision())
	add("compacted", "%s", st.Status.Compacted())
	add("keys", "%d", st.Keys)
	add("records", "%d (%s)", st.Records, phrase.Count(st.Tombstones, "tombstone"))
	add("pages", "%d of %d bytes (%d free)", st.Pages, st.PageSize, st.FreePages)
	add("leases", "%d, held by %s", st.Leases, phrase.Count(st.LeasedKeys, "key"))
	add("auth", "%s", st.Status.Auth())
	if len(st.Alarms) == 0 {
		add("alarms", "none")
	}
	for _, m := range st.Members {
		role := ""
		if m.Learner {
			role = ", learner"
		}
		add("member", "%s (%s%s) %s", m.Name, m.ID, role, strings.Join(m.PeerURLs, ","))
	}
	for _, p := range st.Prefixes {
		add("prefix", "%s (%s)", cmp.Or(p.Prefix, "/"), p.Flavour)
	}
	p := render.NewPage(w)
	printAttention(p, st)
	for _, row := range rows {
		p.Wrapped(fmt.Sprintf("%-11s", row[0]), fmt.Sprint(row[1]))
	}
	printCatalogue(p, st.Catalogue)
	return p.Flush()
}

// printAttention prints the most important facts first.
func printAttention(p *render.Page, st status) {
	var lines []string
	switch st.Digest {
	case "wrong":
		lines = append(lines, "the digest does not match: the file is damaged or was changed")
	case "none", "skipped":
		// The files of etcdbrctl have digests, which were checked; a data directory never has one.
		if st.Compression != snapshot.Etcdbrctl && st.DataDir == nil {
			lines = append(lines, "no digest: nothing shows whether the file is whole")
		}
	}
	if st.Keys == 0 {
		lines = append(lines, "no key is live: a cluster restored from this file is empty")
	}
	for _, a := range st.Alarms {
		lines = append(lines, fmt.Sprintf("alarm %s of member %s, which a restore keeps", a.Kind, a.Member))
	}
	for _, m := range st.Members {
		if m.Learner {
			lines = append(lines, fmt.Sprintf("member %s is a learner without a vote", cmp.Or(m.Name, m.ID)))
		}
	}
	for _, line := range lines {
		p.Wrapped("attention  ", line)
	}
	if printStale(p, st.Catalogue) || len(lines) > 0 {
		p.Printf("\n")
	}
}

func fileSize(st status) string {
	if st.Compression == "" || st.Compression == snapshot.Etcdbrctl {
		return render.Size(st.Bytes)
	}
	return fmt.Sprintf("%s, %s of %s", render.Size(st.Bytes), st.Compression, render.Size(st.ExpandedBytes))
}

// fewKeys is the number of keys of a version printed for people; -o json has inspect.MaxKeys.
const fewKeys = 5

// printCatalogue prints the versions of stored objects.
func printCatalogue(p *render.Page, c *inspect.Catalogue) {
	names, versions := len("RESOURCE"), len("STORED AT")
	for _, r := range c.Resources {
		names = max(names, utf8.RuneCountInString(render.Printable(r.Resource)))
		for _, v := range r.Versions {
			versions = max(versions, utf8.RuneCountInString(render.Printable(versionOf(v))))
		}
	}
	row := func(name, version string, count any) {
		p.Printf("%-*s  %-*s  %5v\n", names, name, versions, version, count)
	}
	empty, prefix := 0, ""
	if len(c.Resources) > 0 {
		p.Printf("\n")
		row("RESOURCE", "STORED AT", "COUNT")
		if prefix = c.Resources[0].Prefix; prefix != c.Resources[len(c.Resources)-1].Prefix {
			prefix = "" // one line for each prefix
		}
	}
	for _, r := range c.Resources {
		if len(r.Versions) == 0 && r.Definition.Error == "" {
			empty++
			continue
		}
		if r.Prefix != prefix {
			prefix = r.Prefix
			p.Printf("below %s:\n", prefix)
		}
		for _, v := range r.Versions {
			row(r.Resource, versionOf(v), v.Objects)
			verdict := report.Verdict(r, v)
			if v.Standing == inspect.Unlisted || v.Standing == inspect.Stale && !r.Definition.Webhook {
				verdict = "" // printed by printStale
			}
			printNotes(p, storedAs(r, v), encryptedBy(v), verdict)
		}
		if len(r.Versions) == 0 {
			row(r.Resource, "", 0)
			printNotes(p, report.Verdict(r, inspect.Version{}))
		}
		printNotes(p, storageOf(r))
	}
	if empty > 0 {
		p.Printf("%s without objects; -o json has them too\n", phrase.Count(empty, "CustomResourceDefinition"))
	}
	if c.Other > 0 {
		p.Printf("%s in no folder of a resource\n", phrase.Count(c.Other, "key"))
	}
}

// printNotes prints notes about a row below the row.
func printNotes(p *render.Page, notes ...string) {
	for _, note := range notes {
		if note != "" {
			p.Wrapped("    ", note)
		}
	}
}

// versionOf returns the version alone: the resource has the group.
func versionOf(v inspect.Version) string {
	return v.APIVersion[strings.LastIndex(v.APIVersion, "/")+1:]
}

// storedAs names the kind of objects with another group or kind than their keys.
func storedAs(r inspect.Resource, v inspect.Version) string {
	_, group, _ := strings.Cut(r.Resource, ".")
	stored := ""
	if i := strings.LastIndex(v.APIVersion, "/"); i >= 0 {
		stored = v.APIVersion[:i]
	}
	if v.APIVersion == "" || stored == group && v.Standing != inspect.Unknown {
		return ""
	}
	return "stored as " + strings.TrimSpace(v.APIVersion+" "+v.Kind)
}

func encryptedBy(v inspect.Version) string {
	if len(v.Encrypted) == 0 {
		return ""
	}
	return "encrypted by " + report.Encrypted(v)
}

// storageOf describes the versions of a CustomResourceDefinition that differ from those of its
// objects, "" if they agree.
func storageOf(r inspect.Resource) string {
	d := r.Definition
	if d == nil || d.Error != "" || slices.Equal(d.StoredVersions, []string{d.StorageVersion}) &&
		!slices.ContainsFunc(r.Versions, func(v inspect.Version) bool { return versionOf(v) != d.StorageVersion }) {
		return ""
	}
	return fmt.Sprintf("storage version %s, stored versions %s", d.StorageVersion, strings.Join(d.StoredVersions, ","))
}

// printStale names objects and lists that break, now or with the next change of a CRD.
func printStale(p *render.Page, c *inspect.Catalogue) (found bool) {
	var lines []string
	for _, r := range c.Resources {
		lines = append(lines, report.Lists(r)...)
		for _, v := range r.Versions {
			is, have := "breaks", "has"
			if v.Objects != 1 {
				is, have = "break", "have"
			}
			switch v.Standing {
			case inspect.Stale:
				p.Wrapped("attention  ", fmt.Sprintf("%s %s when %s is removed from %s:",
					phrase.Count(v.Objects, "object"), is, v.APIVersion, r.Definition.Name))
			case inspect.Unlisted:
				const text = "%s %s %s, a version that %s does not list: no API server reads them, nor any " +
					"list of them:"
				p.Wrapped("attention  ", fmt.Sprintf(text, phrase.Count(v.Objects, "object"), have, v.APIVersion,
					r.Definition.Name))
			default:
				continue
			}
			found = true
			p.First("           ", v.Keys, fewKeys, v.Objects, fmt.Sprintf("; -o json names up to %d", inspect.MaxKeys))
		}
	}
	for _, line := range lines {
		p.Wrapped("attention  ", line)
	}
	if found = found || len(lines) > 0; found {
		p.Wrapped("next       ", "etcdshift migrate storage-versions --dry-run IN OUT")
		p.Wrapped("guide      ", "etcdshift help storage-versions.md")
	}
	return found
}
