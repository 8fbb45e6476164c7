package serve_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
)

// TestWatch: a watch begins with the objects it is asked for, and is quiet then.
func TestWatch(t *testing.T) {
	s := start(t, everyKey)
	pods, err := s.typed(t).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	newest := ""
	for _, pod := range pods.Items {
		newest = max(newest, pod.ResourceVersion) // of three digits each
	}
	for name, tc := range map[string]struct {
		opts     metav1.ListOptions
		events   int
		bookmark bool
	}{
		"all":        {metav1.ListOptions{}, len(pods.Items), false},
		"any":        {metav1.ListOptions{ResourceVersion: "0"}, len(pods.Items), false},
		"from now":   {metav1.ListOptions{ResourceVersion: pods.ResourceVersion, AllowWatchBookmarks: true}, 0, false},
		"since":      {metav1.ListOptions{ResourceVersion: newest}, 0, false},
		"watch list": {metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, len(pods.Items), true},
	} {
		for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf", "application/cbor"} {
			s.ContentType, s.AcceptContentTypes = contentType, contentType
			w, err := s.typed(t).CoreV1().Pods("").Watch(t.Context(), tc.opts)
			require.NoError(t, err)
			events, bookmarks := 0, 0
			for quiet := false; !quiet; {
				select {
				case e := <-w.ResultChan():
					switch e.Type {
					case watch.Bookmark:
						bookmarks++
						meta := e.Object.(metav1.ObjectMetaAccessor).GetObjectMeta()
						require.Equal(t, "true", meta.GetAnnotations()[metav1.InitialEventsAnnotationKey])
						require.Equal(t, pods.ResourceVersion, meta.GetResourceVersion())
					case watch.Added:
						events++
						require.Zero(t, bookmarks)
					default:
						require.Fail(t, "unexpected", "%s: %v", name, e)
					}
				case <-time.After(time.Second / 2):
					quiet = true
				}
			}
			w.Stop()
			require.Equal(t, tc.events, events, name)
			require.Equal(t, tc.bookmark, bookmarks == 1, name)
		}
	}
}

// TestInformers: informers of every resource at once have every object.
func TestInformers(t *testing.T) {
	s := start(t, everyKey)
	client := s.dynamic(t)
	dynamics := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	resources := s.resources(t)
	require.Greater(t, len(resources), 50)
	for _, gvr := range resources {
		dynamics.ForResource(gvr).Informer()
	}
	typed := informers.NewSharedInformerFactory(s.typed(t), 0)
	pods, services := typed.Core().V1().Pods().Informer(), typed.Core().V1().Services().Informer()
	dynamics.Start(t.Context().Done())
	typed.Start(t.Context().Done())
	for gvr, synced := range dynamics.WaitForCacheSync(t.Context().Done()) {
		require.True(t, synced, gvr)
	}
	typed.WaitForCacheSync(t.Context().Done())
	for _, gvr := range resources {
		list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, dynamics.ForResource(gvr).Informer().GetStore().List(), len(list.Items), gvr)
	}
	require.NotEmpty(t, pods.GetStore().List())
	require.NotEmpty(t, services.GetStore().List())
}
