package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// concludeWrites reports custom resources that servers read but refuse to write.
func (d *doctor) concludeWrites(ctx context.Context) error {
	return d.eachDefinition(func(at folder, def *definition) error {
		if !def.readable || slices.Contains(d.ignored, codeUpdateRefused.Name) && slices.Contains(d.ignored, codeApplyRefused.Name) {
			return nil
		}
		crd, err := schema.ParseCRD(def.entry.Value)
		if err != nil {
			return nil // reported by define
		}
		storage, err := crd.Version(def.storage)
		if err != nil {
			return nil // a server would not serve it
		}
		for e, err := range d.reader.Live(ctx, keys.Kubernetes{Prefix: at.prefix}.Dir(at.resource)) {
			if err := cmp.Or(err, ctx.Err()); err != nil { // a large object takes long, and Live checks ctx now and then
				return err
			}
			d.checkWrites(ctx, crd, storage, e)
		}
		return nil
	})
}

// checkWrites checks one object as a server reads it. Unreadable ones are reported elsewhere.
func (d *doctor) checkWrites(ctx context.Context, crd *schema.CRD, storage *schema.Version, e *inspect.Entry) {
	obj, _, err := encoding.DecodeObject(e.Value)
	if err != nil || e.Undecryptable != nil || obj["kind"] != crd.GroupKind().Kind {
		return
	}
	_, err = crd.Settle(obj)
	if errors.Is(err, schema.ErrTooLarge) {
		d.raise(e.Key, codeUpdateRefused.Because("its updates cannot be checked: %s", err))
	}
	if err != nil {
		return
	}
	errs := storage.Refused(ctx, obj)
	if reason := schema.Unchecked(errs); reason != "" {
		d.raise(e.Key, codeUpdateRefused.Because("its updates cannot be checked: %s", reason))
		return
	}
	if wrong := schema.Fields(errs); len(wrong) > 0 {
		d.raise(e.Key, codeUpdateRefused.Because("every update is refused for %s", strings.Join(wrong[:min(len(wrong), 20)], ", ")))
	}
	if err := crd.CheckApply(obj); err != nil && !errors.Is(err, schema.ErrNoVersion) { // which managed-fields-version is about
		d.raise(e.Key, codeApplyRefused.Because("every server-side apply is refused: %s", err))
	}
}
