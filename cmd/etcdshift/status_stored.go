package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/render"
)

// fewKeys is the number of keys of a version printed for people; -o json has inspect.MaxKeys.
const fewKeys = 5

// printCatalogue prints the versions of stored objects, then objects and lists that need attention.
func printCatalogue(p *render.Page, c *inspect.Catalogue) {
	hasKeys := slices.ContainsFunc(c.Resources, func(r inspect.Resource) bool {
		return slices.ContainsFunc(r.Versions, func(v inspect.Version) bool { return len(v.Encrypted) > 0 })
	})
	var rows [][]any
	row := func(cells ...any) {
		if !hasKeys {
			cells = slices.Delete(cells, 3, 4)
		}
		rows = append(rows, cells)
	}
	empty := 0
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
	if len(rows) > 1 {
		p.Printf("\n")
		p.Table(rows[0], rows[1:]...)
	}
	if empty > 0 {
		p.Printf("%s without objects; -o json has them too\n", render.Plural(empty, "CustomResourceDefinition"))
	}
	if c.Other > 0 {
		p.Printf("%s in no folder of a resource\n", render.Plural(c.Other, "key"))
	}
	if printStale(p, c) {
		p.Printf("\n\"etcdshift migrate storage-versions --dry-run\" tells what it would make of them; docs/storage-versions.md is the guide\n")
	}
}

// resourceName returns the resource, with its prefix where the file has several.
func resourceName(c *inspect.Catalogue, r inspect.Resource) string {
	if r.Prefix == c.Resources[0].Prefix && r.Prefix == c.Resources[len(c.Resources)-1].Prefix {
		return r.Resource
	}
	return r.Prefix + "/ " + r.Resource
}

// storedAt returns the version, and the kind of objects without a definition.
func storedAt(r inspect.Resource, v inspect.Version) string {
	if r.Definition != nil {
		return v.APIVersion
	}
	return strings.TrimSpace(v.APIVersion + " " + v.Kind)
}

// encrypted names the keys of encrypted objects, with counts where there are several.
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

// verdict returns what a version means for the cluster; "" where all is well.
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

// lists returns where status.storedVersions does not match the objects.
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

// printStale names objects and lists that break, now or with the next change of a CRD.
func printStale(p *render.Page, c *inspect.Catalogue) (found bool) {
	var lines []string
	for _, r := range c.Resources {
		lines = append(lines, lists(r)...)
		for _, v := range r.Versions {
			is, have := "breaks", "has"
			if v.Objects != 1 {
				is, have = "break", "have"
			}
			switch v.Standing {
			case inspect.Stale:
				p.Printf("\n%s %s when %s is removed from %s:\n", render.Plural(v.Objects, "object"), is, v.APIVersion, r.Definition.Name)
			case inspect.Unlisted:
				p.Printf("\n%s %s %s, a version that %s does not list: no API server reads them, nor any list of them:\n",
					render.Plural(v.Objects, "object"), have, v.APIVersion, r.Definition.Name)
			default:
				continue
			}
			found = true
			p.First("   ", v.Keys, fewKeys, v.Objects, fmt.Sprintf("; -o json names up to %d", inspect.MaxKeys))
		}
	}
	if len(lines) > 0 {
		p.Printf("\n")
	}
	p.Lines("", lines)
	return found || len(lines) > 0
}
