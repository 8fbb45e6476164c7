package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// patch is the transform of the command.
type patch struct {
	choice *objects.Choice
	body   *body

	freed *objects.Freed
}

// Plan stages the patched objects.
func (p *patch) Plan(ctx context.Context, v *transform.View) error {
	p.freed = objects.NewFreed(v)
	chosen, changed := 0, 0
	types, err := v.Types(ctx)
	if err != nil {
		return err
	}
	for one, err := range p.choice.Candidates(ctx, v, types, true) {
		if err != nil {
			return err
		}
		if !one.Chosen {
			continue
		}
		o := one.Object
		staged, refused, err := p.patchObject(ctx, v, o)
		if err != nil {
			return err
		}
		chosen++
		switch count := objects.CountOf(v.Report(), o); {
		case staged:
			count.Migrated++
		case refused:
			count.Skipped++
		default:
			count.Unchanged++
		}
		if staged || refused {
			changed++
		}
	}
	if chosen > 0 && changed == 0 {
		v.Raise("", codeNothing.Because("objects that have the patched fields with these values already: %d", chosen))
	}
	if err := transform.CheckAddresses(ctx, v); err != nil {
		return err
	}
	return p.freed.Report(ctx)
}

// patchObject stages the patch of one object. refused is true after a finding.
func (p *patch) patchObject(
	ctx context.Context, v *transform.View, o *inspect.Object,
) (staged, refused bool, err error) {
	content, why := p.patched(ctx, o)
	if why != nil {
		v.Raise(string(o.Key), why)
		return false, true, nil
	}
	if content == nil {
		return false, false, nil
	}
	before := len(v.Report().Problems)
	staged, err = v.PutObject(ctx, o, content)
	if staged && err == nil {
		p.freed.Changed(o.Entry, content)
		if o.Type.Name() == "services" {
			reportAddresses(v, o, transform.AsUpdated(o, content))
		}
	}
	return staged, !staged && len(v.Report().Problems) > before, err
}

// patched returns the content to store, or nil if the patch changes nothing.
func (p *patch) patched(ctx context.Context, o *inspect.Object) (map[string]any, *finding.Finding) {
	if o.Err != nil {
		return nil, transform.Unreadable(o.Err)
	}
	if p.body.kind == typeStrategic && !o.Type.Builtin {
		return nil, codeStrategic.Because("%s is a custom resource: give --type merge or --type json", o.Type.Name())
	}
	seen := *o
	seen.AsServed()
	after, err := p.body.apply(seen.Content, like(&seen))
	if err != nil {
		return nil, codeFailed.Because("%v", err)
	}
	if why := identity(seen.Content, after); why != "" {
		return nil, codeIdentity.Because("%s", why)
	}
	switch {
	case reflect.DeepEqual(seen.Content, after):
		return nil, nil
	case o.Type.Resource == keys.DefinitionType():
		return definition(ctx, o, after)
	}
	return after, nil
}

// identity returns the path of the first changed identity field, or "".
func identity(before, after map[string]any) string {
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"},
		{"metadata", "resourceVersion"},
	} {
		was, is := at(before, path), at(after, path)
		switch {
		case reflect.DeepEqual(was, is), is == nil && path[len(path)-1] == "resourceVersion":
		case was == nil:
			return fmt.Sprintf("%s is not set, and would be %s", strings.Join(path, "."), quoted(is))
		case is == nil:
			return fmt.Sprintf("%s is %s, and would be removed", strings.Join(path, "."), quoted(was))
		default:
			return fmt.Sprintf("%s is %s, and would be %s", strings.Join(path, "."), quoted(was), quoted(is))
		}
	}
	return ""
}

func quoted(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "another value"
	}
	return string(text)
}

func at(content map[string]any, path []string) (value any) {
	value = content
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// definition returns the content to store for a CustomResourceDefinition patched at v1.
func definition(ctx context.Context, o *inspect.Object, v1 map[string]any) (map[string]any, *finding.Finding) {
	crd, err := schema.ParseCRD(o.Value)
	if err != nil {
		return nil, transform.Unreadable(err)
	}
	value, err := crd.Update(ctx, v1)
	if err != nil {
		return nil, transform.CodeInvalidObject.Because("%v", err)
	}
	content, _, err := encoding.DecodeObject(value)
	if err != nil {
		return nil, transform.CodeInvalidObject.Because("%v", err)
	}
	return content, nil
}

// reportAddresses reports a patched Service without the cluster IP or node ports of its type.
func reportAddresses(v *transform.View, o *inspect.Object, after map[string]any) {
	if is := at(after, []string{"spec", "type"}); is != "ExternalName" &&
		is != at(o.Content, []string{"spec", "type"}) &&
		at(after, []string{"spec", "clusterIP"}) == nil {
		v.Raise(string(o.Key), codeNoAddress.Because("its type is %v", is))
	}
	if lacksNodePorts(after) && !lacksNodePorts(o.Content) {
		const choose = "after the restore, have an API server choose the node ports of Service %[1]s/%[2]s: " +
			"kubectl -n %[1]s get service %[2]s -o json | kubectl replace -f -"
		v.Report().AddStep(choose, o.Parsed.Namespace, o.Parsed.Name)
	}
}

// lacksNodePorts reports whether an API server would allocate node ports during an update.
func lacksNodePorts(content map[string]any) bool {
	var s corev1.Service
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &s) != nil {
		return false
	}
	needs := s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true)
	return needs && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == 0 })
}
