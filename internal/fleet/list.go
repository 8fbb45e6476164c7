package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/transform"
)

// Choice says which files of a place are snapshots of a fleet.
type Choice struct {
	Name   string // of the run
	Match  string // a pattern of path.Match for names without folders; "" for all
	Newest bool   // of each folder the file that was changed last
}

// List makes the list of a place.
func List(ctx context.Context, place string, choice Choice, tool transform.Tool) (*Fleet, error) {
	f := &Fleet{APIVersion: apiVersion, Kind: Kind, Tool: tool, Name: choice.Name, Place: clean(place)}
	newest := map[string]object{} // by folder, or by path
	for o, err := range all(ctx, f.Place) {
		if err != nil {
			return nil, err
		}
		folder, name := folderOf(o.Path)
		matches := true
		if choice.Match != "" {
			if matches, err = path.Match(choice.Match, name); err != nil {
				return nil, fmt.Errorf("--match is %q: %w", choice.Match, err)
			}
		}
		switch {
		case strings.HasPrefix(name, ".") || !o.regular || o.Bytes == 0:
			f.LeftOut.Other++
			continue
		case strings.Contains(name, mark):
			f.LeftOut.Results++
			continue
		case !matches:
			f.LeftOut.Unmatched++
			continue
		case !choice.Newest:
			folder = o.Path
		}
		other, is := newest[folder]
		if is {
			f.LeftOut.Older++
		}
		if !is || cmp.Or(o.modified.Compare(other.modified), cmp.Compare(o.Path, other.Path)) > 0 {
			newest[folder] = o
		}
		if len(newest) > mostListed {
			return nil, fmt.Errorf("%s: has more than %d snapshots, the most that a Job takes; name a part of it", f.Place, mostListed)
		}
	}
	if len(newest) == 0 {
		return nil, fmt.Errorf("%s: no snapshot is there; left out are %s", f.Place, f.LeftOut)
	}
	for _, o := range slices.SortedFunc(maps.Values(newest), func(a, b object) int { return cmp.Compare(a.Path, b.Path) }) {
		f.Snapshots = append(f.Snapshots, o.Snapshot)
	}
	return f, nil
}

// String tells the counts that are not 0.
func (l LeftOut) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{l.Results, "results of runs"},
		{l.Unmatched, "not matched"},
		{l.Older, "older"},
		{l.Other, "hidden, empty or not regular"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// Needs is what a pod needs for the largest snapshot: bytes of memory and of scratch space.
type Needs struct {
	Memory  int64 `json:"memory"`
	Scratch int64 `json:"scratch"`
}

const (
	mebibyte   = 1 << 20
	expansion  = 10 // of compressed snapshots, at most as seen; a pod that runs out of space is evicted
	leastSpace = 256 * mebibyte
)

// Needs estimates from measured runs: see docs/fleet.md. A key takes some 30 bytes of memory, and a
// snapshot has a key in some kilobytes; the rest is for pages of the file, which the kernel drops.
func (f *Fleet) Needs() Needs {
	s := f.Largest()
	expanded, compressed := s.Bytes, int64(0)
	for _, ext := range []string{".gz", ".zst", ".zip"} {
		if strings.HasSuffix(s.Path, ext) {
			expanded, compressed = expansion*s.Bytes, s.Bytes
		}
	}
	return Needs{
		Memory:  rounded(leastSpace + expanded/16),
		Scratch: rounded(leastSpace + compressed + 2*expanded + expanded/8),
	}
}

// rounded is a size in steps of 64 MiB.
func rounded(bytes int64) int64 {
	const step = 64 * mebibyte
	return (bytes + step - 1) / step * step
}
