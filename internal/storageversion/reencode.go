package storageversion

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// look reads key and value without decoding the object. It finishes most objects, but none with
// rules if ctx has no budget for them.
func (o *object) look(ctx context.Context, storage keys.Kubernetes, k *kind, opts *Options) {
	var err error
	if o.parsed, err = storage.Parse(o.Key); err != nil {
		o.refuse(codeUnknownKey.Because("%v", err))
	}
	if o.Undecryptable != nil {
		o.refuse(transform.Unreadable(o.Undecryptable))
	}
	if o.refused == nil {
		o.readBytes(k, opts)
	}
	if o.told != nil && (!o.changed || o.told.Accepted(ctx)) {
		o.reached = finished
	}
}

// begin decodes the object as an API server reads it at its stored version.
func (o *object) begin(k *kind, opts *Options) {
	if o.refused != nil || o.told != nil {
		return
	}
	obj, f, err := encoding.DecodeObject(o.Value)
	if err != nil {
		o.refuse(transform.Unreadable(err))
		return
	}
	o.obj, o.format = obj, f
	if bad := o.identify(k, opts); bad != nil {
		o.refuse(bad)
		return
	}
	dropped, err := k.crd.Begin(o.obj)
	if err != nil {
		o.refuseObject(err)
		return
	}
	o.noteDropped(dropped)
	if !k.crd.NeedsWebhook(o.obj) {
		k.crd.Relabel(o.obj)
	}
}

// readBytes fills the object from the value's bytes. If told stays nil, the object has to be
// decoded.
func (o *object) readBytes(k *kind, opts *Options) {
	told, ok := k.crd.Tell(o.Value, o.parsed.Namespace, o.parsed.Name)
	if !ok || opts.AllManagedFields && len(told.Managed) > 0 {
		return
	}
	if told.Version != k.crd.StorageVersion() {
		if o.out, ok = told.Relabelled(); !ok {
			return
		}
		o.changed = true
	}
	o.from, o.entries, o.told = told.Version, told.Managed, &told
}

// identify reads the stored version of the object, and maps a removed version.
func (o *object) identify(k *kind, opts *Options) *finding.Finding {
	apiVersion, _ := o.obj["apiVersion"].(string)
	name, _ := o.obj["kind"].(string)
	gv, err := gvr.ParseGroupVersion(apiVersion)
	if err != nil || gv.WithKind(name).GroupKind() != k.crd.GroupKind() {
		return codeUnknownKind.Because("it is a %s %s, in the folder of %s", apiVersion, name, k.row.CRD)
	}
	o.from = gv.Version
	if _, found := o.obj["metadata"]; !found {
		return finding.Undecodable.Because("it has no metadata: an API server panics where it reads it")
	}
	o.compareKey(k)
	if k.lists(gv.Version) {
		return nil
	}
	mapped := ""
	for _, m := range opts.Mappings {
		if m.Group != gv.Group || m.Old != gv.Version {
			continue
		}
		o.mapping = m
		if k.lists(m.New) {
			o.obj["apiVersion"] = k.apiVersion(m.New)
			return nil
		}
		mapped = fmt.Sprintf(" (%s, which is to take its place, is not listed either)", m.New)
	}
	return codeUnlistedVersion.Because("it is stored at %s, and %s lists only %s%s: an API server fails to read it, "+
		"and with it every list of the kind",
		gv.Version, k.row.CRD, versions(k.crd.Object()), mapped)
}

// compareKey warns of an object with another name than its key: a server serves the object under
// the name in the value.
func (o *object) compareKey(k *kind) {
	scope := k.crd.Object().Spec.Scope
	if (scope == apiextensionsv1.NamespaceScoped) != (o.parsed.Namespace != "") {
		o.warn(codeKeyMismatch.Because("the key does not fit the scope of %s, which is %s", k.row.CRD, scope))
	}
	meta, _ := o.obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	if name == o.parsed.Name && namespace == o.parsed.Namespace {
		return
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	o.warn(codeKeyMismatch.Because(`it names itself "%s", unlike its key`, name))
}

// finish encodes a converted object.
func (o *object) finish(ctx context.Context, k *kind, opts *Options) {
	if o.refused == nil && o.told == nil {
		o.rewrite(k, opts)
	}
	if o.refused == nil && o.changed {
		o.validate(ctx, k)
	}
	o.obj = nil
}

// rewrite encodes a decoded object.
func (o *object) rewrite(k *kind, opts *Options) {
	dropped, err := k.crd.Finish(o.obj, opts.Mode)
	if err != nil && o.converted && !errors.Is(err, schema.ErrTooLarge) {
		o.refuse(codeConversionFailed.Because("the converter's answer: %v", err))
		return
	}
	if err != nil {
		o.refuseObject(err)
		return
	}
	if len(dropped) > 0 && !o.converted {
		dropped, err = o.stored(k, dropped)
	}
	o.noteDropped(dropped)
	if err == nil {
		err = o.encode(k, opts)
	}
	if err != nil {
		o.refuse(finding.Undecodable.Because("%v", err))
	}
}

// encode encodes an object at the storage version, with its managedFields repaired.
func (o *object) encode(k *kind, opts *Options) (err error) {
	var renamed, emptied []string
	if !opts.KeepManagedFields {
		if o.relabelled, renamed, err = k.crd.RelabelManagedFields(o.obj, opts.AllManagedFields); err != nil {
			return err
		}
	}
	if o.changed = o.from != k.crd.StorageVersion(); !o.changed {
		if o.out, err = encode(o.obj, o.format, opts.Mode); err != nil {
			return err
		}
		o.changed = !bytes.Equal(o.out, o.Value)
	}
	if o.changed && !opts.KeepManagedFields && opts.Mode == schema.Settled {
		o.out = nil // once its managedFields are rewritten
		if emptied, err = k.crd.RewriteManagedFields(o.obj); err != nil {
			return err
		}
	}
	if o.out == nil {
		if o.out, err = encode(o.obj, o.format, opts.Mode); err != nil {
			return err
		}
	}
	o.entries = entries(o.obj, k.crd.StorageVersion())
	if len(renamed) > 0 {
		o.warn(codeFieldsLost.Because("the webhook may have renamed fields that no longer have an owner: those of %s",
			listManagers(renamed)))
	}
	if len(emptied) > 0 {
		o.warn(codeFieldsLost.Because("no server reads its managedFields, and none is left: those of %s",
			listManagers(emptied)))
	}
	return nil
}

// listManagers returns the names of the managers of managedFields entries, each once.
func listManagers(managers []string) string {
	names := sets.New[string]()
	for _, name := range managers {
		names.Insert(strconv.Quote(name))
	}
	return "manager " + finding.List(sets.List(names))
}

// stored returns the dropped paths that the stored value has. A dropped default of the stored
// version is not a loss, since no client wrote the field.
func (o *object) stored(k *kind, dropped []string) ([]string, error) {
	obj, _, err := encoding.DecodeObject(o.Value)
	if err != nil {
		return nil, err
	}
	from := cmp.Or(o.mapping.New, o.from)
	obj["apiVersion"] = k.apiVersion(from)
	version, err := k.crd.Version(from)
	if err != nil {
		return nil, err
	}
	if _, err := version.Coerce(obj); err != nil { // its drops were noted before
		return nil, err
	}
	lost, err := k.crd.Convert(obj, k.crd.StorageVersion())
	if err != nil {
		return nil, err
	}
	written := sets.New(lost...)
	return slices.DeleteFunc(dropped, func(path string) bool { return !written.Has(path) }), nil
}

// encode returns the bytes of obj. A server writes the float -0.0 as -0 and reads -0 as the integer
// 0: only the bytes of the integer are stable.
func encode(obj map[string]any, f encoding.Format, m schema.Mode) ([]byte, error) {
	out, err := encoding.EncodeObject(obj, f)
	if err != nil || m != schema.Settled || f != encoding.FormatJSON {
		return out, err
	}
	if !slices.ContainsFunc([]string{"-0,", "-0]", "-0}"},
		func(s string) bool { return bytes.Contains(out, []byte(s)) }) {
		return out, nil
	}
	if obj, f, err = encoding.DecodeObject(out); err != nil {
		return nil, err
	}
	return encoding.EncodeObject(obj, f)
}

// entries returns the versions in managedFields of the object, except one, each once.
func entries(obj map[string]any, but string) (named []string) {
	meta, _ := obj["metadata"].(map[string]any)
	list, _ := meta["managedFields"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		apiVersion, _ := entry["apiVersion"].(string)
		if _, version, ok := strings.Cut(apiVersion, "/"); ok && version != but && !slices.Contains(named, version) {
			named = append(named, version)
		}
	}
	return named
}

// validate warns of fields that the storage version's schema forbids, and of writes that a server
// therefore refuses. Servers validate only writes: the object stays readable.
func (o *object) validate(ctx context.Context, k *kind) {
	warn := func(f *finding.Finding) { o.invalid = append(o.invalid, f) }
	v, err := k.crd.Version(k.crd.StorageVersion())
	if err != nil || o.told != nil && o.told.Accepted(ctx) {
		return
	}
	if o.told != nil {
		o.obj, _, _ = encoding.DecodeObject(o.out) // Tell has checked that the bytes decode
	}
	if err := v.Default(o.obj); err != nil { // schema.Pure leaves defaults to the server
		warn(codeViolatesSchema.Because("it was not validated at %s: %v", k.crd.StorageVersion(), err))
		return
	}
	errs := v.Validate(ctx, o.obj)
	if reason := schema.Unchecked(errs); reason != "" {
		warn(codeViolatesSchema.Because("it was not validated at %s: %s", k.crd.StorageVersion(), reason))
		return
	}
	refused := v.Refused
	if len(errs) == 0 {
		refused = v.RefusedValid
	}
	if wrong := schema.Fields(errs); len(wrong) > 0 {
		warn(codeViolatesSchema.Because("the schema of %s does not allow %s", k.crd.StorageVersion(),
			finding.List(wrong)))
	}
	if wrong := schema.Fields(refused(ctx, o.obj)); len(wrong) > 0 {
		warn(codeUpdateRefused.Because("an API server refuses every update of it for %s", finding.List(wrong)))
	}
	if err := k.crd.CheckApply(o.obj); err != nil {
		warn(codeApplyRefused.Because("an API server refuses every server-side apply of it: %v", err))
	}
}

// noteDropped notes fields that the schemas drop. Nulls without meaning are not a loss.
func (o *object) noteDropped(paths []string) {
	known := sets.New(o.dropped...)
	for _, p := range paths {
		if null, ok := strings.CutSuffix(p, "=null"); ok {
			o.warn(codeDroppedNull.Because("%s is null, which means nothing there", null))
		} else if !known.Has(p) {
			known.Insert(p)
			o.dropped = append(o.dropped, p)
		}
	}
}
