package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

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
	snapshot.Status
	HashKV      string `json:"hashKV"`      // as "etcdctl endpoint hashkv" prints it of a server that starts on the file
	ContentHash string `json:"contentHash"` // of live keys and values alone, hex
	*inspect.Catalogue
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
	defer progress(c).Phase("reading " + o.Snapshot().Path()).End()
	if err := o.Snapshot().FreeList(); err != nil {
		warn(c, err.Error())
	}
	var hash uint32
	var content [sha256.Size]byte
	var errs [4]error
	var others sync.WaitGroup
	others.Go(func() { st.Status, errs[0] = o.Snapshot().Status(c.Context) })
	others.Go(func() { hash, errs[1] = o.Snapshot().HashKV(c.Context) })
	others.Go(func() { content, errs[2] = o.Snapshot().ContentHash(c.Context) })
	errs[3] = o.Snapshot().Guard(func() (err error) {
		st.Catalogue, err = inspect.Survey(c.Context, o.Reader)
		return err
	})
	others.Wait()
	if errors.Is(errs[0], snapshot.ErrDigest) { // the document says so
		errs[0] = nil
	}
	if err := cmp.Or(errs[:]...); err != nil {
		return st, err
	}
	st.HashKV, st.ContentHash = fmt.Sprint(hash), hex.EncodeToString(content[:])
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
	add("revision", "%s", currentRevision(st))
	add("compacted", "%s", compacted(st))
	add("keys", "%d", st.Keys)
	add("records", "%d (%s)", st.Records, render.Plural(st.Tombstones, "tombstone"))
	add("pages", "%d of %d bytes (%d free)", st.Pages, st.PageSize, st.FreePages)
	add("leases", "%d, held by %s", st.Leases, render.Plural(st.LeasedKeys, "key"))
	add("auth", "%s", auth(st))
	if len(st.Alarms) == 0 {
		add("alarms", "none")
	}
	for _, a := range st.Alarms {
		add("alarm", "%s of member %s, which a restore keeps", a.Kind, a.Member)
	}
	for _, m := range st.Members {
		add("member", "%s (%s) %s", m.Name, m.ID, strings.Join(m.PeerURLs, ","))
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

// currentRevision names a revision that etcdutl gets wrong if a compaction removed the last record.
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
			row(resourceName(c, r), storedAt(r, v), v.Objects, encrypted(v), storage, list, verdict(r, v))
		}
		switch {
		case len(r.Versions) > 0:
		case r.Definition.Error == "":
			empty++
		default:
			row(resourceName(c, r), "", 0, "", storage, list, verdict(r, inspect.Version{}))
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

// encrypted names the keys of encrypted objects, with counts where there are several.
func encrypted(v inspect.Version) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v.Encrypted)) {
		if v.Encrypted[name] == v.Objects {
			return name
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, v.Encrypted[name]))
	}
	return strings.Join(parts, ", ")
}

// verdict returns what a version means for the cluster; "" where all is well.
func verdict(r inspect.Resource, v inspect.Version) string {
	switch {
	case r.Definition != nil && r.Definition.Error != "":
		return "its CustomResourceDefinition cannot be read"
	case v.Standing == inspect.Stale && r.Definition.Webhook:
		return "not at the storage version; read through the conversion webhook"
	case v.Standing == inspect.Stale:
		return "not at the storage version"
	case v.Standing == inspect.Unlisted:
		return "broken: not a version of the CustomResourceDefinition"
	case v.Standing == inspect.Unknown && len(v.Encrypted) > 0:
		return "encrypted: cannot be told"
	case v.Standing == inspect.Unknown && r.Definition == nil && v.Kind != "":
		return "broken: not of the kind that its key says"
	case v.Standing == inspect.Unknown:
		return "cannot be told"
	case r.Orphans:
		return "no CustomResourceDefinition"
	}
	return ""
}

// lists returns where status.storedVersions does not match the objects.
func lists(r inspect.Resource) (lines []string) {
	if r.Definition == nil || r.Definition.Error != "" {
		return nil
	}
	found := map[string]int{r.Definition.StorageVersion: 0}
	for _, v := range r.Versions {
		if v.Standing == inspect.Unknown { // it may be at any
			return nil
		}
		found[v.APIVersion[strings.LastIndex(v.APIVersion, "/")+1:]] = v.Objects
	}
	for _, version := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(r.Definition.StoredVersions, version) {
			lines = append(lines, fmt.Sprintf("storedVersions of %s lacks %s: %s there", r.Definition.Name, version, render.Plural(found[version], "object")))
		}
	}
	for _, version := range r.Definition.StoredVersions {
		if _, is := found[version]; !is {
			lines = append(lines, fmt.Sprintf("storedVersions of %s has %s, at which nothing is stored", r.Definition.Name, version))
		}
	}
	return lines
}

// printStale names objects and lists that break, now or with the next change of a CRD.
func printStale(p *render.Page, c *inspect.Catalogue) (found bool) {
	var lines []string
	for _, r := range c.Resources {
		lines = append(lines, lists(r)...)
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
