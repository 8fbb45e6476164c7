package transform

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
)

// ErrNoPrefix is returned where no key shows a storage prefix and none was named.
var ErrNoPrefix = errors.New("no key in the snapshot shows the storage prefix of a Kubernetes API server; name it with --prefix")

// ErrEmptyPrefix is returned for a named storage prefix that no key lies below: one that is spelled wrong would hold nothing to
// migrate, and not say so.
var ErrEmptyPrefix = errors.New("no key lies below the storage prefix")

// Below yields what Live yields below a storage prefix, but for what lies below a longer prefix: that belongs to another API server.
func (v *View) Below(ctx context.Context, prefix string) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		all, err := v.Prefixes(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		var nested [][]byte
		for _, other := range all {
			if strings.HasPrefix(other, prefix+"/") {
				nested = append(nested, []byte(other+"/"))
			}
		}
		for e, err := range v.Live(ctx, []byte(prefix+"/")) {
			if err == nil && slices.ContainsFunc(nested, func(dir []byte) bool { return bytes.HasPrefix(e.Key, dir) }) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// KubernetesPrefixes are the storage prefixes for a migration to work on: those that Options name, or all there are. One that is
// kcp's is refused, since there each logical cluster has definitions of its own; one of OpenShift's own API servers, which
// hold no custom resources, is left with a warning. It returns ErrNoPrefix where nothing shows any.
func (v *View) KubernetesPrefixes(ctx context.Context) ([]string, error) {
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	var prefixes []string
	for _, s := range layouts.Storages() {
		switch {
		case len(v.prefixes) > 0 && !slices.Contains(v.prefixes, s.Prefix):
		case s.Flavour.KCP():
			v.Raise(s.Prefix+"/", CodeUnsupportedLayout.Because("it is laid out as a %s, "+
				"where each logical cluster has definitions of its own; this migration is for Kubernetes", s.Flavour))
		case s.Flavour == keys.FlavourOpenShift:
			v.Raise(s.Prefix+"/", CodeUnsupportedLayout.Because(
				"OpenShift's own API servers store here; this migration does not look at it").Decided(finding.Noted))
		default:
			if err := v.anyBelow(ctx, s); err != nil {
				return nil, err
			}
			prefixes = append(prefixes, s.Prefix)
		}
	}
	if len(layouts.Storages()) == 0 {
		return nil, ErrNoPrefix
	}
	return prefixes, nil
}

// anyBelow looks for a key below a prefix that nothing but its name vouches for.
func (v *View) anyBelow(ctx context.Context, s keys.Storage) error {
	if s.Flavour != keys.FlavourUnknown {
		return nil
	}
	layouts, err := v.Layouts(ctx)
	if err != nil {
		return err
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
