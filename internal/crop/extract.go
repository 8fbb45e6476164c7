package crop

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// ExtractSpec is the command "extract".
var ExtractSpec = transform.Spec{
	Name:  "extract",
	Usage: "write a part of a snapshot into an archive",
	Examples: `etcdshift extract a.db shop.archive -n shop --needed
etcdshift extract a.db web.archive deploy/web svc/web -n shop
etcdshift extract a.db tenant.archive --prefix /tenant-a
etcdshift verify shop.archive`,
	Text: `Writes the selected records as they are stored: keys, values, UIDs, revisions and leases. "crop" selects the
same records with the same arguments. A manifest lists the selection, the content and the needed objects, with digests;
docs/reference/formats.md explains it.

-n NS alone selects the Namespace with all its objects. TYPE and TYPE/NAME select objects as in kubectl, -l objects
with labels. --prefix P alone selects everything below a storage prefix, for one etcd with several API servers.

The report lists the needed objects and owners that are not selected. --needed adds them to ARCHIVE. Otherwise the
other snapshot must have them: import checks this.

"etcdshift import" adds the archive to another snapshot, "etcdshift purge" deletes the selected records from the
origin. The archive is an etcd snapshot; status, get, keys, sizes, verify and other commands read it. It has the
Secrets as they are stored.`,
	ArgsText: "IN ARCHIVE [TYPE[/NAME]...]",
	Rest:     "[TYPE[/NAME]...]",
	Builds:   true,
	Codes:    append(objects.PartCodes(), codeOwnersUnread),
	Sections: []transform.Section{&Needs{}},
	Appendix: &Part{},

	NotForRestore: true,
	Flags:         flags(),
	New: func(_ context.Context, a *transform.Args) (transform.Transform, error) {
		part, err := objects.ChoosePart(a, a.Rest)
		if err != nil {
			return nil, err
		}
		return &Extract{part: part, needed: a.Bool("needed"), out: a.Out, selection: archive.Selection{
			Arguments: texts(a.Rest), Namespaces: texts(part.Namespaces()),
			Selector: archive.Text(a.String("selector")), Prefixes: texts(a.Prefixes), Needed: a.Bool("needed"),
		}}, nil
	},
}

// texts returns words as texts of a manifest.
func texts(words []string) []string { return append([]string{}, stream.Mapped(words, archive.Text)...) }

// Extract writes a part of a snapshot into an archive.
type Extract struct {
	part      *objects.Part
	needed    bool
	out       string // path of the archive, for the steps of the report
	selection archive.Selection
}

// Plan finds the part, and builds the archive. An owner outside is no problem: the snapshot that
// takes the archive may have it.
func (x *Extract) Plan(ctx context.Context, v *transform.View) error {
	v.Make(transform.Output{Anew: true, NotForRestore: true})
	if err := archive.Refuse(ctx, v.Reader().Snapshot()); err != nil { // the manifest would name it as the origin
		return err
	}
	r, err := find(ctx, v, x.part, x.needed, func([]byte, encoding.OwnerReference) {})
	if r == nil || err != nil {
		return err
	}
	m := &manifest{PartManifest: archive.PartManifest{APIVersion: archive.APIVersion, Kind: archive.KindPart,
		Format: archive.Format, Selection: x.selection}}
	content, err := r.content(m)
	if err != nil {
		return err
	}
	x.steps(v, &m.PartManifest)
	v.Make(transform.Output{Build: content, Check: func(ctx context.Context, out *inspect.Reader) error {
		is, err := archive.OpenPart(ctx, out.Snapshot())
		if err == nil && !reflect.DeepEqual(is, &m.PartManifest) {
			err = fmt.Errorf("%w: its manifest is not the one that was written", snapshot.ErrVerify)
		}
		return err
	}})
	return nil
}

// manifest is a manifest under construction.
type manifest struct {
	archive.PartManifest
	layouts  keys.Layouts
	prefixes map[string]bool // of the records
	tally    *archive.Tally
	rest     *archive.Rest
}

// begin begins the counts; leases are the TTLs of all leases.
func (m *manifest) begin(leases map[int64]int64, layouts keys.Layouts) {
	var prefixes []string
	for _, s := range layouts.Storages() {
		prefixes = append(prefixes, s.Prefix)
	}
	m.layouts, m.prefixes = layouts, map[string]bool{}
	m.tally, m.rest = archive.NewTally(prefixes, leases), archive.NewRest()
}

// add counts the next live record: is it in the archive, and only because of a need?
func (m *manifest) add(rec *snapshot.Record, is, needed bool) {
	if is {
		storage, _ := m.layouts.Of(rec.Key)
		m.prefixes[storage.Prefix] = true
		m.tally.Add(rec)
	}
	if !is || needed {
		m.rest.Add(rec)
	}
}

// finish completes the manifest.
func (m *manifest) finish(in snapshot.FileInfo, types []archive.TypeCount, needs []archive.Needed) {
	m.Origin = archive.PartOrigin{Prefixes: slices.AppendSeq([]string{}, maps.Keys(m.prefixes)), SHA256: in.SHA256,
		Revision: in.Revision, Rest: m.rest.Sum()}
	slices.Sort(m.Origin.Prefixes)
	m.Counts, m.Needs, m.Types = m.tally.Counts(), needs, slices.Clone(types)
	for i := range m.Types {
		m.Types[i].Type = archive.Text(m.Types[i].Type)
	}
	for i := range m.Needs {
		m.Needs[i].Key, m.Needs[i].By = archive.Text(m.Needs[i].Key), archive.Text(m.Needs[i].By)
	}
}

// steps adds what to do with the archive.
func (x *Extract) steps(v *transform.View, m *archive.PartManifest) {
	r, out := v.Report(), transform.ShellWord(x.out)
	r.AddStep("store the archive as safely as the snapshot: it has the Secrets of the part, as they are stored")
	for _, e := range m.Encryption {
		r.AddStep("%s encrypted by %s: give this key to \"etcdshift import\" with "+
			"--archive-encryption-config", phrase.Count(e.Keys, "value"), e.Name)
	}
	r.AddStep("add it to another snapshot: etcdshift import OTHER %s OTHER-OUT", out)
	r.AddStep("delete the selected records here: etcdshift purge %s IN-OUT%s --archive %s",
		transform.ShellWord(r.Input.Path), arguments(m.Selection), out)
}

// arguments returns the arguments of a selection on a command line.
func arguments(s archive.Selection) (line string) {
	flag := func(name string, values ...string) {
		for _, value := range values {
			line += " " + name + " " + transform.ShellWord(value)
		}
	}
	for _, word := range s.Arguments {
		line += " " + transform.ShellWord(word)
	}
	flag("-n", s.Namespaces...)
	if s.Selector != "" {
		flag("-l", s.Selector)
	}
	if len(s.Namespaces) == 0 && (s.Selector != "" || len(s.Arguments) > 0) {
		line += " -A"
	}
	flag("--prefix", s.Prefixes...)
	return line
}
