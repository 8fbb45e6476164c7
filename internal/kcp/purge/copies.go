package purge

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

type movedCopy struct{ from, to string } // keys

// checkToShard returns ErrSameShard if the copies are that shard's already.
func (c *choice) checkToShard() error {
	if to := c.options.ToShard; to != "" && to == c.shardName {
		return fmt.Errorf("%w: %q", ErrSameShard, to)
	}
	return nil
}

// movedBefore tells whether a known shard's copies were given to the other shard already.
func (c *choice) movedBefore(cache *clusters.Cache) bool {
	o := c.options
	given := func(copied *clusters.Copy) bool { return copied.Shard == o.ToShard && copied.Cluster == o.Name }
	return o.ToShard != "" && c.knownShards()[c.shardName] && slices.ContainsFunc(cache.Copies, given)
}

func (c *choice) knownShards() map[string]bool {
	known := map[string]bool{}
	for _, r := range c.file.Registered() {
		known[r.Name] = true
	}
	for _, copied := range c.file.Copies() {
		known[copied.Shard] = true
	}
	return known
}

// unknownShard returns, behind separator, the shards that the file knows, if name is none of them;
// else "". A file without any Shard object or copy knows none.
func (c *choice) unknownShard(separator, name string) string {
	known := c.knownShards()
	if name == "" || len(known) == 0 || known[name] {
		return ""
	}
	return fmt.Sprintf("%snothing in the file knows a shard %q; it knows %s", separator, name, survey.FirstOf(quoted(slices.Sorted(maps.Keys(known)))))
}

func quoted(names []string) (all []string) {
	for _, name := range names {
		all = append(all, strconv.Quote(name))
	}
	return all
}

// checkExports reports APIExports whose last copy goes. A shard that starts without it removes the
// labels of permission claims from the objects of all tenants (kcp permissionclaim_labeler.go).
func (c *choice) checkExports() {
	if c.options.ToShard != "" {
		return
	}
	for _, t := range c.targets {
		for _, copied := range t.copies {
			for _, name := range copied.Exports {
				other := func(of *clusters.Copy) bool {
					return of.Prefix == copied.Prefix && of.Shard != copied.Shard && slices.Contains(of.Exports, name)
				}
				if slices.ContainsFunc(c.Copies[t.name], other) {
					continue
				}
				key := keys.KCPCache{Prefix: copied.Prefix}.Format(
					keys.Key{Shard: copied.Shard, Cluster: t.name, Resource: clusters.ExportType, Custom: true, Name: name})
				c.raise(string(key), codeExportsInCache, "the cache would have no copy of APIExport %q of %q any more: "+
					"a shard that starts then removes the labels of its permission claims from the objects of all tenants", name, t.name)
			}
		}
	}
}

// moveCopy stages a copy as a server would store it: encrypted for its new key, with its lease.
func (c *choice) moveCopy(s survey.Selected) {
	if s.Shard == "" || c.options.ToShard == "" || c.Err != nil {
		return // no copy, or one that is deleted
	}
	e, err := c.view.Reader().Get(c.Ctx, []byte(s.Key))
	if c.Failed(err) || e == nil {
		return
	}
	k, _ := e.ParseKey() // by which it was selected
	k.Shard = c.options.ToShard
	to := e.Layout().Format(k)
	if e.Undecryptable != nil {
		c.view.Raise(s.Key, clusters.CodeEncrypted.Because("it has to be encrypted for its new key: %v", e.Undecryptable).Decided(finding.Refused))
		return
	}
	value, err := survey.CopyFor(e.Value, c.options.ToShard)
	if err != nil {
		c.view.Raise(s.Key, clusters.CodeUndecodable.Because("whether it says which shard wrote it cannot be told: %v", err).Decided(finding.Refused))
		return
	}
	if !c.isFree(to, value) {
		return
	}
	reason, err := c.view.Exposes(c.Ctx, e.Key, to)
	switch {
	case c.Failed(err):
	case reason != "":
		c.raise(s.Key, survey.CodeWouldBePlaintext, "%s", reason)
	default:
		c.moved = append(c.moved, movedCopy{s.Key, string(to)})
		c.arrivals[survey.PlaceOf(k)]++
		c.Failed(c.view.Create(c.Ctx, to, value, e.Lease))
	}
}

// isFree tells whether a copy can be created under its new key, and reports a different one there,
// which stays.
func (c *choice) isFree(to, value []byte) bool {
	there, err := c.view.Reader().Get(c.Ctx, to)
	if c.Failed(err) || there == nil {
		return c.Err == nil
	}
	if there.Undecryptable != nil || !bytes.Equal(there.Value, value) {
		c.raise(string(to), codeCopyExists, "shard %q has a copy with another value there", c.options.ToShard)
	}
	return false
}

func (c *choice) checkMoved(ctx context.Context, out *inspect.Reader) error {
	for _, m := range c.moved {
		was, err := c.view.Reader().Get(ctx, []byte(m.from))
		if err != nil {
			return err
		}
		want, err := survey.CopyFor(was.Value, c.options.ToShard)
		if err != nil {
			return err
		}
		is, err := out.Get(ctx, []byte(m.to))
		switch {
		case err != nil:
			return err
		case is == nil || is.Undecryptable != nil || !bytes.Equal(is.Value, want) || is.Lease != was.Lease:
			return fmt.Errorf("%w: key %q is not the copy that was under %q", snapshot.ErrVerify, m.to, m.from)
		case survey.IsEncrypted(was.Stored) && !survey.IsEncrypted(is.Stored):
			return fmt.Errorf("%w: key %q is in the clear, and was encrypted", snapshot.ErrVerify, m.to)
		}
	}
	return nil
}
