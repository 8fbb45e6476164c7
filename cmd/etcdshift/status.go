package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/report"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "what this file is, is it whole",
		ArgsUsage: "SNAPSHOT",
		Description: `etcdshift status before.db
etcdshift status -o json before.db`,
		UsageText: `Reads a file of "etcdctl snapshot save" or a raw member/snap/db, also compressed with gzip, zstd or zip, checks its digest and
structure and prints a summary. "sha256" is the sum of sha256sum, "hash" of "etcdutl snapshot status", "hashkv" of "etcdctl endpoint
hashkv". They differ between two saves of the same objects; "content" does not: it covers live keys and values only.

The second table shows the versions at which objects are really stored, regardless of the API and status.storedVersions. Objects
follow that break once their version is removed from a CustomResourceDefinition, or that are broken already.

Exit status: 0 read, 1 unreadable or damaged, 2 usage, 130 interrupted.`,
		Flags:  readFlags("decrypt values with", textOrJSON()),
		Action: taking(runStatus),
	}
}

// status is the document of status -o json.
type status struct {
	documentHead
	report.Status
	Archive *archive.Manifest `json:"archive,omitempty"` // of a file that "cluster extract" made
}

func runStatus(c *cli.Context, args []string) error {
	return readSnapshots(c, args, func(files []*opened) error {
		st, err := readStatus(c, files[0])
		if err != nil {
			return err
		}
		// A bad manifest of an archive is an error beside a complete status.
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
	defer progress(c).Phase("reading " + o.Snapshot().Path()).Of(part(2, 2, o)).End()
	if err := o.Snapshot().FreeList(); err != nil {
		warn(c, err.Error())
	}
	read, err := report.ReadStatus(c.Context, o.Reader)
	if err != nil {
		return st, err
	}
	st.Status = *read
	st.documentHead, err = o.document(c.Context, "Status")
	return st, err
}

func printStatus(w io.Writer, st status) error {
	kind := "etcdctl snapshot"
	if st.Raw {
		kind = "database file (member/snap/db)"
	}
	rows := [][]any{
		{"file", st.Path}, {"kind", kind}, {"size", fileSize(st)}, {"sha256", st.SHA256}, {"digest", st.Digest}, {"hash", st.Hash},
		{"hashkv", st.HashKV}, {"content", st.ContentHash}, {"etcd", st.EtcdVersion},
	}
	if st.Archive != nil { // no etcd wrote it
		rows[1][1] = archiveText(st.Archive)
		rows = rows[:len(rows)-1]
	}
	add := func(name, format string, args ...any) { rows = append(rows, []any{name, fmt.Sprintf(format, args...)}) }
	add("revision", "%s", report.CurrentRevision(&st.Status.Status))
	add("compacted", "%s", report.Compacted(&st.Status.Status))
	if st.Keys == 0 {
		add("keys", "none is live: a cluster restored from this file is empty")
	} else {
		add("keys", "%d", st.Keys)
	}
	add("records", "%d (%s)", st.Records, render.Plural(st.Tombstones, "tombstone"))
	add("pages", "%d of %d bytes (%d free)", st.Pages, st.PageSize, st.FreePages)
	add("leases", "%d, held by %s", st.Leases, render.Plural(st.LeasedKeys, "key"))
	add("auth", "%s", report.Auth(&st.Status.Status))
	if len(st.Alarms) == 0 {
		add("alarms", "none")
	}
	for _, a := range st.Alarms {
		add("alarm", "%s of member %s, which a restore keeps", a.Kind, a.Member)
	}
	for _, m := range st.Members {
		learner := ""
		if m.Learner {
			learner = ", a learner without a vote"
		}
		add("member", "%s (%s) %s%s", m.Name, m.ID, strings.Join(m.PeerURLs, ","), learner)
	}
	for _, p := range st.Prefixes {
		add("prefix", "%s (%s)", cmp.Or(p.Prefix, "/"), p.Flavour)
	}
	p := render.NewPage(w)
	p.Table(nil, rows...)
	printCatalogue(p, st.Catalogue)
	return p.Flush()
}

func fileSize(st status) string {
	if st.Compression == "" {
		return render.Size(st.Bytes)
	}
	return fmt.Sprintf("%s, %s of %s", render.Size(st.Bytes), st.Compression, render.Size(st.ExpandedBytes))
}

// fewKeys is the number of keys of a version printed for people; -o json has inspect.MaxKeys.
const fewKeys = 5

// printCatalogue prints the versions of stored objects, then objects and lists that need attention.
func printCatalogue(p *render.Page, c *inspect.Catalogue) {
	hasKeys := slices.ContainsFunc(c.Resources, func(r inspect.Resource) bool {
		return slices.ContainsFunc(r.Versions, func(v inspect.Version) bool { return len(v.Encrypted) > 0 })
	})
	var rows [][]any
	row := func(cells ...any) {
		if !hasKeys {
			cells = slices.Delete(cells, 3, 4)
		}
		rows = append(rows, cells)
	}
	empty := 0
	row("RESOURCE", "STORED AT", "OBJECTS", "ENCRYPTED", "STORAGE VERSION", "STORED VERSIONS", "")
	for _, r := range c.Resources {
		storage, list := "", ""
		if d := r.Definition; d != nil {
			storage, list = d.StorageVersion, strings.Join(d.StoredVersions, ",")
		}
		for _, v := range r.Versions {
			row(resourceName(c, r), storedAt(r, v), v.Objects, report.Encrypted(v), storage, list, report.Verdict(r, v))
		}
		switch {
		case len(r.Versions) > 0:
		case r.Definition.Error == "":
			empty++
		default:
			row(resourceName(c, r), "", 0, "", storage, list, report.Verdict(r, inspect.Version{}))
		}
	}
	if len(rows) > 1 {
		p.Printf("\n")
		p.Table(rows[0], rows[1:]...)
	}
	if empty > 0 {
		p.Printf("%s without objects; -o json has them too\n", render.Plural(empty, "CustomResourceDefinition"))
	}
	if c.Other > 0 {
		p.Printf("%s in no folder of a resource\n", render.Plural(c.Other, "key"))
	}
	if printStale(p, c) {
		p.Printf("\n\"etcdshift migrate storage-versions --dry-run IN OUT\" tells what it would make of them; docs/storage-versions.md is the guide\n")
	}
}

// resourceName returns the resource, with its prefix where the file has several.
func resourceName(c *inspect.Catalogue, r inspect.Resource) string {
	if r.Prefix == c.Resources[0].Prefix && r.Prefix == c.Resources[len(c.Resources)-1].Prefix {
		return r.Resource
	}
	return r.Prefix + "/ " + r.Resource
}

func storedAt(r inspect.Resource, v inspect.Version) string {
	if r.Definition != nil {
		return v.APIVersion
	}
	return strings.TrimSpace(v.APIVersion + " " + v.Kind)
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
				p.Printf("\n%s %s when %s is removed from %s:\n", render.Plural(v.Objects, "object"), is, v.APIVersion, r.Definition.Name)
			case inspect.Unlisted:
				p.Printf("\n%s %s %s, a version that %s does not list: no API server reads them, nor any list of them:\n",
					render.Plural(v.Objects, "object"), have, v.APIVersion, r.Definition.Name)
			default:
				continue
			}
			found = true
			p.First("   ", v.Keys, fewKeys, v.Objects, fmt.Sprintf("; -o json names up to %d", inspect.MaxKeys))
		}
	}
	if len(lines) > 0 {
		p.Printf("\n")
	}
	p.Lines("", lines)
	return found || len(lines) > 0
}
