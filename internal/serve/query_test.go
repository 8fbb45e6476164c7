package serve_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestChunks checks that pages of any size add up to the list and report the remaining count.
func TestChunks(t *testing.T) {
	s := start(t, everyKey)
	client := s.dynamic(t)
	for _, gvr := range s.resources(t) {
		whole, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, limit := range []int64{1, 2, 3, 1000} {
			var items []unstructured.Unstructured
			for next := ""; ; {
				page, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{Limit: limit, Continue: next})
				require.NoError(t, err)
				require.LessOrEqual(t, int64(len(page.Items)), limit)
				items = append(items, page.Items...)
				if next = page.GetContinue(); next == "" {
					break
				}
				require.Equal(t, int64(len(whole.Items)-len(items)), *page.GetRemainingItemCount())
			}
			require.Equal(t, len(whole.Items), len(items), gvr)
			for i := range items {
				require.Equal(t, whole.Items[i], items[i])
			}
		}
	}
	_, err := client.Resource(s.resources(t)[0]).List(t.Context(), metav1.ListOptions{Continue: "x"})
	require.True(t, apierrors.IsBadRequest(err), err)
}

// TestChunksOfNamespace checks that pages of a namespace have each of its objects once.
func TestChunksOfNamespace(t *testing.T) {
	pods := start(t, everyKey).typed(t).CoreV1().Pods("a")
	whole, err := pods.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Greater(t, len(whole.Items), 4)
	var names []string
	for next, page := "", 0; page == 0 || next != ""; page++ {
		require.Less(t, page, len(whole.Items))
		list, err := pods.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: next})
		require.NoError(t, err)
		for _, pod := range list.Items {
			require.Equal(t, whole.Items[len(names)].Name, pod.Name)
			names = append(names, pod.Name)
		}
		next = list.Continue
	}
	require.Len(t, names, len(whole.Items))
}

// TestSelectors checks that labels and fields select like on a live server.
func TestSelectors(t *testing.T) {
	s := start(t, everyKey)
	pods, err := s.typed(t).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	first := pods.Items[0]
	phases := map[string]int{}
	for _, pod := range pods.Items {
		phases[string(pod.Status.Phase)]++
	}
	require.Greater(t, len(phases), 1)
	count := func(opts metav1.ListOptions, namespace string) int {
		list, err := s.typed(t).CoreV1().Pods(namespace).List(t.Context(), opts)
		require.NoError(t, err)
		return len(list.Items)
	}
	for phase, n := range phases {
		if phase != "" {
			require.Equal(t, n, count(metav1.ListOptions{FieldSelector: "status.phase=" + phase}, ""))
			require.Equal(t, len(pods.Items)-n, count(metav1.ListOptions{FieldSelector: "status.phase!=" + phase}, ""))
		}
	}
	require.Equal(t, 1, count(metav1.ListOptions{FieldSelector: "metadata.name=" + first.Name}, first.Namespace))
	require.Equal(t, 0, count(metav1.ListOptions{FieldSelector: "metadata.name=none"}, first.Namespace))
	require.Equal(t, 0, count(metav1.ListOptions{}, "none"))
	require.Equal(t, 0, count(metav1.ListOptions{LabelSelector: "none=such"}, ""))
	require.Equal(t, len(pods.Items), count(metav1.ListOptions{LabelSelector: "none!=such"}, ""))
	_, err = s.typed(t).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nothing=x"})
	require.ErrorContains(t, err, "field label not supported: spec.nothing")
	_, err = s.typed(t).CoreV1().Pods("").Get(t.Context(), "none", metav1.GetOptions{})
	require.Error(t, err)
	_, err = s.typed(t).CoreV1().Pods("a").Get(t.Context(), "none", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), err)
	_, err = s.typed(t).CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/a/pods/run"} {
		for version, want := range map[string]int{"99999999": 504, "x": 400, "1": 200} {
			resp, text := s.do(t, "GET", path+"?resourceVersion="+version, "")
			require.Equal(t, want, resp.StatusCode, text)
		}
	}
	resp, text := s.do(t, "GET", "/api/v1/pods?resourceVersion=1&limit=1", "")
	require.Equal(t, 410, resp.StatusCode, "with a limit the revision is meant exactly: %s", text)
	_, err = s.typed(t).CoreV1().Pods("").List(t.Context(),
		metav1.ListOptions{ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	require.True(t, apierrors.IsResourceExpired(err), err)
}
