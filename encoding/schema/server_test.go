package schema

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

const crdDir = "/registry/apiextensions.k8s.io/customresourcedefinitions/"

// TestAgainstARealServer creates our CRDs on an API server, and has the server check the objects of
// TestValidate.
func TestAgainstARealServer(t *testing.T) {
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "server.etcd"))
	api := apitest.Start(t, etcd.URL)
	for _, name := range []string{pool, policy, widget} {
		crd := readCRD(t, name)
		created := crd.Object().DeepCopy()
		created.ObjectMeta = metav1.ObjectMeta{Name: created.Name, Labels: created.Labels,
			Annotations: created.Annotations}
		_, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), created,
			metav1.CreateOptions{})
		require.NoError(t, err)
		requireStoredAsByServer(t, etcd, crd)
		apitest.WaitEstablished(t, api, created.Name)
	}
	for _, c := range verdicts() {
		t.Run(c.name, func(t *testing.T) {
			crd := readCRD(t, c.crd)
			v := version(t, crd, crd.StorageVersion())
			obj := object(t, c.object)
			want := serverVerdict(t, resource(api, v, obj), obj)
			v.Prune(obj)
			require.NoError(t, v.Default(obj))
			var got []string
			for _, err := range v.Validate(t.Context(), obj) {
				got = append(got, err.Field+": "+err.ErrorBody())
			}
			require.ElementsMatch(t, want, got)
		})
	}
}

// requireStoredAsByServer compares Stored with the value of the create itself, still in etcd's
// history, before the writes of the server's controllers.
func requireStoredAsByServer(t *testing.T, etcd *etcdtest.Server, crd *CRD) {
	t.Helper()
	key := crdDir + crd.Object().Name
	now, err := etcd.Client.Get(t.Context(), key)
	require.NoError(t, err)
	first, err := etcd.Client.Get(t.Context(), key, clientv3.WithRev(now.Kvs[0].CreateRevision))
	require.NoError(t, err)
	server := string(first.Kvs[0].Value)

	var meta struct {
		Metadata struct {
			UID               string          `json:"uid"`
			CreationTimestamp time.Time       `json:"creationTimestamp"`
			ManagedFields     json.RawMessage `json:"managedFields"`
		} `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal([]byte(server), &meta))
	ours, err := crd.Stored(meta.Metadata.UID, meta.Metadata.CreationTimestamp.Add(999*time.Millisecond))
	require.NoError(t, err)
	server = strings.Replace(server, `,"managedFields":`+string(meta.Metadata.ManagedFields), "", 1)
	require.Equal(t, server, string(ours), "status included")
}

func resource(api *apitest.API, v *Version, obj map[string]any) dynamic.ResourceInterface {
	client := api.Dynamic.Resource(v.crd.GroupResource().WithVersion(v.spec.Name))
	if namespace := (&unstructured.Unstructured{Object: obj}).GetNamespace(); namespace != "" {
		return client.Namespace(namespace)
	}
	return client
}

// serverVerdict returns the errors of a real create (as a dry run), one per line, or nil if the
// server creates the object.
func serverVerdict(t *testing.T, client dynamic.ResourceInterface, obj map[string]any) []string {
	t.Helper()
	_, err := client.Create(context.Background(), &unstructured.Unstructured{Object: obj},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		lines = append(lines, cause.Field+": "+cause.Message)
	}
	return lines
}

// TestInjectedCRDsAreServed puts Stored bytes into an etcd before the API server starts, and checks
// that the server establishes and serves the CRDs.
func TestInjectedCRDsAreServed(t *testing.T) {
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "injected.etcd"))
	names := map[string]string{}
	for name, uid := range map[string]string{
		pool:   "00000000-0000-4000-8000-000000000001",
		policy: "00000000-0000-4000-8000-000000000002",
		widget: "00000000-0000-4000-8000-000000000003",
	} {
		crd := readCRD(t, name)
		data, err := crd.Stored(uid, time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC))
		require.NoError(t, err)
		_, err = etcd.Client.Put(t.Context(), crdDir+crd.Object().Name, string(data))
		require.NoError(t, err)
		names[crd.Object().Name] = uid
	}
	widgets := readCRD(t, widget)
	stored := text(t, settled(t, widgets, "cr/untouched.before"))
	const widgetKey = "/registry/demo.example.com/widgets/default/untouched"
	put, err := etcd.Client.Put(t.Context(), widgetKey, stored)
	require.NoError(t, err)

	api := apitest.Start(t, etcd.URL)
	for name, uid := range names {
		apitest.WaitEstablished(t, api, name)
		crd, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name,
			metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, uid, string(crd.UID))
		require.Equal(t, int64(1), crd.Generation)
		require.Equal(t, crd.Spec.Names.Plural, crd.Status.AcceptedNames.Plural)
	}

	// A no-op update is not written: the stored object already has the server's form.
	client := api.Dynamic.Resource(widgets.GroupResource().WithVersion("v1beta1")).Namespace("default")
	obj, err := client.Get(t.Context(), "untouched", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = client.UpdateStatus(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = client.Update(t.Context(), obj, metav1.UpdateOptions{})
	require.NoError(t, err)
	kept, err := etcd.Client.Get(t.Context(), widgetKey)
	require.NoError(t, err)
	require.Equal(t, stored, string(kept.Kvs[0].Value))
	require.Equal(t, put.Header.Revision, kept.Kvs[0].ModRevision)
}

func settled(t *testing.T, crd *CRD, name string) map[string]any {
	t.Helper()
	obj := object(t, string(readFile(t, name)))
	_, err := crd.Rewrite(obj)
	require.NoError(t, err)
	return obj
}

func TestStoredRefusesTheUnusable(t *testing.T) {
	const good = `{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}`
	const structural = `,"preserveUnknownFields":false`
	for data, want := range map[string]string{
		crdOf(good, structural): "",
		crdOf(good, ""):         "",
		crdOf(strings.Replace(good, `"storage":true`, `"storage":false`, 1),
			structural): "0 storage versions",
		crdOf(good+`,`+strings.Replace(good, "v1", "v2", 1),
			structural): "2 storage versions",
		crdOf(strings.Replace(good, `{"type":"object"}`, `{}`, 1),
			structural): "type: Required value",
		crdOf(strings.Replace(good, `{"type":"object"}`, `{"type":"object","properties":{"a":{}}}`, 1),
			structural): "properties[a].type: Required value",
		crdOf(`{"name":"v1","served":true,"storage":true}`,
			structural): "no schema",
		strings.Replace(crdOf(good, structural), `"things.example.com"`, `"other.example.com"`,
			1): `name must be "things.example.com"`,
	} {
		_, err := parseCRD(t, data).Stored("uid", time.Time{})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
	_, err := readCRD(t, "crd.etcd").Stored("", time.Now())
	require.ErrorContains(t, err, "no uid")
	require.False(t, errors.Is(err, ErrNoVersion))
}
