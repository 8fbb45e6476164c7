package move

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// copies holds the copies of the logical clusters in one file with caches, by their key on the
// destination.
type copies struct {
	*checker
	in  *output
	all map[string]*copied
}

// copied is one copy: its record from the origin and its record from the destination.
type copied struct {
	cluster string
	was     *snapshot.Record // the last value from the origin; nil if unknown
	gone    int64            // revision at which the origin's copy was deleted; 0 for none in the file
	left    bool             // the origin's copy is live
	is      *snapshot.Record // the destination's copy; nil for none
	prior   *snapshot.Record // the destination's copy in the input of the purge
}

// checkCopies compares the copies from the destination with the copies from the origin, using the
// input of the purge or the history, and all other records of a cache server with the input.
func (c *checker) checkCopies() error {
	exporters := c.checkExported()
	if c.From == "" || c.To == "" {
		return nil // checkStale reports any copies
	}
	for _, f := range withCaches(c.outputs) {
		p := copies{c, f, map[string]*copied{}}
		if err := p.check(exporters); err != nil {
			return err
		}
	}
	for _, f := range c.outputs[2:] {
		if f.before == nil {
			c.note("%s: only copies of moved logical clusters were checked; --cache-before FILE compares all "+
				"other records", f.path)
			continue
		}
		p := copies{c, f, map[string]*copied{}}
		skip := func(key []byte) bool {
			one, _ := p.at(key)
			return one != nil
		}
		if err := c.compareRecords(codeCacheTouched, f, skip, nil); err != nil {
			return err
		}
		c.compareLeases(codeCacheTouched, f)
	}
	return nil
}

// checkExported finds APIExports without a copy in any cache: a shard that starts without a copy
// breaks the permission claims of all tenants. checkExported returns the logical clusters with
// exports.
func (c *checker) checkExported() map[string]bool {
	type export struct{ cluster, name string }
	with, has, exporters := withCaches(c.outputs), map[export]bool{}, map[string]bool{}
	for _, f := range with {
		for _, copied := range f.Copies() {
			for _, name := range copied.Exports {
				has[export{copied.Cluster, name}] = true
			}
		}
	}
	for stored, r := range c.archive.sorted() {
		k := r.key
		if k.Resource != kcp.ExportType || !k.Custom {
			continue
		}
		exporters[k.Cluster] = true
		switch {
		case has[export{k.Cluster, k.Name}]:
		case len(with) == 0:
			c.destination.unchecked(QuestionLost, c.destination.shard.Prefix+stored,
				"no cache was given (--cache FILE): whether a cache has a copy of APIExport %q of %q is not known, "+
					"and other tenants need it", k.Name, k.Cluster)
		default:
			missing := "" // key of the missing copy, if the destination's name is known
			if k.Shard = c.To; c.To != "" {
				missing = string((keys.KCPCache{Prefix: with[0].Caches[0].Prefix}).Format(k))
			}
			with[0].found(codeCopyLost, missing, "no cache has a copy of APIExport %q of %q: "+
				"a shard that starts then removes the labels of its permission claims from the objects of all tenants",
				k.Name, k.Cluster)
		}
	}
	return exporters
}

// at returns the copy of a key, nil for a key that does not move, and whether the key is the
// destination's.
func (c *copies) at(stored []byte) (one *copied, arrived bool) {
	k, layout, err := c.in.Layouts.Parse(stored)
	if err != nil || k.Shard == "" || !c.archive.moved[k.Cluster] || k.Shard != c.From && k.Shard != c.To {
		return nil, false
	}
	arrived, k.Shard = k.Shard == c.To, c.To
	to := string(layout.Format(k))
	if c.all[to] == nil {
		c.all[to] = &copied{cluster: strings.Clone(k.Cluster)}
	}
	return c.all[to], arrived
}

// read reads the history of the file, and the copies in the input of the purge.
func (c *copies) read() error {
	err := stream.Each(c.in.Snapshot().Scan(c.ctx), func(rec snapshot.Scanned) error {
		one, arrived := c.at(rec.Key)
		kept := *rec.Record // a copy: the next record reuses rec
		switch {
		case one == nil:
		case arrived && rec.Live:
			one.is = &kept
		case arrived:
		case rec.Tombstone:
			one.gone = rec.Revision.Main
		default:
			one.was, one.gone, one.left = &kept, 0, rec.Live
		}
		return nil
	})
	if err != nil || c.in.before == nil {
		return err
	}
	for _, one := range c.all {
		one.was = nil
	}
	return stream.Each(c.in.before.Snapshot().Live(c.ctx, nil), func(rec *snapshot.Record) error {
		kept := *rec
		if one, arrived := c.at(rec.Key); one != nil && arrived {
			one.prior = &kept
		} else if one != nil {
			one.was = &kept
		}
		return nil
	})
}

// began returns the revision at which the copies of each logical cluster began to move: a purge
// writes all copies of the destination before it deletes the origin's.
func (c *copies) began() map[string]int64 {
	began := map[string]int64{}
	for _, one := range c.all {
		if one.was == nil || one.is == nil || one.left || c.in.before == nil && one.is.CreateRevision > one.gone {
			continue
		}
		if at, ok := began[one.cluster]; !ok || one.is.CreateRevision < at {
			began[one.cluster] = one.is.CreateRevision
		}
	}
	return began
}

func (c *copies) check(exporters map[string]bool) error {
	if err := c.read(); err != nil {
		return err
	}
	began, before := c.began(), c.in.before != nil
	for _, to := range slices.Sorted(maps.Keys(c.all)) {
		one := c.all[to]
		since, moves := began[one.cluster]
		switch {
		case one.left: // checkStale reports the copy
		case one.is == nil && one.prior != nil:
			c.in.found(codeCopyLost, to, "shard %q had a copy of this object before the move, and does not have it",
				c.To)
		case one.is == nil && one.was == nil:
		case one.is == nil && (before && (moves || exporters[one.cluster]) || moves && one.gone > since):
			c.in.found(codeCopyLost, to, "shard %q wrote a copy of this object, and %q does not have it", c.From, c.To)
		case one.is == nil: // deleted before, or of a cluster without exports, whose copies kcp recreates
		case one.prior != nil && equalRecords(one.prior, one.is):
			c.note("%s: shard %q had %s before the move, and it stayed", c.in.path, c.To, to)
		case one.was == nil && before:
			c.in.found(codeCopyChanged, to, "shard %q did not write a copy of this object", c.From)
		case one.was == nil:
			c.in.unchecked(QuestionLost, to, "the file does not tell what shard %q wrote of it; the input of the "+
				"purge does (--cache-before, --origin, --destination)", c.From)
		default:
			if err := checked(c.compare(to, one)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare finds differences in a copy other than its key and shard annotation.
func (c *copies) compare(to string, one *copied) error {
	c.checked[QuestionLost]++
	if isEncrypted(one.was.Value) && !isEncrypted(one.is.Value) {
		c.in.found(codeInTheClear, to, "it was encrypted at rest under shard %q, and is not any more", c.From)
		return nil
	}
	was, err := c.decrypt(QuestionLost, c.in.file, one.was.Key, one.was.Value)
	if err != nil {
		return err
	}
	is, err := c.decrypt(QuestionLost, c.in.file, one.is.Key, one.is.Value)
	if err != nil {
		return err
	}
	want, err := copyFor(was, c.To)
	switch {
	case err != nil || !bytes.Equal(want, is):
		c.in.found(codeCopyChanged, to, "more of it than its key and %s is not what shard %q wrote",
			kcp.AnnotationCopied, c.From)
	case one.was.Lease != one.is.Lease:
		c.in.found(codeCopyChanged, to, "it is attached to lease %x, and was to %x", uint64(one.is.Lease),
			uint64(one.was.Lease))
	}
	return nil
}

// checkRests compares all other records with the given inputs of the commands.
func (c *checker) checkRests() error {
	if c.destination.before == nil {
		c.note("%s: only records written since the import were checked; --destination FILE compares "+
			"all other records and leases", c.destination.path)
	} else if err := c.compareDestination(); err != nil {
		return err
	}
	if c.origin.before == nil {
		c.note("leases of others in %s were compared by their ids, and not by their TTLs; --origin FILE compares both",
			c.origin.path)
	}
	c.compareLeases(codeOriginTouched, c.origin)
	c.compareLeases(codeDestinationTouched, c.destination)
	return nil
}

// compareDestination compares all records from before the import.
func (c *checker) compareDestination() error {
	skip := func(stored []byte) bool {
		key, _, err := c.destination.Layouts.Parse(stored)
		// Copies may be removed from a cache in the shard's own etcd, or move there: checkCopies
		// compares them.
		copied := key.Shard != "" && (c.isStale(key.Shard, key.Cluster) || c.isArrivedCopy(key))
		return err == nil && (copied || c.arrived(key))
	}
	return c.compareRecords(codeDestinationTouched, c.destination, skip, definitions{c}.importChanges)
}

// importChanges checks another record, and reports whether an import may change or create the
// record.
func (c definitions) importChanges(was, now *snapshot.Record) (allowed bool, err error) {
	key, _, err := c.destination.Layouts.Parse(now.Key)
	switch {
	case err != nil || key.Shard != "":
		return false, nil
	case was != nil && c.archive.isWorkspace(key): // the parent may be below another prefix of the file
		return true, c.compareWorkspace(c.destination.before, was.Value, now)
	case key.Prefix != c.destination.shard.Prefix || !c.isDefinition(now.Key, key):
		return false, nil
	case was == nil: // checkDefinitions has checked the definition
		return true, nil
	}
	return c.importedDefinition(was, now)
}

func (c *checker) compareLeases(code *finding.Code, out *output) {
	if out.before == nil {
		return
	}
	was, is := out.before.leases, out.leases
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if is[id] != was[id] {
			out.found(code, "", "lease %x has a TTL of %d s (0: it is gone), and had %d s", uint64(id), is[id], was[id])
		}
	}
}

// compareRecords finds every live record that differs between a file and the input of its command,
// except skipped keys. allowed checks a changed record, or a new record if was is nil, and reports
// whether the difference is allowed; nil allows none.
func (c *checker) compareRecords(
	code *finding.Code, out *output, skip func(key []byte) bool, allowed func(was, now *snapshot.Record) (bool, error),
) error {
	err := stream.Each(out.before.Snapshot().Live(c.ctx, nil), func(was *snapshot.Record) error {
		if skip(was.Key) {
			return nil
		}
		now, err := out.file.get(c.ctx, was.Key)
		if err == nil && now == nil {
			out.found(code, string(was.Key), "it is gone; %s has it", out.before.path)
		}
		return err
	})
	if err != nil {
		return err
	}
	return stream.Each(out.Snapshot().Live(c.ctx, nil), func(now *snapshot.Record) error {
		if skip(now.Key) {
			return nil
		}
		c.checked[QuestionTouched]++
		was, err := out.before.get(c.ctx, now.Key)
		if err != nil || was != nil && equalRecords(was, now) {
			return err
		}
		if allowed != nil {
			if ok, err := allowed(was, now); ok || err != nil {
				return checked(err)
			}
		}
		what := "it is not as %s has it"
		if was == nil {
			what = "it is new; %s does not have it"
		}
		out.found(code, string(now.Key), what, out.before.path)
		return nil
	})
}

func equalRecords(a, b *snapshot.Record) bool {
	return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value) &&
		a.CreateRevision == b.CreateRevision && a.ModRevision == b.ModRevision && a.Version == b.Version &&
		a.Lease == b.Lease
}
