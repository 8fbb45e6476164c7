package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	calicoV1 = "crd.projectcalico.org"
	calicoV3 = "projectcalico.org"
	copiers  = 10 // of Calico's DatastoreMigration controller
)

// calico compares the copies that Calico's controller makes with the command on the same file.
func (b liveBench) calico(in string) {
	c := startCluster(b, restoreAsIs(b, in))
	c.serveCalico(b)
	c.idle(b)
	copied := 0
	took := c.during(b, `group="`+calicoV3+`"`, func() (client float64) {
		client, copied = c.copyCalico(b)
		return client
	})
	c.stop()
	b.print(fmt.Sprintf("the copies of Calico's controller, %d records", copied), took)
	var ours []cost
	for i := range b.runs {
		out := filepath.Join(b.TempDir(), fmt.Sprintf("calico-%d.db", i))
		ours = append(ours, b.command(etcdshift(b), []string{"migrate", "calico-v3", in, out}))
	}
	b.print(fmt.Sprintf("etcdshift migrate calico-v3, %d records", copied), ours...)
}

// serveCalico lets the API server serve the v3 types by their definitions.
func (c *cluster) serveCalico(t testing.TB) {
	t.Helper()
	ctx, services := context.Background(), schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
		Resource: "apiservices"}
	require.NoError(t, c.objects.Resource(services).Delete(ctx, "v3."+calicoV3, metav1.DeleteOptions{}))
	handles := schema.GroupVersionResource{Group: calicoV3, Version: "v3", Resource: "ipamhandles"}
	eventually(t, startTimeout, "types of Calico v3", func() error {
		_, err := c.objects.Resource(handles).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	})
}

// copyCalico makes the calls of the controller, whose module no proxy serves: for each type it
// lists the v1 objects, looks for each v3 object and creates it, ten at a time. Left out are its
// locks, its wait of ten seconds for them, and the owners that it updates afterwards.
func (c *cluster) copyCalico(t testing.TB) (client float64, copied int) {
	t.Helper()
	ctx, before, done := context.Background(), ownCPU(t), atomic.Int64{}
	_, lists, err := c.discovery.ServerGroupsAndResources()
	require.NoError(t, err)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		if version.Group != calicoV1 {
			continue
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || resource.Name == "clusterinformations" {
				continue
			}
			from, err := c.objects.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			var workers sync.WaitGroup
			for part := range slices.Chunk(from.Items, max(1, (len(from.Items)+copiers-1)/copiers)) {
				workers.Go(func() {
					for i := range part {
						if err := c.copyToV3(ctx, resource.Name, &part[i]); err != nil {
							t.Errorf("%s %s: %v", resource.Name, part[i].GetName(), err)
							return
						}
						done.Add(1)
					}
				})
			}
			workers.Wait()
		}
	}
	require.False(t, t.Failed())
	return ownCPU(t) - before, int(done.Load())
}

// copyToV3 creates the v3 object of a v1 object.
func (c *cluster) copyToV3(ctx context.Context, plural string, from *unstructured.Unstructured) error {
	meta, kind := metav1.ObjectMeta{Name: from.GetName(), Labels: from.GetLabels()}, from.GetKind()
	if text := from.GetAnnotations()["projectcalico.org/metadata"]; text != "" {
		if err := json.Unmarshal([]byte(text), &meta); err != nil {
			return err
		}
	}
	if kind == "IPAMConfig" {
		kind, plural = "IPAMConfiguration", "ipamconfigurations"
	}
	to := &unstructured.Unstructured{Object: map[string]any{"spec": from.Object["spec"]}}
	to.SetAPIVersion(calicoV3 + "/v3")
	to.SetKind(kind)
	to.SetName(from.GetName())
	if strings.HasSuffix(kind, "Policy") && meta.Name != "" {
		to.SetName(meta.Name)
	}
	to.SetNamespace(from.GetNamespace())
	to.SetLabels(meta.Labels)
	to.SetAnnotations(meta.Annotations)
	if spec, _ := to.Object["spec"].(map[string]any); kind == "BlockAffinity" {
		spec["deleted"] = spec["deleted"] == "true"
	}
	client := c.client(schema.GroupVersionResource{Group: calicoV3, Version: "v3", Resource: plural}, to.GetNamespace())
	if _, err := client.Get(ctx, to.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("is there already, or: %w", err)
	}
	for begin := time.Now(); ; time.Sleep(time.Second) {
		_, err := client.Create(ctx, to, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || time.Since(begin) > startTimeout { // policies wait for their parameters
			return err
		}
	}
}
