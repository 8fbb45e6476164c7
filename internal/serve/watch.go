package serve

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// watcher yields the objects of a page, and then nothing until the client disconnects.
type watcher struct {
	events chan watch.Event
	stop   context.CancelFunc
}

// ResultChan returns the channel of events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *watcher) Stop() { w.stop() }

// newWatch starts a watch. Without a revision, or with SendInitialEvents, it begins with all
// objects; at the revision of the file it sends none.
func (s *store) newWatch(ctx context.Context, opts *metainternalversion.ListOptions) (watch.Interface, error) {
	asked, err := parseRevision(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	selection := metainternalversion.ListOptions{LabelSelector: opts.LabelSelector, FieldSelector: opts.FieldSelector}
	if initial {
		selection.ResourceVersion = opts.ResourceVersion
	}
	q, err := s.newQuery(ctx, &selection)
	if err != nil {
		return nil, err
	}
	if asked > 0 && !initial {
		if err := s.checkCurrent(int64(asked)); err != nil {
			return nil, err
		}
	}
	if !initial && (asked > 0 || opts.SendInitialEvents != nil) {
		q.end = q.first
	}
	p, err := q.page(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{events: make(chan watch.Event), stop: cancel}
	s.source.reading.Go(func() { w.run(ctx, p, initial && opts.AllowWatchBookmarks) })
	return w, nil
}

// checkCurrent refuses a watch from an earlier revision, like a server after a compaction: the file
// may lack objects deleted since then.
func (s *store) checkCurrent(from int64) error {
	if from < s.source.revision {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.source.revision))
	}
	return nil
}

// run sends the events.
func (w *watcher) run(ctx context.Context, p *page, bookmark bool) {
	defer close(w.events)
	send := func(t watch.EventType, obj *unstructured.Unstructured) error {
		select {
		case w.events <- watch.Event{Type: t, Object: obj}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := stream.Each(p.objects(ctx), func(obj *unstructured.Unstructured) error { return send(watch.Added, obj) })
	if err == nil && bookmark {
		err = send(watch.Bookmark, p.bookmark())
	}
	if err != nil && ctx.Err() == nil {
		status := apierrors.NewInternalError(err).Status()
		select {
		case w.events <- watch.Event{Type: watch.Error, Object: &status}:
		case <-ctx.Done():
		}
		return
	}
	if !p.source.Once {
		<-ctx.Done()
	}
}

// bookmark returns the event at the end of the initial objects.
func (s *store) bookmark() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(s.gvk(s.version))
	obj.SetResourceVersion(s.resourceVersion())
	obj.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return obj
}
