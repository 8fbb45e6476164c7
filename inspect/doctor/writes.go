package doctor

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// checkWrites reports custom resources that servers read, and do not let anyone write.
func (d *doctor) checkWrites() {
	if slices.Contains(d.ignored, codeUpdateRefused.Name) && slices.Contains(d.ignored, codeApplyRefused.Name) {
		return
	}
	for at, def := range d.definitions.all() {
		crd, err := schema.ParseCRD(def.entry.Value)
		if err != nil {
			continue // reported by define
		}
		storage, err := crd.Version(def.storage)
		if err != nil {
			continue // no server serves it
		}
		for e, err := range d.reader.Live(d.ctx, keys.Kubernetes{Prefix: at.prefix}.Dir(at.resource)) {
			if d.failed(cmp.Or(err, d.ctx.Err())) { // a large object takes long, and Live looks at ctx now and then
				return
			}
			d.checkWrite(crd, storage, e)
		}
	}
}

// checkWrite checks whether servers accept writes of an object. Others report unreadable ones.
func (d *doctor) checkWrite(crd *schema.CRD, storage *schema.Version, e *inspect.Entry) {
	obj, _, err := encoding.DecodeObject(e.Value)
	if err != nil || e.Undecryptable != nil || obj["kind"] != crd.GroupKind().Kind {
		return
	}
	_, err = crd.Settle(obj)
	if errors.Is(err, schema.ErrTooLarge) {
		d.raise(e.Key, codeUpdateRefused, "its updates cannot be checked: %s", err)
	}
	if err != nil {
		return
	}
	errs := storage.Refused(d.ctx, obj)
	if reason := schema.Unchecked(errs); reason != "" {
		d.raise(e.Key, codeUpdateRefused, "its updates cannot be checked: %s", reason)
		return
	}
	if wrong := schema.Fields(errs); len(wrong) > 0 {
		d.raise(e.Key, codeUpdateRefused, "every update is refused for %s", strings.Join(wrong[:min(len(wrong), 20)], ", "))
	}
	if err := crd.CheckApply(obj); err != nil && !errors.Is(err, schema.ErrNoVersion) { // a managed-fields-version
		d.raise(e.Key, codeApplyRefused, "every server-side apply is refused: %s", err)
	}
}
