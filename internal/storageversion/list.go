package storageversion

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/transform"
)

// trimList sets status.storedVersions by every key of the kind, once its objects are staged: those
// of the first folder were counted then.
func (r *run) trimList(k *kind) {
	found := r.countVersions(k, r.dirs(k)[1:], false)
	for version, n := range k.stored {
		found[version] += n
	}
	if r.Err != nil {
		return
	}
	if k.after, k.kept = trimmedList(k, found); k.kept != "" {
		r.Raise(string(k.key), codeListKept.Because("storedVersions is not trimmed: %s", k.kept))
	}
	if !slices.Equal(k.after, k.before) {
		value, err := schema.SetStoredVersions(k.value, k.after)
		if err != nil {
			r.Failed(fmt.Errorf("%s: %w", k.key, err))
			return
		}
		k.value = value
	}
	staged, err := r.View.Derive(r.Ctx, k.key, k.key, k.value)
	if !r.Failed(err) && !staged {
		k.after, k.kept = k.before, "it would be stored in the clear"
	}
}

// countVersions counts the objects of the kind in these folders by version, as staged; "" for those
// whose version is unknown. With report, values that cannot be read at all are reported.
func (r *run) countVersions(k *kind, dirs [][]byte, report bool) map[string]int {
	found := map[string]int{}
	for _, dir := range dirs {
		for e := range r.Live(dir) {
			if _, err := e.ParseValue(); err != nil && report {
				r.Raise(string(e.Key), transform.Unreadable(err))
			}
			found[k.versionOf(e)]++
		}
	}
	return found
}

// trimmedList is what storedVersions has to be: the versions found, and the storage version. Those
// of the old list come first, in its order. kept says why it holds more than the storage version.
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
	for _, version := range slices.Concat(k.before, slices.Sorted(maps.Keys(there))) {
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
