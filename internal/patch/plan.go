package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// patch is the transform.
type patch struct {
	choice *objects.Choice
	body   *body

	gained   map[string][]string // by key of a Service, the addresses that it did not have before
	prefixes []string            // of these Services
	freed    objects.Freed
}

// Plan stages the patched objects.
func (p *patch) Plan(ctx context.Context, v *transform.View) error {
	chosen, changed := 0, 0
	for one, err := range p.choice.Candidates(ctx, v, true) {
		if err != nil {
			return err
		}
		if !one.Chosen {
			continue
		}
		o := one.Object
		staged, refused, err := p.one(ctx, v, o)
		if err != nil {
			return err
		}
		chosen++
		count(v.Report(), o, staged, refused)
		if staged || refused {
			changed++
		}
	}
	if chosen > 0 && changed == 0 {
		v.Raise("", codeNothing.Because("objects that have the patched fields with these values already: %d", chosen))
	}
	if err := p.checkAddresses(ctx, v); err != nil {
		return err
	}
	return p.freed.Report(ctx, v)
}

// one stages an object. refused is true after a finding.
func (p *patch) one(ctx context.Context, v *transform.View, o *inspect.Object) (staged, refused bool, err error) {
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
			err = p.moveAddresses(ctx, v, o, transform.AsUpdated(o, content))
		}
	}
	return staged, !staged && len(v.Report().Problems) > before, err
}

// patched returns the patched content as it is to be stored; nil where the patch changes nothing.
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

// identity says which part of what an object is differs, "" for none.
func identity(before, after map[string]any) string {
	for _, path := range [][]string{
		{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"}, {"metadata", "resourceVersion"},
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

// definition returns the content to store for a CustomResourceDefinition that was patched at v1.
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

func count(r *transform.Report, o *inspect.Object, staged, refused bool) {
	apiVersion, _ := o.Content["apiVersion"].(string)
	i := slices.IndexFunc(r.Kinds, func(k transform.KindCount) bool { return k.Kind == o.Type.Kind && k.From == apiVersion })
	if i < 0 {
		i, r.Kinds = len(r.Kinds), append(r.Kinds, transform.KindCount{Kind: o.Type.Kind, From: apiVersion, To: apiVersion})
	}
	switch {
	case staged:
		r.Kinds[i].Migrated++
	case refused:
		r.Kinds[i].Skipped++
	default:
		r.Kinds[i].Unchanged++
	}
}
