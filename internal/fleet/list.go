package fleet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/s3"
	"github.com/etcdshift/etcdshift/transform"
)

// Choice selects the snapshots of a fleet.
type Choice struct {
	Name   string            // name of the run
	Match  string            // a path.Match pattern for names without folders; "" for all
	Newest bool              // only the last modified file of each folder
	Warn   func(text string) // called for each empty file that would be a snapshot, and for a doubtful place
}

// List returns the list of a place.
func List(ctx context.Context, place string, choice Choice, tool transform.Tool) (*Fleet, error) {
	f := &Fleet{APIVersion: transform.APIVersion, Kind: Kind, Tool: tool, Name: choice.Name, Place: clean(place)}
	var err error
	if f.files, err = filesAt(place); err != nil {
		return nil, err
	}
	chosen := map[string]file{} // by path, or with Newest by folder
	for one, err := range f.files.all(ctx, f.Place) {
		if err != nil {
			return nil, err
		}
		takes, err := choice.selects(one, f.Place, &f.LeftOut)
		if err != nil {
			return nil, err
		}
		if !takes {
			continue
		}
		key := one.Path
		if choice.Newest {
			key, _ = folderOf(one.Path)
		}
		other, is := chosen[key]
		if is {
			f.LeftOut.Older++
		}
		if !is || cmp.Or(one.modified.Compare(other.modified), cmp.Compare(one.Path, other.Path)) > 0 {
			chosen[key] = one
		}
		if len(chosen) > mostListed {
			return nil, fmt.Errorf("%s: has more than %d snapshots, the most that a Job takes; name a part of it",
				f.Place, mostListed)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s: no snapshot is there; left out: %s", f.Place, f.LeftOut)
	}
	for _, one := range slices.SortedFunc(maps.Values(chosen),
		func(a, b file) int { return cmp.Compare(a.Path, b.Path) }) {
		f.Snapshots = append(f.Snapshots, one.Snapshot)
	}
	if path := f.outsideFolder(); path != "" {
		choice.warn(fmt.Sprintf("%s begins %s too; for the folder alone end it with a slash", f.Place, path))
	}
	if err := f.check(); err != nil { // "fleet run" would refuse the list
		return nil, fmt.Errorf("%s: %w; rename it, or leave it out by --match", f.Place, err)
	}
	return f, nil
}

// outsideFolder returns a snapshot outside the folder named by a bucket place if the folder has
// others, or "". For example, the place "s3://b/etcd" includes snapshots of "etcd-old".
func (f *Fleet) outsideFolder() string {
	inside := func(s Snapshot) bool { _, is := below(f.Place, s.Path); return is }
	i := slices.IndexFunc(f.Snapshots, func(s Snapshot) bool { return !inside(s) })
	if !s3.Is(f.Place) || i < 0 || !slices.ContainsFunc(f.Snapshots, inside) {
		return ""
	}
	return f.Snapshots[i].Path
}

// selects reports whether a file is a snapshot of the fleet, and otherwise counts the reason.
// Hidden folders have no snapshots: k3s keeps metadata in .metadata/. A bucket place may end within
// a name.
func (c Choice) selects(one file, place string, left *LeftOut) (bool, error) {
	_, name := folderOf(one.Path)
	rest, inside := below(place, one.Path)
	if !inside {
		begin, _ := folderOf(place)
		rest = strings.TrimPrefix(one.Path, begin)
	}
	matches, err := true, error(nil)
	if c.Match != "" {
		if matches, err = path.Match(c.Match, name); err != nil {
			return false, fmt.Errorf("--match is %q: %w", c.Match, err)
		}
	}
	switch {
	case strings.Contains("/"+rest, "/.") || !one.regular || strings.HasSuffix(one.Path, "/"):
		left.Other++
	case strings.Contains(name, mark):
		left.Results++
	case strings.HasSuffix(name, ".json"): // a list or a report, not a snapshot
		left.Other++
	case !matches:
		left.Unmatched++
	case one.Bytes == 0: // a failed backup
		left.Other++
		text := one.Path + ": is empty: left out"
		if c.Newest {
			text += "; if it is the newest, an older one is listed"
		}
		c.warn(text)
	default:
		return true, nil
	}
	return false, nil
}

func (c Choice) warn(text string) {
	if c.Warn != nil {
		c.Warn(text)
	}
}

// String returns the nonzero counts as text.
func (l LeftOut) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{l.Results, "results of runs"},
		{l.Unmatched, "not matched"},
		{l.Older, "older"},
		{l.Other, "hidden, empty, JSON or not regular"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// Needs are the resources of a pod for any snapshot of a list, in bytes of memory and scratch
// space.
type Needs struct {
	Memory  int64 `json:"memory"`
	Scratch int64 `json:"scratch"`
}

const (
	mebibyte   = 1 << 20
	expansion  = 10 // largest observed ratio for compressed snapshots; a pod without space is evicted
	leastSpace = 256 * mebibyte
)

// Needs returns an estimate from measured runs: see docs/guides/fleet.md. A key takes some 30 bytes
// of memory, and a snapshot has one key per few kilobytes; the remaining memory is for file pages,
// which the kernel can drop.
func (f *Fleet) Needs() (n Needs) {
	for _, s := range f.Snapshots {
		one := s.needs()
		n.Memory, n.Scratch = max(n.Memory, one.Memory), max(n.Scratch, one.Scratch)
	}
	return Needs{rounded(leastSpace + n.Memory), rounded(leastSpace + n.Scratch)}
}

// needs returns the snapshot's resources beyond the base of every pod.
func (s Snapshot) needs() Needs {
	expanded, compressed := s.Bytes, int64(0)
	for _, ext := range []string{".gz", ".tgz", ".zst", ".zip"} {
		if strings.HasSuffix(s.Path, ext) {
			expanded, compressed = expansion*s.Bytes, s.Bytes
		}
	}
	return Needs{Memory: expanded / 16, Scratch: compressed + 2*expanded + expanded/8}
}

// rounded returns a size rounded up to 64 MiB.
func rounded(bytes int64) int64 {
	const step = 64 * mebibyte
	return (bytes + step - 1) / step * step
}
