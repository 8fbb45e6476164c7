package inspect

import (
	"errors"
	"fmt"
	"sync"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// errKind is returned for a value without apiVersion or kind.
var errKind = errors.New("apiVersion and kind are not those of an object")

// CheckValue returns why an API server cannot read a decrypted value under its key: it is broken,
// of another kind than the key, or has a field of another type than its kind. One such value makes
// every list of its kind fail. Of a custom resource the text alone is checked, not the schema. The
// error is native.ErrUnknownKind for protobuf of a kind that this build does not know, and never
// quotes the value.
func CheckValue(key keys.Key, value []byte) error {
	v, err := encoding.Parse(value)
	if err != nil {
		return err
	}
	return checkValue(key, v)
}

// Check is CheckValue of an entry. A key of no layout is an error too.
func (e *Entry) Check() error {
	if e.check == nil {
		err := e.checkOnce()
		e.check = &err
	}
	return *e.check
}

// CheckKind returns why a value is not of the kind of its key; nil for a key of no layout and for a
// value that is no object.
func (e *Entry) CheckKind() error {
	key, err := e.ParseKey()
	v, err2 := e.ParseValue()
	if err != nil || err2 != nil || v.GVK.Kind == "" {
		return nil
	}
	return checkKind(key, v.GVK)
}

func (e *Entry) checkOnce() error {
	key, err := e.ParseKey()
	if err != nil {
		return err
	}
	v, err := e.ParseValue()
	if err != nil {
		return err
	}
	return checkValue(key, v)
}

func checkValue(key keys.Key, v encoding.Value) error {
	if v.GVK.Version == "" || v.GVK.Kind == "" {
		return fmt.Errorf("%s value: %w", v.Format, errKind)
	}
	if err := checkDecoded(key, v); err != nil || v.Format != encoding.FormatProtobuf {
		return err
	}
	return native.Check(v)
}

// checkDecoded checks a value that native.Decode accepts, which decodes the fields of protobuf, not
// of JSON.
func checkDecoded(key keys.Key, v encoding.Value) error {
	if err := checkKind(key, v.GVK); err != nil || key.IsCustom() || v.Format == encoding.FormatProtobuf {
		return err
	}
	return native.Check(v)
}

// checkKind compares the kind of a value with the resource of its key: the kind of a built-in one,
// the group of a custom one. A resource that this build does not know has no built-in kind.
func checkKind(key keys.Key, is gvr.GroupVersionKind) error {
	gr := key.Resource
	want, builtin := builtinKinds()[gr]
	of := "one of " + gr.String()
	switch {
	case keys.IsRecord(gr):
		return nil
	case key.IsCustom():
		if is.Group == gr.Group {
			return nil
		}
	case !builtin:
		if !isBuiltinKind(is.GroupKind()) {
			return nil
		}
	case is.Kind == want && servesKind(gr, is.Group):
		return nil
	default:
		if of = "a " + want; gr.Group != "" {
			of += " of " + gr.Group
		}
	}
	apiVersion, kind := is.ToAPIVersionAndKind()
	return fmt.Errorf("a %s %s, under the key of %s", apiVersion, kind, of)
}

// Misplaced says how the name or namespace of an object differs from its key, "" if neither does.
// Records of API servers have names of their own.
func Misplaced(key keys.Key, name, namespace string) string {
	switch {
	case key.Resource.Group == "" && !keys.IsBuiltin(key.Resource) || keys.IsRecord(key.Resource):
	case name != key.Name:
		return fmt.Sprintf("the object in it is named %q", name)
	case namespace != key.Namespace:
		return fmt.Sprintf("the object in it is in namespace %q", namespace)
	}
	return ""
}

func isBuiltinKind(is gvr.GroupKind) bool {
	for gr, kind := range builtinKinds() {
		if kind == is.Kind && servesKind(gr, is.Group) {
			return true
		}
	}
	return false
}

// servesKind reports whether objects of the resource were ever stored in the group. Many kinds
// began in extensions.
func servesKind(gr gvr.GroupResource, group string) bool {
	return group == gr.Group || group == "extensions" || otherGroups()[gvr.GroupResource{Group: group, Resource: gr.Resource}] == gr
}

// builtinKinds are the kinds of the built-in resources.
var builtinKinds = sync.OnceValue(func() map[gvr.GroupResource]string {
	kinds := map[gvr.GroupResource]string{}
	for _, t := range Builtins() {
		kinds[t.Resource] = t.Kind
	}
	return kinds
})
