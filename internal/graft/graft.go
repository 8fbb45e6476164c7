package graft

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Graft adds the records of an archive to a snapshot.
type Graft struct {
	Archive    *transform.File // stays open while the Graft is in use
	OnConflict decisions
	// ToPrefix replaces the storage prefix FromPrefix of the archive; "" keeps the prefixes.
	FromPrefix, ToPrefix string

	proven   bool     // the archive has a manifest, and is complete
	prefixes []string // storage prefixes of the archive
}

// Plan stages the records in the order of their revisions, then checks the result.
func (g *Graft) Plan(ctx context.Context, v *transform.View) error {
	if err := archive.Refuse(ctx, v.Reader().Snapshot()); err != nil {
		return finding.WithHint(err, "the order is: etcdshift import B ARCHIVE OUT")
	}
	return g.Archive.Snapshot().Guard(func() error {
		r := &run{
			Graft: g, ctx: ctx, view: v, byKey: map[string]*item{}, uids: map[objects.UID]string{},
			replaced: map[objects.UID]string{}, changed: map[string]bool{},
		}
		v.Make(transform.Output{Check: r.check})
		return r.plan()
	})
}

// run is one import.
type run struct {
	*Graft
	ctx      context.Context
	view     *transform.View
	from, to keys.Layouts // of the archive and of the input
	carrier  *objects.Carrier
	items    []*item
	byKey    map[string]*item
	uids     map[objects.UID]string // keys of items
	replaced map[objects.UID]string // keys of items, by the UID of the object that they replace
	below    int                    // records of the archive below FromPrefix
	outside  int                    // the others
	first    string                 // key of the first of them
	changed  map[string]bool        // keys that the run changes for the items
	section  *Imported

	types  *inspect.Types // of the input with the items
	finder *objects.Finder
}

// item is a staged record.
type item struct {
	at       []byte           // key in the output
	key      keys.Key         // of the input's layout
	replaces *transform.Entry // nil for a new key
}

func (r *run) plan() error {
	r.section = &Imported{Import: &Counts{Types: []TypeCount{}, Addresses: []string{}}}
	r.view.Report().Sections = append(r.view.Report().Sections, r.section)
	if err := cmp.Or(r.open(), r.resolveDecisions()); err != nil {
		return err
	}
	if err := stream.Each(r.Archive.Raw(r.ctx, nil), func(e inspect.Entry) error { return r.carry(&e) }); err != nil {
		return err
	}
	switch {
	case r.ToPrefix != "" && r.below == 0: // perhaps misspelled
		return fmt.Errorf("%s: %w %q", r.Archive.Snapshot().Path(), transform.ErrEmptyPrefix, r.FromPrefix)
	case r.outside > 0:
		r.view.Raise(r.first, finding.UnknownKey.Because(
			"%d records of the archive are not below %s, and are not imported", r.outside, r.FromPrefix))
	}
	r.reportUnmet()
	var err error
	if r.types, err = r.view.Types(r.ctx); err != nil {
		return err
	}
	r.finder = objects.NewFinder(r.view, r.types, r.to.Storages())
	for _, check := range []func() error{r.checkPrefixes, r.checkUIDs, r.checkNames, r.checkVolumes, r.checkServices,
		r.checkQuotas, r.checkAdmission} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// open reads the archive's layout, and names the archive in the report.
func (r *run) open() (err error) {
	s := r.Archive.Snapshot()
	info, err := s.Info(r.ctx)
	if err != nil {
		return err
	}
	r.view.Report().Archive = &info
	for _, odd := range transform.OddFile(s) {
		odd.Reason = s.Path() + ": " + odd.Reason
		r.view.Raise("", odd)
	}
	if !r.proven {
		r.view.Raise("", codeNotArchive.Because("%s has no manifest: nothing proves that it is complete", s.Path()))
	}
	if r.from, err = r.Archive.Layouts(r.ctx); err != nil {
		return err
	}
	if r.to, err = r.view.Layouts(r.ctx); err != nil {
		return err
	}
	for _, storage := range append(r.from.Storages(), r.to.Storages()...) {
		if storage.Flavour.KCP() {
			r.view.Raise(storage.Prefix+"/", codeLayout.Because(
				"it is laid out as a %s, where each logical cluster has namespaces of its own; \"etcdshift kcp "+
					"import\" takes logical clusters", storage.Flavour))
		}
	}
	r.carrier, err = objects.NewCarrier(r.ctx, r.view, r.Archive.Reader)
	return err
}

// carry stages a record of the archive.
func (r *run) carry(e *inspect.Entry) error {
	storage, inside := r.from.Of(e.Key)
	to := e.Key
	switch {
	case len(e.Key) == 0: // the record of a raised revision
		return nil
	case r.ToPrefix == "":
	case !inside || storage.Prefix != r.FromPrefix:
		if r.outside++; r.first == "" {
			r.first = string(e.Key)
		}
		return nil
	default:
		r.below++
		to = append([]byte(r.ToPrefix), e.Key[len(r.FromPrefix):]...)
	}
	if err := r.Archive.Decrypt(r.ctx, e); err != nil {
		return err
	}
	key, _, _ := r.to.Parse(to) // a key of no type has no name
	it := &item{at: bytes.Clone(to), key: key}
	here, err := r.view.Get(r.ctx, to)
	if err != nil {
		return err
	}
	if here != nil {
		if takes, err := r.meet(it, e, here); !takes || err != nil {
			return err
		}
	} else if _, _, err := r.OnConflict.decide(key); err != nil {
		return err
	}
	return r.stage(it, e, here)
}

// stage stages a record, in place of the record of the input, if any.
func (r *run) stage(it *item, e *inspect.Entry, here *transform.Entry) error {
	how, reason, err := r.carrier.Exposes(r.ctx, e, it.at, "B")
	switch {
	case err != nil:
		return err
	case e.Undecryptable != nil && !bytes.Equal(it.at, e.Key):
		r.view.Raise(string(it.at), codeEncrypted.Because("it cannot be decrypted, and under a key other than %q no "+
			"server can decrypt it: %v", e.Key, e.Undecryptable).Decided(finding.Refused))
		return nil
	case e.Undecryptable != nil:
		if !r.view.Raise(string(it.at), codeEncrypted.Because("it cannot be decrypted: %v", e.Undecryptable)) {
			return nil
		}
	case how != objects.Safe:
		found := codeExposed.Because("%s", reason)
		switch how {
		case objects.AsOthers:
			found = found.Decided(finding.Noted)
		case objects.Unreadable:
			found = found.Decided(finding.Refused)
		}
		if !r.view.Raise(string(it.at), found) {
			return nil
		}
	}
	count := r.section.of(it.key)
	if count.Created++; here != nil {
		count.Created, count.Replaced = count.Created-1, count.Replaced+1
		if err := r.view.Delete(r.ctx, it.at); err != nil { // the record below is an update
			return err
		}
		it.replaces = here
		r.replaced[objects.ToUID(uidOf(here))] = string(it.at)
	}
	if r.carrier.TTL(e.Lease) > 0 {
		r.section.Import.Leased++
	}
	r.items = append(r.items, it)
	r.byKey[string(it.at)] = it
	if uid := uidOf(e); uid != "" {
		r.uids[objects.ToUID(uid)] = string(it.at)
		delete(r.replaced, objects.ToUID(uid)) // the same object
	}
	if e.Undecryptable != nil || it.key.Name == "" {
		return r.carrier.CreateStored(r.ctx, e, it.at)
	}
	return r.carrier.Create(r.ctx, e, it.at, e.Value)
}

// uidOf returns the UID of an object, "" if unknown.
func uidOf(e *inspect.Entry) string {
	if meta, err := e.Meta(); err == nil && e.Undecryptable == nil {
		return meta.UID
	}
	return ""
}
