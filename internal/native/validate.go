package native

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	claimutil "k8s.io/kubernetes/pkg/api/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/apis/core"
	netutils "k8s.io/utils/net"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// ErrUncheckable is returned for an object that makes the validation of Kubernetes fail.
var ErrUncheckable = errors.New("the validation of Kubernetes fails on it")

// Refused returns why an API server of the linked release would refuse an update of an object of a
// built-in kind, as fields with reasons. It ignores rules about the change itself, such as
// immutable fields, and reasons that hold for an update of before without changes; before may not
// fit its kind. No reason quotes a value, or depends on the clock. Errors are ErrUncheckable,
// ErrUnknownKind, or that after does not fit its kind.
func Refused(before, after map[string]any) (reasons []string, err error) {
	c, err := newCheck(after)
	if err != nil {
		return nil, err
	}
	defer c.catch(&err)
	was, is := c.read(before), c.read(after)
	switch {
	case is == nil:
		return nil, errUnfit
	case was == nil:
		return texts(c.update(is, is), after), nil
	}
	wrong := c.update(was, is)
	if len(wrong) == 0 {
		return nil, nil
	}
	// rules about the change do not apply to a write of the same object anew
	wrong = common(wrong, slices.Concat(c.update(is, is), c.create(is)))
	for _, e := range c.update(was, was) {
		if at := slices.IndexFunc(wrong, func(o *field.Error) bool { return sameError(o, e) }); at >= 0 {
			wrong = slices.Delete(wrong, at, at+1)
		}
	}
	return texts(wrong, after), nil
}

// RefusedAgain is Refused for an update of an object without changes. ofStatus has the other
// reasons, which refuse only an update of the status.
func RefusedAgain(content map[string]any) (reasons, ofStatus []string, err error) {
	c, err := newCheck(content)
	if err != nil {
		return nil, nil, err
	}
	defer c.catch(&err)
	is := c.read(content)
	if is == nil {
		return nil, nil, errUnfit
	}
	object, status := c.writes(is, is)
	status = slices.DeleteFunc(status, func(e *field.Error) bool { return has(object, e) })
	return texts(object, content), texts(status, content), nil
}

// check validates objects of a kind.
type check struct {
	strategy
	ctx context.Context
	gvk schema.GroupVersionKind
}

func newCheck(content map[string]any) (*check, error) {
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	c := &check{gvk: schema.FromAPIVersionAndKind(apiVersion, kind)}
	obj, known := defaulted(c.gvk, map[string]any{})
	if !known {
		return nil, unknown(c.gvk)
	}
	if c.strategy, known = strategies()[reflect.TypeOf(obj)]; !known {
		return nil, unknown(c.gvk)
	}
	c.ctx = klog.NewContext(context.Background(), klog.Logger{}) // the library logs values
	c.ctx = request.WithUser(c.ctx, &user.DefaultInfo{Groups: []string{user.SystemPrivilegedGroup}})
	return c, nil
}

// catch turns a panic of a validation into an error.
func (c *check) catch(err *error) {
	if recover() != nil {
		*err = fmt.Errorf("%s: %w", Name(c.gvk), ErrUncheckable)
	}
}

// read returns the object of content as a server reads it; nil if content does not fit the kind.
func (c *check) read(content map[string]any) runtime.Object {
	obj, fits := defaulted(c.gvk, content)
	if !fits {
		return nil
	}
	decorate(obj)
	return obj
}

// decorate sets the fields that a server derives from others when it reads an object.
func decorate(obj runtime.Object) {
	switch obj := obj.(type) {
	case *core.Service:
		readService(&obj.Spec)
	case *core.PersistentVolumeClaim:
		claimutil.NormalizeDataSources(&obj.Spec)
	}
}

// readService sets the fields that a server derives from others. Source: defaultOnRead in
// pkg/registry/core/service/storage.
func readService(s *core.ServiceSpec) {
	if s.Type == core.ServiceTypeExternalName {
		s.InternalTrafficPolicy = nil
		return
	}
	if len(s.ClusterIPs) == 0 && s.ClusterIP != "" {
		s.ClusterIPs = []string{s.ClusterIP}
	}
	if len(s.IPFamilies) > 0 {
		return
	}
	for _, ip := range s.ClusterIPs {
		if s.IPFamilies = append(s.IPFamilies, core.IPv4Protocol); netutils.IsIPv6String(ip) {
			s.IPFamilies[len(s.IPFamilies)-1] = core.IPv6Protocol
		}
	}
	if s.ClusterIP == core.ClusterIPNone && len(s.Selector) == 0 {
		s.IPFamilies = []core.IPFamily{core.IPv4Protocol, core.IPv6Protocol}
	}
	policy := core.IPFamilyPolicySingleStack
	if len(s.IPFamilies) > 1 {
		policy = core.IPFamilyPolicyRequireDualStack
	}
	s.IPFamilyPolicy = &policy
}

// update returns the errors of an update from old to obj, followed by an update of the status.
func (c *check) update(old, obj runtime.Object) field.ErrorList {
	object, status := c.writes(old, obj)
	return append(object, status...)
}

// writes is update, with the errors of each write.
func (c *check) writes(old, obj runtime.Object) (object, status field.ErrorList) {
	changed := obj.DeepCopyObject()
	object = c.write(c.object, "", old.DeepCopyObject(), changed)
	if c.status != nil {
		status = c.write(c.status, "status", changed, obj.DeepCopyObject())
	}
	return object, status
}

// create returns the errors of obj as a new object, followed by a first update of the status.
func (c *check) create(obj runtime.Object) field.ErrorList {
	added := obj.DeepCopyObject()
	wrong := rest.ValidateCreate(c.request("", added), added, c.object)
	if status := reflect.ValueOf(added).Elem().FieldByName("Status"); c.status != nil && status.IsValid() {
		status.SetZero()
		wrong = append(wrong, c.write(c.status, "status", added, obj.DeepCopyObject())...)
	}
	return wrong
}

// write validates an update like rest.BeforeUpdate. It changes obj, as a server does.
func (c *check) write(s rest.RESTUpdateStrategy, subresource string, old, obj runtime.Object) field.ErrorList {
	was, err := meta.Accessor(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	is, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	ctx := c.request(subresource, obj)
	was.SetResourceVersion("1")
	is.SetGeneration(was.GetGeneration())
	s.PrepareForUpdate(ctx, obj, old)
	is.SetResourceVersion("1")
	is.SetUID(was.GetUID())
	is.SetCreationTimestamp(was.GetCreationTimestamp())
	is.SetDeletionTimestamp(was.GetDeletionTimestamp())
	is.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	return rest.ValidateUpdate(ctx, obj, old, s)
}

func (c *check) request(subresource string, obj runtime.Object) context.Context {
	info := &request.RequestInfo{APIGroup: c.gvk.Group, APIVersion: c.gvk.Version, Subresource: subresource}
	if object, err := meta.Accessor(obj); err == nil {
		info.Namespace, info.Name = object.GetNamespace(), object.GetName()
	}
	return request.WithNamespace(request.WithRequestInfo(c.ctx, info), info.Namespace)
}

// common returns the errors in both lists.
func common(some, others field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(some, func(e *field.Error) bool { return !has(others, e) })
}

func has(all field.ErrorList, e *field.Error) bool {
	return slices.ContainsFunc(all, func(o *field.Error) bool { return sameError(o, e) })
}

// sameError reports whether two errors are the same, also at another index of a list.
func sameError(a, b *field.Error) bool {
	return a.Type == b.Type && a.Detail == b.Detail && withoutIndex(a.Field) == withoutIndex(b.Field)
}

func withoutIndex(path string) string { return listIndex().ReplaceAllString(path, "[]") }

var listIndex = pattern.New(`\[[0-9]+\]`)

// texts formats errors without values: fields, each with the reason.
func texts(errs field.ErrorList, content map[string]any) (out []string) {
	for _, e := range errs {
		path, why := e.Field, strings.ToLower(e.Type.String())
		if path == "" || path == "<nil>" {
			path = "the object"
		}
		detail, _, _ := strings.Cut(e.Detail, "\n")
		detail, _, _ = strings.Cut(detail, " (e.g. ") // examples and regular expressions
		detail = strings.TrimRight(detail, ", ")
		if detail != "" && !quotes(detail, content) {
			why = detail
		}
		out = append(out, path+" ("+why+")")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// quotes reports whether a text contains a value of content.
func quotes(text string, content any) bool {
	const shortest = 4 // shorter words say nothing about a value
	switch v := content.(type) {
	case map[string]any:
		for name, child := range v {
			if name != "apiVersion" && name != "kind" && name != "type" && quotes(text, child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(child any) bool { return quotes(text, child) })
	case string:
		return len(v) >= shortest && hasWord(text, v)
	}
	return false
}

// hasWord reports whether a text contains another that neither begins nor ends inside a word.
func hasWord(text, word string) bool {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for before, after, found := strings.Cut(text, word); found; {
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !isWord(last) && !isWord(next) {
			return true
		}
		before, after, found = strings.Cut(after, word)
	}
	return false
}
