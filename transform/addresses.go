package transform

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// gained records the new cluster IPs and node ports of Services.
type gained struct {
	by       map[string][]string // addresses by key of the Service
	prefixes []string            // storage prefixes of these Services
}

func (g *gained) add(o *inspect.Object, after map[string]any) {
	had := machines.Allocated(o.Content)
	added := slices.DeleteFunc(machines.Allocated(after), func(what string) bool { return slices.Contains(had, what) })
	if len(added) == 0 {
		return
	}
	if g.by == nil {
		g.by = map[string][]string{}
	}
	g.by[string(o.Key)] = added
	if !slices.Contains(g.prefixes, o.Parsed.Prefix) {
		g.prefixes = append(g.prefixes, o.Parsed.Prefix)
	}
}

// releaseAddresses deletes the IPAddress objects of cluster IPs that a changed Service released, as
// an API server does. For a new cluster IP, an API server creates the IPAddress when it starts.
func releaseAddresses(ctx context.Context, v *View, o *inspect.Object, after map[string]any) error {
	storage := machines.Storage{Source: v, Prefix: o.Parsed.Prefix}
	held, err := storage.IPAddresses(ctx, o.Parsed, o.Content)
	if err != nil {
		return err
	}
	still, err := storage.IPAddresses(ctx, o.Parsed, after)
	if err != nil {
		return err
	}
	for _, e := range held {
		same := func(other *Entry) bool { return string(other.Key) == string(e.Key) }
		if slices.ContainsFunc(still, same) {
			continue
		}
		if err := v.Delete(ctx, e.Key); err != nil {
			return err
		}
	}
	return nil
}

// CheckAddresses reports Services whose new cluster IP or node port, staged by [View.PutObject],
// belongs to another Service (address-in-use), or is one that no API server allocates
// (invalid-object): the validation of Kubernetes leaves this to the allocators.
func CheckAddresses(ctx context.Context, v *View) error {
	for _, prefix := range v.gained.prefixes {
		storage := machines.Storage{Source: v, Prefix: prefix}
		ranges, err := storage.ServiceCIDRs(ctx)
		if err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(v.gained.by)) {
			if !strings.HasPrefix(key, string(storage.Dir("services", ""))) {
				continue
			}
			for _, what := range v.gained.by[key] {
				if why := machines.Unallocatable(what, ranges); why != "" {
					v.Raise(key, CodeInvalidObject.Because("%s %s", what, why))
				}
			}
		}
		clashes, err := storage.Clashes(ctx)
		if err != nil {
			return err
		}
		for _, clash := range clashes {
			for _, key := range clash.Keys {
				if !slices.Contains(v.gained.by[key], clash.What) {
					continue
				}
				others := slices.DeleteFunc(slices.Clone(clash.Keys), func(other string) bool { return other == key })
				v.Raise(key, CodeAddress.Because("%s is that of %s too", clash.What, strings.Join(others, ", ")))
			}
		}
	}
	return nil
}
