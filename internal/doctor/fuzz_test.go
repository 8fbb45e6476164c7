package doctor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// FuzzDecode: decoding any value ends in an object or an error.
func FuzzDecode(f *testing.F) {
	for _, r := range append(healthy(),
		webhooks("Validating", "hook", fail+allKinds),
		object("leases/kube-node-lease/n1", "coordination.k8s.io/v1", "Lease", `},"spec":{"renewTime":"2026-01-01T00:00:00.000000Z"}`),
		record{"", "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a"}, record{"", "\xd9\xd9\xf7\xa1\x61a\x01"},
	) {
		f.Add([]byte(balanced(r.value)))
	}
	ctx := context.Background()
	r := inspect.NewReader(written(f, base(f), healthy()...), nil)
	_, err := r.Layouts(ctx)
	require.NoError(f, err)
	finder, err := machines.NewFinder(ctx, r, "/registry")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, value []byte) {
		e := &inspect.Entry{Key: []byte("/registry/things/x"), Stored: value}
		require.NoError(t, r.Decrypt(ctx, e))
		_, _ = decode(e)
		_, _ = decodeAs[corev1.Namespace](e)
		_, _ = decodeAs[corev1.Service](e)
		_, _ = decodeAs[corev1.Endpoints](e) //nolint:staticcheck // as in the code
		_, _ = decodeAs[corev1.Secret](e)
		_, _ = decodeAs[discoveryv1.EndpointSlice](e)
		_, _ = decodeAs[coordinationv1.Lease](e)
		_, _ = decodeAs[admissionv1.MutatingWebhookConfiguration](e)
		_, _ = decodeAs[machines.APIService](e)
		for _, key := range []string{"cronjobs/team/c", "pods/team/p", "apiextensions.k8s.io/customresourcedefinitions/a.b.c"} {
			e := &inspect.Entry{Key: []byte("/registry/" + key), Stored: value}
			require.NoError(t, r.Decrypt(ctx, e))
			_ = finder.Ties(e)
		}
	})
}
