package inspect

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// sifted holds all live records below some folders, or with some names.
type sifted struct {
	dirs  []string // beginnings of keys, without their prefixes
	names []string // nil for all
	live  []*snapshot.Record
	byKey map[string]*snapshot.Record
}

// Sift prepares the reader for Objects of built-in types, of the given names or all, without an
// index of the snapshot. Where Sift is not applicable, the reader stays unchanged.
func Sift(ctx context.Context, r *Reader, types []*Type, names []string) {
	if r.at != nil || len(r.named) > 0 || r.layouts != nil {
		return
	}
	s := &sifted{names: names, dirs: dirsOf(types), byKey: map[string]*snapshot.Record{}}
	prefixes := keys.DefaultPrefixes()
	below := make([]atomic.Bool, len(prefixes))
	found, ok := r.snapshot.Sift(ctx, func(key []byte) bool {
		for i, prefix := range prefixes {
			if bytes.HasPrefix(key, []byte(prefix)) && !below[i].Load() {
				below[i].Store(true)
			}
		}
		return s.may(key) || keys.Telling(key)
	})
	if !ok {
		return
	}
	d := keys.NewDetector()
	for _, rec := range found {
		if keys.Telling(rec.Key) {
			d.Add(rec.Key)
		}
		if s.may(rec.Key) {
			s.live = append(s.live, rec)
			s.byKey[string(rec.Key)] = rec
		}
	}
	if d.Settled(func(prefix string) bool { return below[slices.Index(prefixes, prefix)].Load() }) {
		r.sifted, r.layouts = s, new(d.Layouts())
	}
}

// dirsOf returns the folders of types in all layouts, without prefixes.
func dirsOf(types []*Type) (dirs []string) {
	for _, f := range []keys.Flavour{keys.FlavourKubernetes, keys.FlavourOpenShift, keys.FlavourKCPShard,
		keys.FlavourKCPCache} {
		for _, t := range types {
			for _, dir := range f.Layout("").Dirs(t.Resource) {
				if !slices.Contains(dirs, string(dir)) {
					dirs = append(dirs, string(dir))
				}
			}
		}
	}
	return dirs
}

// may reports whether a key may belong to the folders and names.
func (s *sifted) may(key []byte) bool {
	if s.names != nil {
		name := key[bytes.LastIndexByte(key, '/')+1:]
		if !slices.ContainsFunc(s.names, func(n string) bool { return n == string(name) }) {
			return false
		}
	}
	return slices.ContainsFunc(s.dirs, func(dir string) bool { return bytes.Contains(key, []byte(dir)) })
}

// has reports whether s has all live records of the names below a folder.
func (s *sifted) has(dir []byte, names []string) bool {
	return s != nil && slices.ContainsFunc(s.dirs, func(d string) bool { return strings.HasSuffix(string(dir), d) }) &&
		(s.names == nil || names != nil && !slices.ContainsFunc(names,
			func(n string) bool { return !slices.Contains(s.names, n) }))
}

// liveOf yields the live records below a folder. With names, other records may be omitted.
func liveOf(ctx context.Context, r *Reader, dir []byte, names []string) iter.Seq2[*snapshot.Record, error] {
	if !r.sifted.has(dir, names) {
		return r.live(ctx, dir)
	}
	return stream.Of(func(yield func(*snapshot.Record) error) error {
		for _, rec := range r.sifted.live {
			if bytes.HasPrefix(rec.Key, dir) {
				if err := yield(rec); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
