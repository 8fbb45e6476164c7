package storageversion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/transform"
)

// trimList sets status.storedVersions from every key of the kind, after its objects are staged.
// Objects of the first folder were counted during staging.
func (s *storage) trimList(ctx context.Context, k *kind) error {
	found, err := s.countVersions(ctx, k, s.dirs(k)[1:], false)
	if err != nil {
		return err
	}
	for version, n := range k.stored {
		found[version] += n
	}
	list := &k.row.StoredVersions
	if list.After, list.Kept = trimmedList(k, found); list.Kept != "" {
		s.Raise(string(k.key), codeListKept.Because("storedVersions is not trimmed: %s", list.Kept))
	}
	if !slices.Equal(list.After, list.Before) {
		if k.value, err = schema.SetStoredVersions(k.value, list.After); err != nil {
			return fmt.Errorf("%s: %w", k.key, err)
		}
	}
	staged, err := s.Derive(ctx, k.key, k.key, k.value)
	if err == nil && !staged {
		list.After, list.Kept = list.Before, "it would be stored in the clear"
	}
	return err
}

// countVersions counts the objects of the kind in the given folders by version, as staged; "" for
// unknown versions. With report, unreadable values are reported.
func (s *storage) countVersions(ctx context.Context, k *kind, dirs [][]byte, report bool) (map[string]int, error) {
	found := map[string]int{}
	for _, dir := range dirs {
		for e, err := range s.Live(ctx, dir) {
			if err != nil {
				return nil, err
			}
			if _, err := e.ParseValue(); err != nil && report {
				s.Raise(string(e.Key), transform.Unreadable(err))
			}
			found[k.versionOf(e)]++
		}
	}
	return found, nil
}

// trimmedList returns the correct storedVersions: the versions found, and the storage version.
// Versions of the old list come first, in their order. kept is the reason for more versions than
// the storage version.
func trimmedList(k *kind, found map[string]int) (list []string, kept string) {
	there := maps.Clone(found)
	delete(there, "")
	others := maps.Clone(there)
	delete(others, k.crd.StorageVersion())
	there[k.crd.StorageVersion()]++
	switch {
	case found[""] > 0:
		kept = fmt.Sprintf("%d of its objects cannot be read", found[""])
	case k.crd.Object().DeletionTimestamp != nil:
		kept = "it is being deleted"
	}
	for _, version := range slices.Concat(k.row.StoredVersions.Before, slices.Sorted(maps.Keys(there))) {
		if (there[version] > 0 || kept != "") && !slices.Contains(list, version) {
			list = append(list, version)
		}
	}
	switch {
	case len(list) == 1:
		return list, ""
	case kept == "":
		kept = "objects are still stored at " + strings.Join(slices.Sorted(maps.Keys(others)), ", ")
	}
	return list, kept
}

func listCounts(found map[string]int) string {
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(found)) {
		name := version
		if name == "" {
			name = "unreadable"
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, found[version]))
	}
	return strings.Join(parts, ", ")
}
