package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

type movedCopy struct{ from, to string } // keys

// checkToShard returns ErrSameShard if ToShard wrote the copies itself.
func (c *choice) checkToShard() error {
	if to := c.options.ToShard; to != "" && to == c.shardName {
		return fmt.Errorf("%w: %q", ErrSameShard, to)
	}
	return nil
}

func (c *choice) chooseCopies() error {
	o := c.options
	cache, err := c.file.Cache(o.Prefixes)
	if errors.Is(err, kcp.ErrNoCache) {
		if shard, _ := c.file.Shard(o.Prefixes); shard != nil {
			err = fmt.Errorf("%w, but a shard below %q", ErrNoCacheHere, shard.Prefix)
		}
	}
	if err != nil {
		return err
	}
	c.shardName, c.Caches = o.FromShard, map[string]bool{cache.Prefix: true}
	if err := c.checkToShard(); err != nil {
		return err
	}
	at := Place{Prefix: cache.Prefix, Shard: o.FromShard, Cluster: o.Name}
	found := &target{name: o.Name}
	var writers []string
	for _, copied := range c.Copies[o.Name] {
		switch {
		case placeOfCopy(copied) == at:
			found.copies = append(found.copies, copied)
		case copied.Prefix == cache.Prefix:
			writers = append(writers, copied.Shard)
		}
	}
	switch {
	case len(found.copies) > 0 || c.past[at]:
		c.addTarget(found)
		c.Places[at] = true
		return nil
	case c.movedBefore(cache):
		c.addTarget(found)
		return nil
	}
	what := fmt.Sprintf("from shard %q; it has copies from %s", o.FromShard, strings.Join(quoted(writers), ", "))
	if len(writers) == 0 {
		what = "from any shard"
	}
	return fmt.Errorf("%w: the cache has nothing of %q %s%s", kcp.ErrNoCluster, o.Name, what,
		unknownShard(c.file, "; ", o.FromShard))
}

// movedBefore reports whether the copies of a known shard were moved to the other shard already.
func (c *choice) movedBefore(cache *kcp.Cache) bool {
	o := c.options
	given := func(copied *kcp.Copy) bool { return copied.Shard == o.ToShard && copied.Cluster == o.Name }
	return o.ToShard != "" && knownShards(c.file)[c.shardName] && slices.ContainsFunc(cache.Copies, given)
}

func knownShards(f *kcp.File) map[string]bool {
	known := map[string]bool{}
	for _, r := range f.Registered() {
		known[r.Name] = true
	}
	for _, copied := range f.Copies() {
		known[copied.Shard] = true
	}
	return known
}

// unknownShard returns separator and the known shards of the file if name is not one of them; else
// "". A file without any Shard object or copy knows no shards.
func unknownShard(f *kcp.File, separator, name string) string {
	known := knownShards(f)
	if name == "" || len(known) == 0 || known[name] {
		return ""
	}
	return fmt.Sprintf("%snothing in the file knows a shard %q; it knows %s", separator, name,
		phrase.List(quoted(slices.Sorted(maps.Keys(known))), 10))
}

func quoted(names []string) (all []string) {
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return all
}

// checkExports reports APIExports without a remaining copy. A shard that starts without a copy
// removes the labels of permission claims from the objects of all tenants (kcp
// permissionclaim_labeler.go).
func (c objections) checkExports() {
	if c.options.ToShard != "" {
		return
	}
	for _, t := range c.targets {
		for _, copied := range t.copies {
			for _, name := range copied.Exports {
				other := func(of *kcp.Copy) bool {
					return of.Prefix == copied.Prefix && of.Shard != copied.Shard && slices.Contains(of.Exports, name)
				}
				if slices.ContainsFunc(c.Copies[t.name], other) {
					continue
				}
				key := keys.KCPCache{Prefix: copied.Prefix}.Format(
					keys.Key{Shard: copied.Shard, Cluster: t.name, Resource: kcp.ExportType, Custom: true, Name: name})
				c.raise(string(key), codeExportsInCache,
					"the cache would have no copy of APIExport %q of %q any more: "+
						"a shard that starts then removes the labels of its permission claims from the objects of "+
						"all tenants", name, t.name)
			}
		}
	}
}

// moveCopy stages a copy as a server would store it: encrypted for its new key, with its lease.
func (c *choice) moveCopy(ctx context.Context, s Selected) error {
	if s.Shard == "" || c.options.ToShard == "" {
		return nil // not a copy, or to be deleted
	}
	e, err := c.view.Reader().Get(ctx, []byte(s.Key))
	if err != nil || e == nil {
		return err
	}
	k, _ := e.ParseKey() // parsed for the selection already
	k.Shard = c.options.ToShard
	to := e.Layout().Format(k)
	if e.Undecryptable != nil {
		c.refuse(s.Key, kcp.CodeEncrypted, "it has to be encrypted for its new key: %v", e.Undecryptable)
		return nil
	}
	value, err := copyFor(e.Value, c.options.ToShard)
	if err != nil {
		c.refuse(s.Key, kcp.CodeUndecodable, "whether it says which shard wrote it cannot be told: %v", err)
		return nil
	}
	if free, err := c.isFree(ctx, to, value); err != nil || !free {
		return err
	}
	reason, err := c.view.Exposes(ctx, e.Key, to)
	if err != nil {
		return err
	}
	if reason != "" {
		c.raise(s.Key, codeWouldBePlaintext, "%s", reason)
		return nil
	}
	c.moved = append(c.moved, movedCopy{s.Key, string(to)})
	c.arrivals[placeOf(k)]++
	return c.view.Create(ctx, to, value, e.Lease)
}

// isFree reports whether a copy can be created under its new key, and reports a different copy
// there, which stays.
func (c *choice) isFree(ctx context.Context, to, value []byte) (bool, error) {
	there, err := c.view.Reader().Get(ctx, to)
	if err != nil || there == nil {
		return true, err
	}
	if there.Undecryptable != nil || !bytes.Equal(there.Value, value) {
		c.raise(string(to), codeCopyExists, "shard %q has a copy with another value there", c.options.ToShard)
	}
	return false, nil
}

func (c *choice) checkMoved(ctx context.Context, out *inspect.Reader) error {
	for _, m := range c.moved {
		was, err := c.view.Reader().Get(ctx, []byte(m.from))
		if err != nil {
			return err
		}
		want, err := copyFor(was.Value, c.options.ToShard)
		if err != nil {
			return err
		}
		is, err := out.Get(ctx, []byte(m.to))
		switch {
		case err != nil:
			return err
		case is == nil || is.Undecryptable != nil || !bytes.Equal(is.Value, want) || is.Lease != was.Lease:
			return fmt.Errorf("%w: key %q is not the copy that was under %q", snapshot.ErrVerify, m.to, m.from)
		case isEncrypted(was.Stored) && !isEncrypted(is.Stored):
			return fmt.Errorf("%w: key %q is in the clear, and was encrypted", snapshot.ErrVerify, m.to)
		}
	}
	return nil
}

// check proves that the output has no purged key, and has every other live record as in the input.
// Errors wrap snapshot.ErrVerify.
func (c *choice) check(ctx context.Context, out *inspect.Reader, was archive.Sum, receipts *Receipts) error {
	for _, m := range c.moved {
		c.Created[m.to] = true
	}
	after, err := c.Split(ctx, out)
	if err != nil {
		return err
	}
	if n := len(after.Keys); n > 0 {
		return fmt.Errorf("%w: %s left after the purge, such as %q", snapshot.ErrVerify, phrase.Count(n, "key"),
			after.Keys[0].Key)
	}
	if is := after.Rest.Sum(); is != was {
		return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
			snapshot.ErrVerify, is.Keys, is.SHA256, was.Keys, was.SHA256)
	}
	receipts.Rest = &was
	if err := c.checkMoved(ctx, out); err != nil || !c.options.Scrub {
		return err
	}
	return c.checkScrubbed(ctx, out)
}

// checkScrubbed looks for purged records of any revision, by the names of the logical clusters.
func (c *choice) checkScrubbed(ctx context.Context, out *inspect.Reader) error {
	for rec, err := range out.Snapshot().Records(ctx) {
		if err != nil {
			return err
		}
		k, _, err := c.Layouts.Parse(rec.Key)
		if err != nil || !c.isPurged(k.Cluster) {
			continue
		}
		ofShard := c.shard != nil && k.Prefix == c.shard.Prefix
		if ofShard || c.Caches[k.Prefix] && k.Shard == c.shardName {
			return fmt.Errorf("%w: revision %s of %q is left", snapshot.ErrVerify, rec.Revision, rec.Key)
		}
	}
	return nil
}
