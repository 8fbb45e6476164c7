package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
)

// fewKeys is how many keys of one version are printed for a person; -o json has up to inspect.MaxKeys.
const fewKeys = 5

// printCatalogue prints at which versions objects are stored, and then what is not as it should be.
func printCatalogue(w io.Writer, c *inspect.Catalogue) error {
	out := bufio.NewWriter(w)
	hasKeys := slices.ContainsFunc(c.Resources, func(r inspect.Resource) bool {
		return slices.ContainsFunc(r.Versions, func(v inspect.Version) bool { return len(v.Encrypted) > 0 })
	})
	t, rows, empty := render.NewTable(out), 0, 0
	row := func(resource, at any, objects any, encrypted, storage, list, note string) {
		cells := []any{resource, at, objects, encrypted, storage, list, note}
		if !hasKeys {
			cells = slices.Delete(cells, 3, 4)
		}
		t.Row(cells...)
		rows++
	}
	row("RESOURCE", "STORED AT", "OBJECTS", "ENCRYPTED", "STORAGE VERSION", "STORED VERSIONS", "")
	for _, r := range c.Resources {
		storage, list := "", ""
		if d := r.Definition; d != nil {
			storage, list = d.StorageVersion, strings.Join(d.StoredVersions, ",")
		}
		for _, v := range r.Versions {
			row(resourceName(c, r), storedAt(r, v), v.Objects, encrypted(v), storage, list, verdict(r, v))
		}
		switch {
		case len(r.Versions) > 0:
		case r.Definition.Error == "":
			empty++
		default:
			row(resourceName(c, r), "", 0, "", storage, list, verdict(r, inspect.Version{}))
		}
	}
	if rows > 1 {
		fmt.Fprintln(out)
		t.Flush()
	}
	if empty > 0 {
		fmt.Fprintf(out, "%s without objects; -o json has them too\n", render.Plural(empty, "CustomResourceDefinition"))
	}
	if c.Other > 0 {
		fmt.Fprintf(out, "%s in no folder of a resource\n", render.Plural(c.Other, "key"))
	}
	if printStale(out, c) {
		fmt.Fprintf(out, "\n\"etcdshift migrate storage-versions --dry-run\" tells what it would make of them; docs/storage-versions.md is the guide\n")
	}
	return out.Flush()
}

// resourceName is the resource, with its prefix where the file has several.
func resourceName(c *inspect.Catalogue, r inspect.Resource) string {
	if r.Prefix == c.Resources[0].Prefix && r.Prefix == c.Resources[len(c.Resources)-1].Prefix {
		return r.Resource
	}
	return r.Prefix + "/ " + r.Resource
}

// storedAt is the version, and the kind where the resource does not say it: that of a definition is its objects'.
func storedAt(r inspect.Resource, v inspect.Version) string {
	if r.Definition != nil {
		return v.APIVersion
	}
	return strings.TrimSpace(v.APIVersion + " " + v.Kind)
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
	case v.Standing == inspect.Unknown && r.Definition == nil && v.Kind != "":
		return "broken: not of the kind that its key says"
	case v.Standing == inspect.Unknown:
		return "cannot be told"
	case r.Orphans:
		return "no CustomResourceDefinition"
	}
	return ""
}

// lists says where status.storedVersions does not tell what is there.
func lists(r inspect.Resource) (lines []string) {
	if r.Definition == nil || r.Definition.Error != "" {
		return nil
	}
	found := map[string]int{r.Definition.StorageVersion: 0}
	for _, v := range r.Versions {
		if v.Standing == inspect.Unknown { // it may be at any
			return nil
		}
		found[v.APIVersion[strings.LastIndex(v.APIVersion, "/")+1:]] = v.Objects
	}
	for _, version := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(r.Definition.StoredVersions, version) {
			lines = append(lines, fmt.Sprintf("storedVersions of %s lacks %s: %s there", r.Definition.Name, version, render.Plural(found[version], "object")))
		}
	}
	for _, version := range r.Definition.StoredVersions {
		if _, is := found[version]; !is {
			lines = append(lines, fmt.Sprintf("storedVersions of %s has %s, at which nothing is stored", r.Definition.Name, version))
		}
	}
	return lines
}

// printStale names the objects that would break, or are broken, and lists that do not tell the truth; any is false where there
// are none.
func printStale(w io.Writer, c *inspect.Catalogue) (any bool) {
	for _, r := range c.Resources {
		for _, v := range r.Versions {
			is, have := "breaks", "has"
			if v.Objects != 1 {
				is, have = "break", "have"
			}
			switch v.Standing {
			case inspect.Stale:
				fmt.Fprintf(w, "\n%s %s when %s is removed from %s:\n", render.Plural(v.Objects, "object"), is, render.Printable(v.APIVersion), render.Printable(r.Definition.Name))
			case inspect.Unlisted:
				fmt.Fprintf(w, "\n%s %s %s, a version that %s does not list: no API server reads them, nor any list of them:\n",
					render.Plural(v.Objects, "object"), have, render.Printable(v.APIVersion), render.Printable(r.Definition.Name))
			default:
				continue
			}
			any = true
			for _, key := range v.Keys[:min(len(v.Keys), fewKeys)] {
				fmt.Fprintf(w, "   %s\n", render.Printable(key))
			}
			if v.Objects > fewKeys {
				fmt.Fprintf(w, "   ... and %d more; -o json names up to %d\n", v.Objects-fewKeys, inspect.MaxKeys)
			}
		}
	}
	var lines []string
	for _, r := range c.Resources {
		lines = append(lines, lists(r)...)
	}
	if len(lines) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range lines {
		fmt.Fprintln(w, render.Printable(line))
	}
	return any || len(lines) > 0
}
