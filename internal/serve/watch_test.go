package serve_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
)

// TestWatch checks that a watch begins with the selected objects, and then sends nothing.
func TestWatch(t *testing.T) {
	s := start(t, everyKey)
	pods, err := s.typed(t).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = s.typed(t).CoreV1().Pods("").Watch(t.Context(),
		metav1.ListOptions{ResourceVersion: pods.Items[0].ResourceVersion})
	require.True(t, apierrors.IsResourceExpired(err), "deletions since then are not known: %v", err)
	for name, tc := range map[string]struct {
		opts     metav1.ListOptions
		events   int
		bookmark bool
	}{
		"all":      {metav1.ListOptions{}, len(pods.Items), false},
		"any":      {metav1.ListOptions{ResourceVersion: "0"}, len(pods.Items), false},
		"from now": {metav1.ListOptions{ResourceVersion: pods.ResourceVersion, AllowWatchBookmarks: true}, 0, false},
		"watch list": {metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, len(pods.Items), true},
	} {
		for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf",
			"application/cbor"} {
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

// TestWatchEach checks that a watch of any resource yields each object, by lines and by WebSocket
// messages, as Headlamp uses.
func TestWatchEach(t *testing.T) {
	for _, path := range []string{everyKey, flipped, calico} {
		s := start(t, path)
		for _, gvr := range s.resources(t) {
			list, err := s.dynamic(t).Resource(gvr).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			query := objectPath(gvr) +
				"?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
			for name, next := range map[string]func() watchEvent{"lines": s.lines(t, query),
				"messages": s.messages(t, query)} {
				for range list.Items {
					require.Equal(t, "ADDED", next().Type, "%s %s", name, gvr)
				}
				require.Equal(t, "BOOKMARK", next().Type, "%s %s", name, gvr)
			}
		}
	}
}

type watchEvent struct{ Type string }

// lines reads the events of a watch, one a line.
func (s *served) lines(t testing.TB, path string) func() (e watchEvent) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Host+path, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.server.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	events := json.NewDecoder(resp.Body)
	return func() (e watchEvent) {
		require.NoError(t, events.Decode(&e), path)
		return e
	}
}

// messages reads the events of a watch over a WebSocket.
func (s *served) messages(t testing.TB, path string) func() (e watchEvent) {
	t.Helper()
	config, err := websocket.NewConfig("wss"+strings.TrimPrefix(s.Host, "https")+path, s.Host)
	require.NoError(t, err)
	config.Protocol, config.Header = []string{"base64.binary.k8s.io"}, http.Header{"Authorization": {"Bearer " + token}}
	config.TlsConfig = s.server.Client().Transport.(*http.Transport).TLSClientConfig
	conn, err := config.DialContext(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return func() (e watchEvent) {
		require.NoError(t, websocket.JSON.Receive(conn, &e), path)
		return e
	}
}

// TestInformers checks that concurrent informers of all resources have every object.
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
