package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	collectTimeout = 2 * time.Minute
	calm           = 10 * time.Second // time for the collector's remaining queue
	canarySpace    = "default"
	noUID          = "00000000-0000-4000-8000-000000000000"
)

// collect runs the garbage collector of a real kube-controller-manager until it is done, and
// returns the changes without canaries. Only the collector writes to the cluster.
//
// The owner of a canary has the name of a live object but another UID, as after a migration with
// wrong UIDs. The collector deletes the first canary during its initial scan of the cluster. The
// second canary is created after the scan, and deleted once the collector follows changes. The
// owner is given by its resource, which must be cluster-scoped, and its name.
func (c *cluster) collect(t testing.TB, resource schema.GroupVersionResource, name string) (changes []string) {
	t.Helper()
	c.store.waitQuiet(t)
	owner, err := c.client(resource, "").Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(t, err)
	c.createOwned(t, "canary-first", owner, noUID)
	before := c.store.records(t)
	p := start(t, "kube-controller-manager", c.collectorFlags(t)...)
	defer p.stop()
	c.waitCollected(t, p, "canary-first")
	c.createOwned(t, "canary-second", owner, noUID)
	c.waitCollected(t, p, "canary-second")
	time.Sleep(calm)
	after := c.store.waitQuiet(t)
	require.False(t, p.ended(), "kube-controller-manager ended:\n%s", p.tail(t))
	delete(before, "/registry/configmaps/"+canarySpace+"/canary-first")
	return difference(before, after)
}

func (c *cluster) collectorFlags(t testing.TB) []string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{Server: c.config.Host, CertificateAuthority: c.config.CAFile}
	config.AuthInfos["e2e"] = &clientcmdapi.AuthInfo{Token: c.config.BearerToken}
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "e2e"}
	config.CurrentContext = "e2e"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return []string{"--kubeconfig=" + path, "--controllers=garbage-collector-controller", "--leader-elect=false",
		"--secure-port=0", "--v=2"}
}

// createOwned creates a ConfigMap that refers to an owner by a UID.
func (c *cluster) createOwned(t testing.TB, name string, owner *unstructured.Unstructured, uid types.UID) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name}}}
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: uid,
	}})
	_, err := c.client(configMaps(), canarySpace).Create(context.Background(), obj, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (c *cluster) waitCollected(t testing.TB, p *process, name string) {
	t.Helper()
	eventually(t, collectTimeout, name+" is collected", func() error {
		require.False(t, p.ended(), "kube-controller-manager ended:\n%s", p.tail(t))
		_, err := c.client(configMaps(), canarySpace).Get(context.Background(), name, metav1.GetOptions{})
		switch {
		case err == nil:
			return errors.New("it is still there")
		case apierrors.IsNotFound(err):
			return nil
		default:
			return fmt.Errorf("get: %w", err)
		}
	})
}
