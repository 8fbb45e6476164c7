package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reported unpacks a snapshot of testdata/reports.
func reported(t testing.TB, name string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name+".db")
	unzip(t, filepath.Join("..", "testdata", "reports", name+".db.gz"), path)
	return path
}

// everyAPI serves the resources of all versions.
const everyAPI = "--runtime-config=api/all=true"

// TestNatives checks that objects of built-in kinds at old versions, which stop a server or are
// stored differently, get the bytes of an update without changes: for the release of the server,
// and for an older one.
func TestNatives(t *testing.T) {
	t.Parallel()
	for _, release := range []string{"1.36", "1.34"} {
		for _, name := range []string{"p2-removed-pb", "old1-natural", "hpa1-stored-v1"} {
			t.Run(release+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := runMigration(t, "migrate storage-versions", reported(t, name), "--kubernetes", release)
				require.NotEmpty(t, r.Kinds)
				c := startCluster(t, r.restore(t), everyAPI, "--emulated-version="+release)
				before := c.store.waitQuiet(t)
				updated := c.updateAll(t)
				require.Greater(t, updated, len(r.Kinds))
				require.Empty(t, difference(before, c.store.records(t)))
			})
		}
	}
}

// TestNativesLeft is the control: without the migration, updates without changes write.
func TestNativesLeft(t *testing.T) {
	t.Parallel()
	c := startCluster(t, restoreAsIs(t, reported(t, "hpa1-stored-v1")), everyAPI)
	before := c.store.waitQuiet(t)
	c.updateAll(t)
	require.NotEmpty(t, difference(before, c.store.records(t)))
}

// Objects beside those of built-in kinds: a release of Helm, and objects of older API servers.
const (
	oldManifest = "---\napiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n---\napiVersion: autoscaling/v2beta2\n" +
		"kind: HorizontalPodAutoscaler\n---\napiVersion: policy/v1beta1\nkind: PodSecurityPolicy\n" +
		"---\napiVersion: extensions/v1beta1\nkind: Ingress\n"
	helmKey    = "/registry/secrets/default/sh.helm.release.v1.r.v1"
	helmSecret = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"sh.helm.release.v1.r.v1","namespace":"default",` +
		`"uid":"5c0e1c1e-0000-4000-8000-000000000003","labels":{"name":"r","owner":"helm","status":"deployed"}},` +
		`"data":{"release":%q},"type":"helm.sh/release.v1"}`
	serviceKey = "/registry/apiregistration.k8s.io/apiservices/v1beta3.flowcontrol.apiserver.k8s.io"
	oldService = `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{` +
		`"name":"v1beta3.flowcontrol.apiserver.k8s.io","uid":"5c0e1c1e-0000-4000-8000-000000000004",` +
		`"labels":{"kube-aggregator.kubernetes.io/automanaged":"onstart"}},"spec":{"group":"flowcontrol.apiserver.k8s.io",` +
		`"version":"v1beta3","groupPriorityMinimum":16600,"versionPriority":15},"status":{"conditions":[{` +
		`"type":"Available","status":"True","lastTransitionTime":"2023-01-02T03:04:05Z","reason":"Local",` +
		`"message":"Local APIServices are always available"}]}}`
	antiqueKey = "/registry/apiextensions.k8s.io/customresourcedefinitions/antiques.example.com"
	antique    = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1","metadata":{` +
		`"name":"antiques.example.com","uid":"5c0e1c1e-0000-4000-8000-000000000005","generation":1},"spec":{` +
		`"group":"example.com","version":"v1","names":{"plural":"antiques","singular":"antique","kind":"Antique",` +
		`"listKind":"AntiqueList"},"scope":"Namespaced","validation":{"openAPIV3Schema":{"properties":{"spec":{` +
		`"properties":{"n":{"type":"integer"}}}}}},"additionalPrinterColumns":[{"name":"N","type":"integer",` +
		`"JSONPath":".spec.n"}]},"status":{"conditions":[{"type":"NamesAccepted","status":"True",` +
		`"lastTransitionTime":null,"reason":"NoConflicts","message":"no conflicts found"},{"type":"Established",` +
		`"status":"True","lastTransitionTime":"2018-01-02T03:04:05Z","reason":"InitialNamesAccepted","message":"m"}],` +
		`"acceptedNames":{"plural":"antiques","singular":"antique","kind":"Antique","listKind":"AntiqueList"},` +
		`"storedVersions":["v1"]}}`
)

// TestNativesBeside checks that a server finds every kind in the manifest of a Helm release,
// deletes the APIService of a version that it does not serve, and serves an old definition.
func TestNativesBeside(t *testing.T) {
	t.Parallel()
	s := startStore(t, restoreAsIs(t, reported(t, "hpa1-stored-v1")))
	for key, value := range map[string]string{
		helmKey:    fmt.Sprintf(helmSecret, base64.StdEncoding.EncodeToString([]byte(packHelm(t, oldManifest)))),
		serviceKey: oldService, antiqueKey: antique,
	} {
		_, err := s.Put(context.Background(), key, value+"\n")
		require.NoError(t, err)
	}
	in := s.save(t)
	r := runMigration(t, "migrate storage-versions", in, "--kubernetes", "1.36", "--helm", "--remove-unserved")
	c := startCluster(t, r.restore(t))

	secrets := c.client(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, "default")
	secret, err := secrets.Get(context.Background(), "sh.helm.release.v1.r.v1", metav1.GetOptions{})
	require.NoError(t, err)
	kinds := 0
	for document := range strings.SplitSeq(unpackHelm(t, secret.Object), "---\n") {
		var apiVersion, kind string
		if n, _ := fmt.Sscanf(document, "apiVersion: %s\nkind: %s", &apiVersion, &kind); n != 2 {
			continue
		}
		served, err := c.discovery.ServerResourcesForGroupVersion(apiVersion)
		require.NoError(t, err)
		named := func(r metav1.APIResource) bool { return r.Kind == kind }
		require.True(t, slices.ContainsFunc(served.APIResources, named))
		kinds++
	}
	require.Equal(t, 3, kinds)
	eventually(t, time.Minute, "the APIService is deleted", func() error {
		if n := c.store.count(t, serviceKey); n > 0 {
			return fmt.Errorf("%d left", n)
		}
		return nil
	})
	antiques := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "antiques"}
	_, err = c.client(antiques, "").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
}

// packHelm packs a release as Helm does.
func packHelm(t testing.TB, manifest string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": "r", "manifest": manifest})
	require.NoError(t, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return base64.StdEncoding.EncodeToString(packed.Bytes())
}

// unpackHelm returns the manifest of a release in a Secret.
func unpackHelm(t testing.TB, secret map[string]any) string {
	t.Helper()
	packed := []byte(secret["data"].(map[string]any)["release"].(string))
	for range 2 {
		var err error
		packed, err = base64.StdEncoding.DecodeString(string(packed))
		require.NoError(t, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	var release struct{ Manifest string }
	require.NoError(t, json.NewDecoder(r).Decode(&release))
	return release.Manifest
}

// updateAll updates every object without a change, and returns their number. Lists of all kinds
// succeed.
func (c *cluster) updateAll(t testing.TB) (updated int) {
	t.Helper()
	for _, kind := range c.kinds(t) {
		if !kind.listed || !kind.updated {
			continue
		}
		list, err := c.client(kind.GroupVersionResource, "").List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err, kind)
		for i := range list.Items {
			o := &list.Items[i]
			in := c.client(kind.GroupVersionResource, o.GetNamespace())
			if _, err := in.Update(context.Background(), o, metav1.UpdateOptions{}); err != nil {
				t.Logf("%s %s: %v", kind.GroupVersionResource, o.GetName(), err)
				continue
			}
			updated++
		}
	}
	return updated
}
