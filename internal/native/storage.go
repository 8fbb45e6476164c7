package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
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
)

// Form is an object as API servers of a release store it.
type Form struct {
	GVK   schema.GroupVersionKind
	Value []byte   // not encrypted, in the format of the old value
	Lost  []string // fields that the version cannot hold
}

// Storage returns the form that API servers of a minor release give an object of a built-in kind in
// a write without changes; nil if the version is already that of the release and the release knows
// all fields, and for CustomResourceDefinitions and APIServices. Errors besides those above are
// ErrUnknownKind, ErrUnknownFields and those of Decode.
func Storage(kind schema.GroupKind, v encoding.Value, minor int) (*Form, error) {
	if inServer(v.GVK) {
		return nil, nil // every release decodes both versions
	}
	to := kind.WithVersion(storageVersion(kind, minor))
	if to.Version == "" {
		return nil, ErrNotInRelease
	}
	like, writes := written(to)
	if v.GVK == to {
		v.GVK = like
		body, lost := prune(v, minor)
		if !writes || bytes.Equal(body, v.Raw) {
			return nil, nil
		}
		value, err := envelop(body, to, v.Format)
		return &Form{GVK: to, Value: value, Lost: lost}, err
	}
	if !writes {
		return nil, fmt.Errorf("%s: %w", name(to), ErrNoForm)
	}
	obj, err := decodeStored(&v)
	if err != nil {
		return nil, err
	}
	setDefaults(obj)
	before, err := Content(obj)
	if err != nil {
		return nil, err
	}
	out, err := convert(obj, like.GroupVersion())
	if err == nil { // a client writes with the defaults of the version
		out, err = convert(out, like.GroupVersion())
	}
	if err != nil {
		return nil, err
	}
	form := &Form{GVK: to}
	pruned, err := form.encode(out, like, v.Format, minor)
	if err != nil {
		return nil, err
	}
	back, err := convert(out, v.GVK.GroupVersion())
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
	if obj, err = convert(obj, to.GroupVersion()); err != nil {
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
			return nil, fmt.Errorf("%s: %w", name(v.GVK), ErrUnknownFields)
		}
		return obj, nil
	}
	content, err := DecodeParsed(*v)
	if err != nil {
		return nil, err
	}
	content["apiVersion"] = v.GVK.GroupVersion().String()
	return fromContent(*v, content)
}

// convert converts an object to a version; both share no memory.
func convert(obj runtime.Object, to schema.GroupVersion) (runtime.Object, error) {
	of, err := internal(obj.DeepCopyObject())
	if err == nil {
		of, err = legacyscheme.Scheme.ConvertToVersion(of, to)
	}
	if err != nil { // the text may quote a value
		return nil, errUnfit
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

// lost returns the paths of the values in a that b lacks or changes.
func lost(path string, a, b any) (paths []string) {
	if reflect.DeepEqual(a, b) { // also deep content, such as that of managedFields
		return nil
	}
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(a)) {
			paths = append(paths, lost(path+"."+name, a[name], b[name])...)
		}
		return paths
	case []any:
		b, _ := b.([]any)
		for i := range a {
			var other any
			if i < len(b) {
				other = b[i]
			}
			paths = append(paths, lost(fmt.Sprintf("%s[%d]", path, i), a[i], other)...)
		}
		return paths
	}
	if b == nil && reflect.ValueOf(a).IsZero() {
		return nil
	}
	return []string{strings.TrimPrefix(path, ".")}
}
