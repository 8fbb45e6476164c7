package transform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
)

// ErrNoPrefix is returned if no key shows a storage prefix and --prefix names none.
var ErrNoPrefix = errors.New("no key in the snapshot shows the storage prefix of a Kubernetes API server; name it " +
	"with --prefix")

// ErrEmptyPrefix is returned for a named storage prefix without keys: the name may be misspelled.
var ErrEmptyPrefix = finding.WithLasting(errors.New("no key lies below the storage prefix"),
	"\"etcdshift status\" lists the storage prefixes of a file; --prefix takes whole ones")

// Below is [View.Live] below a storage prefix, without the keys of another API server below a
// longer prefix.
func (v *overlay) Below(ctx context.Context, prefix string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for e, err := range v.Live(ctx, []byte(prefix+"/")) {
			if err == nil && e.Layout() != keys.Layout(keys.Kubernetes{Prefix: prefix}) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Storages returns the storages of the prefixes of [Options], or else all. The error is
// [ErrNoPrefix] if no key shows a prefix.
func (v *overlay) Storages(ctx context.Context) (out []keys.Storage, err error) {
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	all := layouts.Storages()
	for _, s := range all {
		if len(v.prefixes) > 0 && !slices.Contains(v.prefixes, s.Prefix) {
			continue
		}
		if err := v.anyBelow(ctx, s, layouts); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	if len(all) == 0 {
		return nil, ErrNoPrefix
	}
	return out, nil
}

// KubernetesPrefixes returns the storage prefixes for a migration, among those of [View.Storages].
// A kcp prefix is refused, since each logical cluster has its own definitions. A prefix of
// OpenShift's own API servers, which hold no custom resources, is reported as a warning.
func (v *View) KubernetesPrefixes(ctx context.Context) (prefixes []string, err error) {
	storages, err := v.Storages(ctx)
	for _, s := range storages {
		switch {
		case s.Flavour.KCP():
			v.Raise(s.Prefix+"/", CodeUnsupportedLayout.Because("it is laid out as a %s, "+
				"where each logical cluster has definitions of its own; this command is for Kubernetes", s.Flavour))
		case s.Flavour == keys.FlavourOpenShift:
			v.Raise(s.Prefix+"/", CodeUnsupportedLayout.Because(
				"OpenShift's own API servers store here; this migration does not look at it").Decided(finding.Noted))
		default:
			prefixes = append(prefixes, s.Prefix)
		}
	}
	return prefixes, err
}

// anyBelow returns [ErrEmptyPrefix] if a prefix is known only from a flag and has no keys.
func (v *overlay) anyBelow(ctx context.Context, s keys.Storage, layouts keys.Layouts) error {
	if s.Flavour != keys.FlavourUnknown {
		return nil
	}
	for rec, err := range v.src.Live(ctx, []byte(s.Prefix+"/")) {
		if err != nil {
			return err
		}
		if of, found := layouts.Of(rec.Key); found && of.Prefix == s.Prefix { // not below a longer prefix
			return nil
		}
	}
	return fmt.Errorf("%w %q", ErrEmptyPrefix, cmp.Or(s.Prefix, "/"))
}
