package serve

import (
	"cmp"
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// list is a list whose objects are read during encoding. The handlers of k8s.io/apiserver see a
// runtime.Unstructured and iterate over the items.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	ctx   context.Context // of the request
	page  *page
	items iter.Seq2[*unstructured.Unstructured, error]
	count int
	typed bool // a kind whose items lack apiVersion and kind
}

func (s *store) newList(ctx context.Context, p *page) *list {
	l := &list{typed: s.CRD == nil && s.Resource != apiServices(), ctx: ctx, page: p, items: p.objects(ctx),
		count: len(p.records)}
	l.APIVersion, l.Kind = s.gvk(s.version).GroupVersion().String(), listKind(s.Kind)
	l.ResourceVersion, l.Continue, l.RemainingItemCount = s.resourceVersion(), p.next, p.remaining
	return l
}

// objects reads the objects of a page in their order.
func (p *page) objects(ctx context.Context) iter.Seq2[*unstructured.Unstructured, error] {
	return inOrder(ctx, p, func(rec *snapshot.Record) (*unstructured.Unstructured, error) { return p.object(ctx, rec) })
}

// inOrder calls read for each record of a page, in parallel unless other requests read ahead, and
// yields the results in order.
func inOrder[T any](ctx context.Context, p *page, read func(*snapshot.Record) (T, error)) iter.Seq2[T, error] {
	return stream.Of(func(yield func(T) error) error {
		emit := func(r *reading[T]) error {
			if r.err != nil {
				return r.err
			}
			return yield(r.value)
		}
		work := func(r *reading[T]) { r.value, r.err = read(r.record) }
		select {
		case p.source.ahead <- struct{}{}:
			defer func() { <-p.source.ahead }()
			item := func(rec *snapshot.Record) (reading[T], int) { return reading[T]{record: rec}, len(rec.Value) }
			return stream.Each(stream.Ahead(p.source.reader.Snapshot().Guard, p.stored(ctx), item, work), emit)
		default:
		}
		return stream.Each(p.stored(ctx), func(rec *snapshot.Record) error {
			r := &reading[T]{record: rec}
			if err := p.source.reader.Snapshot().Guard(func() error { work(r); return nil }); err != nil {
				return err
			}
			return emit(r)
		})
	})
}

// reading is the result of reading a record.
type reading[T any] struct {
	record *snapshot.Record
	value  T
	err    error
}

// mostAhead bounds the concurrent requests with read-ahead: each may hold some megabytes of
// objects.
const mostAhead = 2

// stored yields the records of a page.
func (p *page) stored(ctx context.Context) iter.Seq2[*snapshot.Record, error] {
	return stream.Of(func(yield func(*snapshot.Record) error) error {
		for _, i := range p.records {
			rec, err := p.folder.records.At(int(i))
			if err = cmp.Or(ctx.Err(), err); err == nil {
				err = yield(rec)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// object reads the object of a record.
func (p *page) object(ctx context.Context, rec *snapshot.Record) (*unstructured.Unstructured, error) {
	e, err := p.source.reader.Entry(ctx, rec)
	if err != nil {
		return nil, err
	}
	return p.read(e, p.version)
}

// EachListItem calls fn with each item.
func (l *list) EachListItem(fn func(runtime.Object) error) error {
	return stream.Each(l.items, func(o *unstructured.Unstructured) error { return fn(o) })
}

// EachListItemWithAlloc is EachListItem: items share no memory.
func (l *list) EachListItemWithAlloc(fn func(runtime.Object) error) error { return l.EachListItem(fn) }

// IsList returns false: otherwise the handlers would set empty items.
func (l *list) IsList() bool { return false }

// DeepCopyObject returns l, which is immutable.
func (l *list) DeepCopyObject() runtime.Object { return l }

// NewEmptyInstance is part of runtime.Unstructured, and never called.
func (l *list) NewEmptyInstance() runtime.Unstructured { return &list{items: l.items} }

// UnstructuredContent is part of runtime.Unstructured, and never called.
func (l *list) UnstructuredContent() map[string]any { return map[string]any{} }

// SetUnstructuredContent is part of runtime.Unstructured, and never called.
func (l *list) SetUnstructuredContent(map[string]any) {}
