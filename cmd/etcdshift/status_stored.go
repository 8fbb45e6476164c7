package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
)

// fewKeys is how many keys of one version are printed for a person; -o json has up to inspect.MaxKeys.
const fewKeys = 5

// printCatalogue prints at which versions objects are stored, and then those that are not where they should be.
func printCatalogue(w io.Writer, c *inspect.Catalogue) error {
	out := bufio.NewWriter(w)
	if len(c.Resources) > 0 {
		fmt.Fprintln(out)
	}
	t := newTable(out)
	t.row("RESOURCE", "STORED AT", "KIND", "OBJECTS", "ENCRYPTED", "STORAGE VERSION", "STORED VERSIONS", "")
	for _, r := range c.Resources {
		storage, list := "", ""
		if d := r.Definition; d != nil {
			storage, list = d.StorageVersion, strings.Join(d.StoredVersions, ",")
		}
		if len(r.Versions) == 0 {
			t.row(resourceName(c, r), "", "", 0, "", storage, list, verdict(r, inspect.Version{Standing: inspect.AtStorage}))
		}
		for _, v := range r.Versions {
			t.row(resourceName(c, r), v.APIVersion, v.Kind, v.Objects, encrypted(v), storage, list, verdict(r, v))
		}
	}
	if len(c.Resources) > 0 {
		t.flush()
	}
	printStale(out, c)
	return out.Flush()
}

// resourceName is the resource, with its prefix where the file has several.
func resourceName(c *inspect.Catalogue, r inspect.Resource) string {
	if r.Prefix == c.Resources[0].Prefix && r.Prefix == c.Resources[len(c.Resources)-1].Prefix {
		return r.Resource
	}
	return r.Prefix + "/ " + r.Resource
}

// encrypted says how many objects which key encrypts.
func encrypted(v inspect.Version) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v.Encrypted)) {
		if v.Encrypted[name] == v.Objects {
			return name
		}
		parts = append(parts, fmt.Sprintf("%s: %d", name, v.Encrypted[name]))
	}
	return strings.Join(parts, ", ")
}

// verdict is what a version means to who runs the cluster; empty where all is well.
func verdict(r inspect.Resource, v inspect.Version) string {
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
	case v.Standing == inspect.Unknown:
		return "cannot be told"
	case r.Orphans:
		return "no CustomResourceDefinition"
	}
	return lists(r)
}

// lists says where status.storedVersions does not tell what is there.
func lists(r inspect.Resource) string {
	if r.Definition == nil {
		return ""
	}
	var missing, idle []string
	found := map[string]bool{r.Definition.StorageVersion: true}
	for _, v := range r.Versions {
		if v.Standing != inspect.Stale && v.Standing != inspect.Unlisted && v.Standing != inspect.AtStorage {
			return ""
		}
		version := v.APIVersion[strings.LastIndex(v.APIVersion, "/")+1:]
		found[version] = true
	}
	for _, version := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(r.Definition.StoredVersions, version) {
			missing = append(missing, version)
		}
	}
	for _, version := range r.Definition.StoredVersions {
		if !found[version] {
			idle = append(idle, version)
		}
	}
	var parts []string
	if len(idle) > 0 {
		parts = append(parts, "nothing is stored at "+strings.Join(idle, ", "))
	}
	if len(missing) > 0 {
		parts = append(parts, "storedVersions lacks "+strings.Join(missing, ", "))
	}
	return strings.Join(parts, "; ")
}

// printStale names the objects that would break, or are broken.
func printStale(w io.Writer, c *inspect.Catalogue) {
	for _, r := range c.Resources {
		for _, v := range r.Versions {
			switch {
			case v.Standing == inspect.Stale:
				fmt.Fprintf(w, "\n%s break when %s is removed from %s:\n", plural(v.Objects, "object"), printable(v.APIVersion), printable(r.Definition.Name))
			case v.Standing == inspect.Unlisted:
				fmt.Fprintf(w, "\n%s at %s cannot be read by an API server, nor any list that they are in:\n", plural(v.Objects, "object"), printable(v.APIVersion))
			default:
				continue
			}
			for _, key := range v.Keys[:min(len(v.Keys), fewKeys)] {
				fmt.Fprintf(w, "   %s\n", printable(key))
			}
			if v.Objects > fewKeys {
				fmt.Fprintf(w, "   ... and %d more; -o json names up to %d\n", v.Objects-fewKeys, inspect.MaxKeys)
			}
		}
	}
}
