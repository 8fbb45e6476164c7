package serve_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestSubresources checks that status returns the object, and scale its replicas and selector.
func TestSubresources(t *testing.T) {
	s := start(t, everyKey)
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf",
		"application/cbor"} {
		s.ContentType, s.AcceptContentTypes = contentType, contentType
		deployments, err := s.typed(t).AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, deployments.Items)
		for _, d := range deployments.Items {
			scale, err := s.typed(t).AppsV1().Deployments(d.Namespace).GetScale(t.Context(), d.Name,
				metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, []any{d.Name, d.UID, d.ResourceVersion, d.CreationTimestamp},
				[]any{scale.Name, scale.UID, scale.ResourceVersion, scale.CreationTimestamp})
			require.Equal(t, []any{*d.Spec.Replicas, d.Status.Replicas},
				[]any{scale.Spec.Replicas, scale.Status.Replicas})
			require.Equal(t, metav1.FormatLabelSelector(d.Spec.Selector), scale.Status.Selector)
		}
		controllers, err := s.typed(t).CoreV1().ReplicationControllers("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, c := range controllers.Items {
			scale, err := s.typed(t).CoreV1().ReplicationControllers(c.Namespace).GetScale(t.Context(), c.Name,
				metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, metav1.FormatLabelSelector(metav1.SetAsLabelSelector(c.Spec.Selector)),
				scale.Status.Selector)
		}
	}
	s.ContentType, s.AcceptContentTypes = "", ""
	pods := s.dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("a")
	want, err := pods.Get(t.Context(), "half", metav1.GetOptions{})
	require.NoError(t, err)
	got, err := pods.Get(t.Context(), "half", metav1.GetOptions{}, "status")
	require.NoError(t, err)
	require.Equal(t, want, got)
	for path, sub := range map[string]string{"none": "status", "half": "scale"} {
		_, err = pods.Get(t.Context(), path, metav1.GetOptions{}, sub)
		require.True(t, apierrors.IsNotFound(err), err)
	}
	resp, text := s.do(t, "PUT", "/api/v1/namespaces/a/pods/half/status", "{}")
	require.Equal(t, 405, resp.StatusCode, text)
}

// TestCustomStatus checks that custom resources have the subresource status if their definition has
// one.
func TestCustomStatus(t *testing.T) {
	answered := map[bool]int{}
	for _, path := range []string{everyKey, flipped, calico} {
		s := start(t, path)
		crds, err := s.dynamic(t).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
			Resource: "customresourcedefinitions"}).
			List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, item := range crds.Items {
			var crd apiextensionsv1.CustomResourceDefinition
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &crd))
			for _, v := range crd.Spec.Versions {
				objects := s.dynamic(t).Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name,
					Resource: crd.Spec.Names.Plural})
				list, err := objects.List(t.Context(), metav1.ListOptions{Limit: 1})
				if !v.Served || err != nil || len(list.Items) == 0 {
					continue
				}
				want := v.Subresources != nil && v.Subresources.Status != nil
				got, err := objects.Namespace(list.Items[0].GetNamespace()).Get(t.Context(), list.Items[0].GetName(),
					metav1.GetOptions{}, "status")
				require.Equal(t, want, err == nil, "%s %s: %v", crd.Name, v.Name, err)
				require.Equal(t, !want, apierrors.IsNotFound(err))
				if answered[want]++; want {
					require.Equal(t, list.Items[0].Object, got.Object)
				}
			}
		}
	}
	require.Positive(t, answered[true])
	require.Positive(t, answered[false])
}
