package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/phrase"
)

// CurrentRevision describes the revision, and etcdutl's wrong value after a compaction of the last
// record.
func (st *Status) CurrentRevision() string {
	if st.LastRecord == st.Revision {
		return fmt.Sprint(st.Revision)
	}
	return fmt.Sprintf("%d, as a server would start with (\"etcdutl snapshot status\" prints %d)",
		st.Revision, st.LastRecord)
}

// Auth describes whether etcd's own users are enabled.
func (st *Status) Auth() string {
	state := "off"
	if st.AuthEnabled {
		state = "on"
	}
	if st.AuthUsers+st.AuthRoles == 0 {
		return state
	}
	return fmt.Sprintf("%s (%s, %s)", state, phrase.Count(st.AuthUsers, "user"), phrase.Count(st.AuthRoles, "role"))
}

// Compacted describes the last compacted revision.
func (st *Status) Compacted() string {
	switch {
	case st.ScheduledCompact > st.CompactRevision:
		return fmt.Sprintf("%d (interrupted on the way to %d)", st.CompactRevision, st.ScheduledCompact)
	case st.CompactRevision == 0:
		return "never"
	}
	return fmt.Sprint(st.CompactRevision)
}

// Encrypted names the keys of encrypted objects, with counts if several.
func Encrypted(v inspect.Version) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v.Encrypted)) {
		if v.Encrypted[name] == v.Objects {
			return name
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, v.Encrypted[name]))
	}
	return strings.Join(parts, ", ")
}

// Verdict describes the effect of a version on the cluster, or returns "".
func Verdict(r inspect.Resource, v inspect.Version) string {
	switch {
	case r.Definition != nil && r.Definition.Error != "":
		return "its CustomResourceDefinition cannot be read"
	case v.Standing == inspect.Stale && r.Definition.Webhook:
		return "not at the storage version; read through the conversion webhook"
	case v.Standing == inspect.Stale:
		return "not at the storage version"
	case v.Standing == inspect.Unlisted:
		return "broken: not a version of the CustomResourceDefinition"
	case v.Standing == inspect.Unknown && len(v.Encrypted) > 0:
		return "encrypted: cannot be told"
	case v.Standing == inspect.Unknown && r.Definition == nil && v.Kind != "":
		return "broken: not of the kind that its key says"
	case v.Standing == inspect.Unknown:
		return "cannot be told"
	case r.Orphans:
		return "no CustomResourceDefinition"
	}
	return ""
}

// Lists describes mismatches between status.storedVersions and the objects.
func Lists(r inspect.Resource) (lines []string) {
	if r.Definition == nil || r.Definition.Error != "" {
		return nil
	}
	found := map[string]int{r.Definition.StorageVersion: 0}
	for _, v := range r.Versions {
		if v.Standing == inspect.Unknown { // objects may have any version
			return nil
		}
		found[v.APIVersion[strings.LastIndex(v.APIVersion, "/")+1:]] = v.Objects
	}
	for _, version := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(r.Definition.StoredVersions, version) {
			lines = append(lines, fmt.Sprintf("storedVersions of %s lacks %s: %s there", r.Definition.Name, version,
				phrase.Count(found[version], "object")))
		}
	}
	for _, version := range r.Definition.StoredVersions {
		if _, is := found[version]; !is {
			lines = append(lines, fmt.Sprintf("storedVersions of %s has %s, at which nothing is stored",
				r.Definition.Name, version))
		}
	}
	return lines
}
