package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// Errors of Storage.
var (
	// ErrNotInRelease is returned for a kind that the release does not have.
	ErrNotInRelease = errors.New("the release does not have the kind")
	// ErrNoForm is returned for a version whose form this build cannot write.
	ErrNoForm = errors.New("this build cannot write the version at which the release stores the kind")
	// ErrUnchecked is returned for such a version of the value itself.
	ErrUnchecked = errors.New("this build does not know the fields of the version; the release decodes it")
	// ErrUnread is returned for an object that API servers cannot convert when they read it.
	ErrUnread = errors.New("an API server cannot read it: the conversion of Kubernetes fails")
)

// Form is an object as API servers of a release store it.
type Form struct {
	GVK   schema.GroupVersionKind
	Value []byte   // not encrypted, in the format of the old value
	Lost  []string // fields that the version cannot hold
	// managers of the entries of managedFields at versions that the release does not serve, as in
	// "kubectl" at policy/v1beta1
	Managers []string
}

// Target is the release that Storage writes for.
type Target struct {
	Minor             int  // release
	KeepManagedFields bool // entries of managedFields that the release drops
}

// Storage returns the form that API servers of the release give an object of a built-in kind in a
// write without changes; nil if the value is that form, and for CustomResourceDefinitions and
// APIServices. Errors besides those above are ErrUnknownKind, ErrUnknownFields and those of Decode.
func (t Target) Storage(kind schema.GroupKind, v encoding.Value) (form *Form, err error) {
	defer func() {
		if recover() != nil { // of a conversion
			form, err = nil, fmt.Errorf("%s: %w", Name(v.GVK), ErrUnread)
		}
	}()
	if inServer(v.GVK) {
		return nil, nil // every release decodes both versions
	}
	to := kind.WithVersion(storageVersion(kind, t.Minor))
	if to.Version == "" {
		return nil, ErrNotInRelease
	}
	like, writes := written(to)
	switch {
	case writes && v.GVK == to:
		v.GVK = like
		return t.rewrite(to, v)
	case !writes && v.GVK == to:
		return nil, fmt.Errorf("%s: %w", Name(to), ErrUnchecked)
	case !writes:
		return nil, fmt.Errorf("%s: %w", Name(to), ErrNoForm)
	}
	obj, err := decodeStored(&v)
	if err != nil {
		return nil, err
	}
	form = &Form{GVK: to, Managers: t.unmanage(obj, kind)}
	setDefaults(obj, t.Minor)
	before, err := Content(obj)
	if err != nil {
		return nil, err
	}
	out, err := convert(obj, like.GroupVersion(), t.Minor)
	if err == nil { // a client writes with the defaults of the version
		out, err = convert(out, like.GroupVersion(), t.Minor)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name(v.GVK), err)
	}
	pruned, err := form.encode(out, like, v.Format, t.Minor)
	if err != nil {
		return nil, err
	}
	back, err := convert(out, v.GVK.GroupVersion(), t.Minor)
	if err != nil {
		return nil, err
	}
	after, err := Content(back)
	for _, content := range []map[string]any{before, after} {
		delete(content, "apiVersion")
		delete(content, "kind")
	}
	form.Lost = lost("", before, after)
	if kept(obj, out) {
		form.Lost = slices.DeleteFunc(form.Lost, func(path string) bool {
			return strings.HasPrefix(path, "metadata.annotations.")
		})
	}
	form.Lost = append(form.Lost, pruned...)
	return form, err
}

// rewrite returns the form of a value at the storage version; nil for no change. v.GVK is the
// version of the Go type.
func (t Target) rewrite(to schema.GroupVersionKind, v encoding.Value) (*Form, error) {
	was, err := envelop(v.Raw, to, v.Format)
	if err != nil {
		return nil, err
	}
	form := &Form{GVK: to}
	v.Raw, form.Lost = prune(v, t.Minor)
	obj, err := decodeStored(&v)
	switch {
	case errors.Is(err, ErrUnknownFields):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnknownFields, err)
	}
	var read []byte // JSON without the defaults
	if v.Format == encoding.FormatJSON {
		if read, err = marshalForm(obj, v.GVK, v.Format); err != nil {
			return nil, err
		}
	}
	form.Managers = t.unmanage(obj, to.GroupKind())
	of, err := internalOf(obj, t.Minor)
	if err == nil {
		decorate(of)
		obj, err = legacyscheme.Scheme.ConvertToVersion(of, v.GVK.GroupVersion())
	}
	if err != nil { // the text may quote a value
		return nil, fmt.Errorf("%s: %w", Name(to), ErrUnread)
	}
	if _, err := form.encode(obj, v.GVK, v.Format, t.Minor); err != nil {
		return nil, err
	}
	if read != nil {
		body, err := marshalForm(obj, v.GVK, v.Format)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(body, read) {
			form.Value = v.Raw // in its own order
		}
	}
	if bytes.Equal(form.Value, was) && len(form.Managers) == 0 {
		return nil, nil
	}
	return form, nil
}

// unmanage removes the entries of managedFields at versions that the release does not serve, unless
// they are kept, and returns their managers. An API server drops them at each write.
func (t Target) unmanage(obj runtime.Object, kind schema.GroupKind) (managers []string) {
	of, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	served := slices.DeleteFunc(slices.Clone(of.GetManagedFields()), func(e metav1.ManagedFieldsEntry) bool {
		gvk := schema.FromAPIVersionAndKind(e.APIVersion, kind.Kind)
		if ServedBy(gvk, t.Minor) {
			return false
		}
		if who := fmt.Sprintf("%q at %s", e.Manager, e.APIVersion); !slices.Contains(managers, who) {
			managers = append(managers, who)
		}
		return true
	})
	if len(managers) > 0 && !t.KeepManagedFields {
		of.SetManagedFields(served)
	}
	return managers
}

// encode encodes an object of the Go type of like, without the fields that a minor release does not
// know. It returns the paths of these fields.
func (form *Form) encode(
	obj runtime.Object, like schema.GroupVersionKind, f encoding.Format, minor int,
) (pruned []string, err error) {
	body, err := marshalForm(obj, like, f)
	if err != nil {
		return nil, err
	}
	body, pruned = prune(encoding.Value{Format: f, GVK: like, Raw: body}, minor)
	if f == encoding.FormatJSON && like != form.GVK {
		if body, err = encoding.Set(body, form.GVK.GroupVersion().String(), "apiVersion"); err != nil {
			return nil, err
		}
	}
	form.Value, err = envelop(body, form.GVK, f)
	return pruned, err
}

// written returns the version whose Go type Storage writes for a version; false for none.
func written(to schema.GroupVersionKind) (like schema.GroupVersionKind, writes bool) {
	if legacyscheme.Scheme.Recognizes(to) {
		return to, true
	}
	return alike()[to], slices.Contains(exactlyAlike(), to)
}

// Rewrites reports whether Storage can take objects of a kind to a minor release.
func Rewrites(gvk schema.GroupVersionKind, minor int) bool {
	kind := gvk.GroupKind()
	version := storageVersion(kind, minor)
	_, writes := written(kind.WithVersion(version))
	_, isAlike := alike()[gvk]
	return version != "" && writes && (isAlike || legacyscheme.Scheme.Recognizes(gvk))
}

// kept reports whether a server finds all fields of an object in another form of the object.
// Conversions keep some fields in annotations, in a text that may differ.
func kept(obj, form runtime.Object) bool {
	before, err := internal(obj.DeepCopyObject())
	after, otherErr := internal(form.DeepCopyObject())
	return err == nil && otherErr == nil && equality.Semantic.DeepDerivative(before, after)
}

// Convert converts JSON content of a built-in kind to another version of the kind, like an API
// server. Errors are ErrUnknownKind, or that the content does not fit the kind.
func Convert(content map[string]any, to schema.GroupVersionKind) (map[string]any, error) {
	apiVersion, _ := content["apiVersion"].(string)
	from := schema.FromAPIVersionAndKind(apiVersion, to.Kind)
	obj, err := legacyscheme.Scheme.New(from)
	if err != nil {
		return nil, unknown(from)
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj) != nil { // may quote a value
		return nil, errUnfit
	}
	if obj, err = convert(obj, to.GroupVersion(), LinkedRelease); err != nil {
		return nil, err
	}
	out, err := Content(obj)
	if err == nil {
		out["apiVersion"], out["kind"] = to.ToAPIVersionAndKind()
	}
	return out, err
}

// storageVersion returns the version at which a release stores a kind, "" for a kind that the
// release does not have.
func storageVersion(kind schema.GroupKind, minor int) string {
	everywhere := true
	for _, s := range kindSpans()[kind] {
		if s.stored.has(minor) {
			return s.version
		}
		everywhere = everywhere && s.stored.last == 0
	}
	if !everywhere || !InRelease(kind, minor) {
		return ""
	}
	for _, gv := range legacyscheme.Scheme.PrioritizedVersionsForGroup(kind.Group) {
		if legacyscheme.Scheme.Recognizes(gv.WithKind(kind.Kind)) {
			return gv.Version
		}
	}
	return ""
}

// alike maps versions of releases before LinkedRelease to a version with all their fields, under
// the same numbers, names and types. Source: the Go types of k8s.io/api 0.20 to 0.37.
func alike() map[schema.GroupVersionKind]schema.GroupVersionKind {
	all := map[schema.GroupVersionKind]schema.GroupVersionKind{}
	for _, row := range []struct{ group, old, new, kinds string }{
		{"autoscaling", "v2beta2", "v2", "HorizontalPodAutoscaler"},
		{"batch", "v2alpha1", "v1beta1", "CronJob"},
		{"certificates.k8s.io", "v1alpha1", "v1beta1", "PodCertificateRequest"},
		{"discovery.k8s.io", "v1alpha1", "v1beta1", "EndpointSlice"},
		{"flowcontrol.apiserver.k8s.io", "v1alpha1", "v1beta1", "FlowSchema PriorityLevelConfiguration"},
		{"networking.k8s.io", "v1alpha1", "v1", "IPAddress ServiceCIDR"},
		{"resource.k8s.io", "v1alpha3", "v1beta1", "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice"},
		{"scheduling.k8s.io", "v1alpha1", "v1", "PriorityClass"},
	} {
		for kind := range strings.FieldsSeq(row.kinds) {
			of := schema.GroupKind{Group: row.group, Kind: kind}
			all[of.WithVersion(row.old)] = of.WithVersion(row.new)
		}
	}
	return all
}

// exactlyAlike lists the versions of alike whose likes have no further fields.
func exactlyAlike() []schema.GroupVersionKind {
	gv := schema.GroupVersion{Group: "networking.k8s.io", Version: "v1alpha1"}
	return []schema.GroupVersionKind{gv.WithKind("IPAddress"), gv.WithKind("ServiceCIDR")}
}

// decodeStored decodes a value without loss, and changes its GVK to the version of the Go type.
func decodeStored(v *encoding.Value) (runtime.Object, error) {
	if !legacyscheme.Scheme.Recognizes(v.GVK) {
		like, is := alike()[v.GVK]
		if !is {
			return nil, unknown(v.GVK)
		}
		v.GVK = like
	}
	if v.Format == encoding.FormatProtobuf {
		obj, err := decodeProtobuf(*v)
		if err != nil {
			return nil, err
		}
		same, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil || !intact(*v, obj, same) {
			return nil, fmt.Errorf("%s: %w", Name(v.GVK), ErrUnknownFields)
		}
		return obj, nil
	}
	content, err := DecodeParsed(*v)
	if err != nil {
		return nil, err
	}
	content["apiVersion"] = v.GVK.GroupVersion().String()
	obj, err := fromContent(*v, content)
	if err != nil {
		return nil, err
	}
	var text struct { // managed fields have an order that content lacks
		Metadata struct {
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if of, is := obj.(metav1.Object); is && json.Unmarshal(v.Raw, &text) == nil {
		of.SetManagedFields(text.Metadata.ManagedFields)
	}
	return obj, nil
}

// convert converts an object to a version, with the defaults of a minor release; both share no
// memory.
func convert(obj runtime.Object, to schema.GroupVersion, minor int) (runtime.Object, error) {
	of, err := internalOf(obj.DeepCopyObject(), minor)
	if err == nil {
		of, err = legacyscheme.Scheme.ConvertToVersion(of, to)
	}
	if err != nil { // the text may quote a value
		return nil, ErrUnread
	}
	return of, nil
}

// marshalForm returns the message of an object, or its JSON text as an API server writes it.
func marshalForm(obj runtime.Object, as schema.GroupVersionKind, f encoding.Format) ([]byte, error) {
	if f == encoding.FormatJSON {
		obj.GetObjectKind().SetGroupVersionKind(as)
		var out bytes.Buffer
		err := json.NewEncoder(&out).Encode(obj)
		return out.Bytes(), err
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj.(interface{ Marshal() ([]byte, error) }).Marshal()
}

// envelop returns the stored value of a message, or of a JSON text, under the name of a kind.
func envelop(body []byte, as schema.GroupVersionKind, f encoding.Format) ([]byte, error) {
	if f == encoding.FormatJSON {
		return body, nil
	}
	apiVersion, kind := as.ToAPIVersionAndKind()
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: body}
	value, err := envelope.Marshal()
	return append([]byte("k8s\x00"), value...), err
}
