package serve

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// list is a list whose objects are read while it is encoded. For the handlers of k8s.io/apiserver
// it is a runtime.Unstructured, whose items they ask for one by one.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	items iter.Seq2[*unstructured.Unstructured, error]
	typed bool // a kind whose items do not say what they are
}

func (s *store) newList(ctx context.Context, p *page) *list {
	l := &list{typed: s.CRD == nil && s.Resource != apiServices(), items: p.objects(ctx)}
	l.APIVersion, l.Kind = s.gvk(s.version).GroupVersion().String(), listKind(s.Kind)
	l.ResourceVersion, l.Continue, l.RemainingItemCount = s.resourceVersion(), p.next, p.remaining
	return l
}

// objects reads the objects of a page one after the other.
func (p *page) objects(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return stream.Of(func(yield func(*unstructured.Unstructured) error) error {
		for _, i := range p.records {
			if err := ctx.Err(); err != nil {
				return err
			}
			var obj *unstructured.Unstructured
			err := p.source.reader.Snapshot().Guard(func() error {
				e, err := p.entry(ctx, int(i))
				if err == nil {
					obj, err = p.read(e, p.version)
				}
				return err
			})
			if err == nil {
				err = yield(obj)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// EachListItem calls fn with each item.
func (l *list) EachListItem(fn func(runtime.Object) error) error {
	return stream.Each(l.items, func(o *unstructured.Unstructured) error { return fn(o) })
}

// EachListItemWithAlloc is EachListItem: every item is its own.
func (l *list) EachListItemWithAlloc(fn func(runtime.Object) error) error { return l.EachListItem(fn) }

// IsList is false: the handlers would set the items of a list without any.
func (l *list) IsList() bool { return false }

// DeepCopyObject returns l, which nothing changes.
func (l *list) DeepCopyObject() runtime.Object { return l }

// NewEmptyInstance is part of runtime.Unstructured, and never called.
func (l *list) NewEmptyInstance() runtime.Unstructured { return &list{items: l.items} }

// UnstructuredContent is part of runtime.Unstructured, and never called.
func (l *list) UnstructuredContent() map[string]any { return map[string]any{} }

// SetUnstructuredContent is part of runtime.Unstructured, and never called.
func (l *list) SetUnstructuredContent(map[string]any) {}

// collect reads the whole list.
func (l *list) collect() (*unstructured.UnstructuredList, error) {
	out := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": l.APIVersion, "kind": l.Kind}}
	out.SetResourceVersion(l.ResourceVersion)
	if l.Continue != "" {
		out.SetContinue(l.Continue)
	}
	out.SetRemainingItemCount(l.RemainingItemCount)
	return out, stream.Each(l.items, func(o *unstructured.Unstructured) error {
		out.Items = append(out.Items, *o)
		return nil
	})
}
