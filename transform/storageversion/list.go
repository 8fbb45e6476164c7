package storageversion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
)

// settleList makes status.storedVersions what reading every key of the kind says, once its objects are staged.
func (r *run) settleList(ctx context.Context, k *kind) error {
	found, unread, err := r.countVersions(ctx, k)
	if err != nil {
		return err
	}
	if k.after, k.kept = settledList(k, found, unread); k.kept != "" {
		r.view.Raise(string(k.key), codeListKept.Because("storedVersions is not trimmed: %s", k.kept))
	}
	if !slices.Equal(k.after, k.before) {
		if k.value, err = schema.SetStoredVersions(k.value, k.after); err != nil {
			return fmt.Errorf("%s: %w", k.key, err)
		}
	}
	staged, err := r.view.Derive(ctx, k.key, k.key, k.value, "storedVersions")
	if err == nil && !staged {
		k.after, k.kept = k.before, "it would be stored in the clear"
	}
	return err
}

// countVersions reads every key of the kind, as staged. unread counts those that do not tell their version.
func (r *run) countVersions(ctx context.Context, k *kind) (found map[string]int, unread int, err error) {
	found = map[string]int{}
	for _, dir := range r.dirs(k) {
		for e, err := range r.view.Live(ctx, dir) {
			if err != nil {
				return nil, 0, err
			}
			value, err := encoding.Parse(e.Value)
			if err != nil || k.unread[string(e.Key)] || !k.owns(value.GVK.GroupKind()) {
				unread++
				continue
			}
			found[value.GVK.Version]++
		}
	}
	return found, unread, nil
}

// settledList is what storedVersions has to be: the versions found, and the storage version, which every list must hold. Those
// of the old list come first, in its order. kept says why it holds more than the storage version; empty where it does not.
func settledList(k *kind, found map[string]int, unread int) (list []string, kept string) {
	there := maps.Clone(found)
	there[k.crd.StorageVersion()]++
	switch {
	case unread > 0:
		kept = fmt.Sprintf("%d of its objects cannot be read", unread)
	case k.crd.Object().DeletionTimestamp != nil:
		kept = "it is being deleted"
	}
	for _, version := range k.before {
		if (there[version] > 0 || kept != "") && !slices.Contains(list, version) {
			list = append(list, version)
		}
	}
	for _, version := range slices.Sorted(maps.Keys(there)) {
		if !slices.Contains(list, version) {
			list = append(list, version)
		}
	}
	switch {
	case len(list) == 1:
		return list, ""
	case kept == "":
		kept = "objects are still stored at " + others(found, k.crd.StorageVersion())
	}
	return list, kept
}

// others are the versions found but for one, for a person to read.
func others(found map[string]int, but string) string {
	var names []string
	for _, version := range slices.Sorted(maps.Keys(found)) {
		if version != but {
			names = append(names, version)
		}
	}
	return strings.Join(names, ", ")
}

// describe lists how many objects were found at each version.
func describe(found map[string]int, unread int) string {
	var parts []string
	for _, version := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, fmt.Sprintf("%s: %d", version, found[version]))
	}
	if unread > 0 {
		parts = append(parts, fmt.Sprintf("not to be told: %d", unread))
	}
	return strings.Join(parts, ", ")
}
