package remove

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// PurgeSpec is the command "purge".
var PurgeSpec = transform.Spec{
	Name:  "purge",
	Usage: "delete the part of a snapshot that extract selects",
	Examples: `etcdshift purge a.db a-after.db -n shop --archive shop.archive
etcdshift purge a.db a-after.db deploy/web svc/web -n shop
etcdshift purge both.db rest.db --prefix /tenant-a --archive a.archive`,
	Text: `Deletes the records that "extract" selects with the same arguments. Needed objects and all other records stay
as they are, byte for byte. "import" adds the archive of "extract" to another snapshot.

-n NS alone selects the Namespace with all its objects. TYPE and TYPE/NAME select objects as in kubectl, -l objects
with labels. --prefix P alone selects everything below a storage prefix, for one etcd with several API servers.

With --archive FILE the run is refused unless FILE is undamaged and has every deleted record as IN has it.

The report lists each deleted object, each object with finalizers (they do not run), and the objects that the garbage
collector will delete after the restore because their owners are deleted. An API server frees the IP addresses and
node ports of deleted Services itself, node ports about six minutes after its start.

The deletions are new revisions. The old records of the deleted objects, Secrets too, stay in the file until etcd is
compacted, and in free pages until etcd is defragmented. --scrub writes a file without any record of these objects.`,
	Rest:  "[TYPE[/NAME]...]",
	Alone: true,
	Codes: purgeCodes(),
	Settles: map[string]string{codeStorageLost.Name: "set persistentVolumeReclaimPolicy of the volumes to Retain: " +
		"etcdshift patch"},
	Sections: []transform.Section{&Deletion{}},
	Flags: append(objects.PartFlags(),
		transform.Flag{Name: "archive",
			Usage: "refuse the run unless the archive `FILE` has every record that is deleted"},
		scrubFlag()),
	New: newPurge,
}

func newPurge(ctx context.Context, a *transform.Args) (transform.Transform, error) {
	part, err := objects.ChoosePart(a, a.Rest)
	if err != nil {
		return nil, err
	}
	p := &Purge{part: part, scrub: a.Bool("scrub")}
	if !a.IsSet("archive") {
		return p, nil
	}
	f, err := a.Open(ctx, a.String("archive"), "encryption-config")
	if err != nil {
		return nil, err
	}
	p.held = &held{file: f.Snapshot()}
	return p, f.Read(ctx, func() error {
		p.held.manifest, err = archive.OpenPart(ctx, f.Snapshot())
		return err
	})
}

func purgeCodes() []*finding.Code {
	return slices.Concat(objects.PartCodes(), objects.FreedCodes(), []*finding.Code{
		codeNeeded, codeLastAdmin, codeObjectsLeft, codeNamespaceLeft, codeNotHeld, transform.CodeFinalizers,
		codeUnread, codeOwnersUnread, codeReturns, codeStorageLost,
	})
}

var (
	codeNamespaceLeft = finding.Lookup("namespace-has-objects")
	codeNotHeld       = finding.Lookup("not-in-archive")
	codeStorageLost   = finding.Lookup("storage-released") // another snapshot may have the volume now
)

// Purge deletes the records of a part.
type Purge struct {
	part  *objects.Part
	scrub bool
	held  *held // nil without --archive
}

// Plan stages the deletions.
func (p *Purge) Plan(ctx context.Context, v *transform.View) error {
	if err := archive.Refuse(ctx, v.Reader().Snapshot()); err != nil {
		return err
	}
	r, err := newRun(ctx, v, p.scrub)
	if err != nil {
		return err
	}
	r.storage = codeStorageLost
	held := func() error { return p.held.check(r) }
	if p.part.Whole() { // nothing remains that the deletion could affect
		return r.do(func() error { return r.deletePart(p.part, r.stage) }, r.clean, held)
	}
	return r.do(func() error { return r.deletePart(p.part, r.deleteOne) }, r.checkContents, r.clean, r.checkAdmins,
		r.strand, r.collect, r.checkClaims, func() error { return r.freed.Report(ctx) }, held)
}

// deletePart deletes the records of a part.
func (r *run) deletePart(
	part *objects.Part, del func(e *transform.Entry, key keys.Key, chosen bool) error,
) error {
	selected, err := part.Find(r.ctx, r.view, r.types)
	if err != nil {
		return err
	}
	return stream.Each(r.view.Live(r.ctx, nil), func(e *transform.Entry) error {
		if !selected.Has(e.Key) {
			return nil
		}
		key, err := e.ParseKey()
		if err != nil { // of a whole storage prefix
			key = keys.Key{}
		}
		return del(e, key, true)
	})
}

// checkContents reports deleted namespaces and definitions whose objects stay.
func (r *run) checkContents() error {
	if len(r.spaces) == 0 && len(r.definitions) == 0 {
		return nil
	}
	err := stream.Each(r.view.Live(r.ctx, nil), func(e *transform.Entry) error {
		key, err := e.ParseKey()
		if err != nil {
			return nil // reported by Part.Find if the key names a namespace of the part
		}
		if space := r.spaces[place{key.Prefix, key.Namespace}]; space != nil {
			space.objects++
		}
		if definition := r.definitions[folder{key.Prefix, key.Resource}]; definition != nil {
			definition.objects++
		}
		return nil
	})
	for _, space := range nonempty(r.spaces) {
		r.view.Raise(space.key,
			codeNamespaceLeft.Because("%s in it would stay", phrase.Count(space.objects, "object")))
	}
	for _, d := range nonempty(r.definitions) {
		r.view.Raise(d.key, codeObjectsLeft.Because("%s of it would stay", phrase.Count(d.objects, "object")))
	}
	return err
}

// held is the archive of --archive.
type held struct {
	file     *snapshot.Snapshot
	manifest *archive.PartManifest
}

// check reports the first deleted record that the archive lacks, or has otherwise, and the first
// record of the archive that is not deleted. A needed object in the archive stays here. If the
// archive is from the input, all other records of the output are compared with the manifest.
func (h *held) check(r *run) error {
	if h == nil {
		return nil
	}
	lacking, others, err := h.compare(r)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		r.view.Raise(lacking[0], codeNotHeld.Because("deleted records that are not in %s with the same value and "+
			"revision: %d; this is the first", h.file.Path(), len(lacking)))
	}
	if len(others) > 0 {
		r.view.Raise(others[0], codeNotHeld.Because("records of %s that this run does not delete: %d; "+
			"this is the first", h.file.Path(), len(others)))
	}
	in, err := r.view.Reader().Snapshot().Info(r.ctx)
	if err == nil && in.SHA256 == h.manifest.Origin.SHA256 {
		r.view.Make(transform.Output{Check: h.checkRest})
	}
	return err
}

// compare returns the keys of deleted records that the archive lacks or has otherwise, and of
// records of the archive that are neither deleted nor needed.
func (h *held) compare(r *run) (lacking, others []string, err error) {
	needed, same := map[string]bool{}, map[string]bool{}
	for _, n := range h.manifest.Needs {
		if n.Is == archive.Taken {
			needed[n.Key] = true
		}
	}
	src := r.view.Reader().Snapshot()
	err = stream.Each(h.file.Live(r.ctx, nil), func(rec *snapshot.Record) error {
		here, err := src.Get(r.ctx, rec.Key)
		switch {
		case err != nil:
			return err
		case r.deleted[string(rec.Key)]:
			same[string(rec.Key)] = here != nil && bytes.Equal(here.Value, rec.Value) &&
				here.ModRevision == rec.ModRevision && here.CreateRevision == rec.CreateRevision &&
				here.Version == rec.Version && here.Lease == rec.Lease
		case !needed[archive.Text(string(rec.Key))]:
			others = append(others, string(rec.Key))
		}
		return nil
	})
	for key := range r.deleted {
		if !same[key] {
			lacking = append(lacking, key)
		}
	}
	slices.Sort(lacking)
	return lacking, others, err
}

// checkRest compares the live records of the output with the sum of the rest in the manifest.
func (h *held) checkRest(ctx context.Context, out *inspect.Reader) error {
	rest := archive.NewRest()
	err := stream.Each(out.Snapshot().Live(ctx, nil), func(rec *snapshot.Record) error {
		rest.Add(rec)
		return nil
	})
	if is := rest.Sum(); err == nil && is != h.manifest.Origin.Rest {
		err = fmt.Errorf("%w: the other records are not those of the manifest of %s", snapshot.ErrVerify,
			h.file.Path())
	}
	return err
}
