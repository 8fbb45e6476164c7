package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

const shop = "shop"

// shopManifest is an application with a webhook for its Pods in the same cluster, and an aggregated
// API server.
const shopManifest = `
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}
{"apiVersion":"v1","kind":"Node","metadata":{"name":"old"}}
{"apiVersion":"storage.k8s.io/v1","kind":"CSINode","metadata":{"name":"old"},"spec":{"drivers":[]}}
{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":{"name":"va"},"spec":{"attacher":"x","nodeName":"old","source":{"persistentVolumeName":"v"}}}
{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader","namespace":"shop"},"spec":{"holderIdentity":"old","leaseDurationSeconds":15}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{"type":"LoadBalancer","selector":{"app":"web"},"ports":[{"port":443}]}}
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}
{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"each","namespace":"shop"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}
`

// tokenManifest needs an existing ServiceAccount: the token controller deletes other tokens.
const tokenManifest = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token","namespace":"shop",` +
	`"annotations":{"kubernetes.io/service-account.name":"default"}},"type":"kubernetes.io/service-account-token"}`

const guardManifest = `
{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"guard"},"webhooks":[{"name":"guard.example.com","clientConfig":{"service":{"namespace":"shop","name":"web"}},"failurePolicy":"Fail","timeoutSeconds":2,"sideEffects":"None","admissionReviewVersions":["v1"],"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}]}
{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.metrics.example.org"},"spec":{"group":"metrics.example.org","version":"v1","service":{"namespace":"shop","name":"web","port":443},"groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true}}
`

func pods() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// controllers runs the controllers that create Pods, tokens and endpoints, bind volumes, and clean
// up.
func (c *cluster) controllers(t testing.TB) *process {
	t.Helper()
	return start(t, "kube-controller-manager", append(c.collectorFlags(t),
		"--controllers=deployment-controller,replicaset-controller,statefulset-controller,cronjob-controller,"+
			"job-controller,endpointslice-controller,endpoints-controller,"+
			"namespace-controller,pod-garbage-collector-controller,serviceaccount-controller,"+
			"serviceaccount-token-controller,"+
			"persistentvolumeclaim-protection-controller,persistentvolume-protection-controller,"+
			"persistentvolume-binder-controller",
		"--service-account-private-key-file="+filepath.Join(filepath.Dir(c.config.CAFile), "sa.key"))...)
}

// create creates the objects of a manifest with one object per line.
func (c *cluster) create(t testing.TB, text string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(text)) {
		var obj unstructured.Unstructured
		require.NoError(t, obj.UnmarshalJSON([]byte(line)))
		resource := obj.GroupVersionKind().GroupVersion().WithResource(pluralOf(obj.GetKind()))
		eventually(t, serveTimeout, "create "+obj.GetName(), func() error {
			_, err := c.client(resource, obj.GetNamespace()).Create(context.Background(), &obj, metav1.CreateOptions{})
			return err
		})
	}
}

func pluralOf(kind string) string {
	singular := strings.ToLower(kind)
	if stem, is := strings.CutSuffix(singular, "y"); is {
		return stem + "ies"
	}
	if strings.HasSuffix(singular, "s") {
		return singular + "es"
	}
	return singular + "s"
}

// podsOf returns the Pods of the shop once there are n.
func (c *cluster) podsOf(t testing.TB, n int) (items []unstructured.Unstructured) {
	t.Helper()
	eventually(t, serveTimeout, fmt.Sprintf("%d Pods", n), func() error {
		list, err := c.client(pods(), shop).List(context.Background(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		if items = list.Items; len(items) != n {
			return fmt.Errorf("%d Pods", len(items))
		}
		return nil
	})
	return items
}

// oldCluster returns a snapshot of a cluster with a running application on the Node old.
func oldCluster(t testing.TB) (saved, token string) {
	t.Helper()
	c := startCluster(t, filepath.Join(t.TempDir(), "etcd"))
	p := c.controllers(t)
	c.create(t, shopManifest)
	for _, pod := range c.podsOf(t, 2) {
		ctx, client := context.Background(), c.client(pods(), shop)
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": pod.GetName()},
			"target": map[string]any{"kind": "Node", "name": "old"},
		}}
		_, err := client.Create(ctx, binding, metav1.CreateOptions{}, "binding")
		require.NoError(t, err)
		const running = `{"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}],` +
			`"conditions":[{"type":"Ready","status":"True"}]}}`
		_, err = client.Patch(ctx, pod.GetName(), types.MergePatchType, []byte(running),
			metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	c.create(t, tokenManifest)
	token = c.tokenOf(t, "")
	c.create(t, guardManifest)
	p.stop()
	eventually(t, serveTimeout, "the webhook refuses", func() error {
		_, err := c.client(pods(), shop).Create(context.Background(), plainPod(),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("it does not: %v", err)
		}
		return nil
	})
	saved = c.store.save(t)
	c.stop()
	return saved, token
}

func plainPod() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "plain"},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}}
}

// tokenOf waits until the token in the Secret token differs from before.
func (c *cluster) tokenOf(t testing.TB, before string) (token string) {
	t.Helper()
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	eventually(t, serveTimeout, "a token", func() error {
		secret, err := c.client(secrets, shop).Get(context.Background(), "token", metav1.GetOptions{})
		if err != nil {
			return err
		}
		token, _, _ = unstructured.NestedString(secret.Object, "data", "token")
		if token == "" || token == before {
			return errors.New("no new token")
		}
		return nil
	})
	return token
}

// TestPrepared checks that a prepared snapshot starts with an API server with a new key and
// controllers: Pods are recreated, tokens are valid, and webhooks block no request.
func TestPrepared(t *testing.T) {
	t.Parallel()
	saved, old := oldCluster(t)
	r := runMigration(t, "prepare-restore", saved, "--new-service-account-key")
	found, err := exec.Command(etcdshift(t), "doctor", "--for", "new-machines", "--fail-on", "warning", "--ignore",
		"service-address", r.path).CombinedOutput()
	require.NoError(t, err, "%s", found)

	c := startCluster(t, r.restore(t))
	p := c.controllers(t)
	c.create(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"new"}}`)
	for _, pod := range c.podsOf(t, 2) {
		node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
		require.Empty(t, node)
	}
	ctx := context.Background()
	_, err = c.client(pods(), shop).Create(ctx, plainPod(), metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := base64.StdEncoding.DecodeString(c.tokenOf(t, old))
	require.NoError(t, err)
	require.True(t, c.authenticates(t, string(token)))

	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	require.NoError(t, c.client(namespaces, "").Delete(ctx, shop, metav1.DeleteOptions{}))
	eventually(t, serveTimeout, "the namespace goes", func() error {
		if _, err := c.client(namespaces, "").Get(ctx, shop, metav1.GetOptions{}); err == nil {
			return errors.New("it is there")
		}
		return nil
	})
	require.False(t, p.ended(), p.tail(t))
	for _, wrong := range []string{"failed calling webhook", "is currently unavailable",
		"unable to retrieve the complete list of server APIs"} {
		require.NotContains(t, string(p.output(t)), wrong)
	}
}

// authenticates reports whether the API server accepts a token.
func (c *cluster) authenticates(t testing.TB, token string) bool {
	t.Helper()
	reviews := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": map[string]any{},
		"spec": map[string]any{"token": token},
	}}
	answer, err := c.client(reviews, "").Create(context.Background(), review, metav1.CreateOptions{})
	require.NoError(t, err)
	is, _, _ := unstructured.NestedBool(answer.Object, "status", "authenticated")
	return is
}

// TestIsolated checks that controllers create no Pods in an isolated snapshot, and that after
// --undo it runs as before.
func TestIsolated(t *testing.T) {
	t.Parallel()
	saved, _ := oldCluster(t)
	r := runMigration(t, "prepare-restore", saved, "--isolate")
	c := startCluster(t, r.restore(t))
	p := c.controllers(t)
	time.Sleep(calm)
	c.podsOf(t, 0)
	list, err := c.client(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		shop).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	p.stop()
	rehearsed := c.store.save(t)
	c.stop()

	back := runMigration(t, "prepare-restore", rehearsed, "--undo", filepath.Join(filepath.Dir(r.path), "report.json"))
	was, is := specs(t, saved), specs(t, back.path)
	for _, object := range []string{"deployment/web", "cronjob/each", "service/web"} {
		require.JSONEq(t, was[object], is[object], object)
	}
}

// specs returns the specs of objects in the shop.
func specs(t testing.TB, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range []string{"deployment/web", "cronjob/each", "service/web"} {
		text, err := exec.Command(etcdshift(t), "get", path, object, "-n", shop, "-o", "json").Output()
		require.NoError(t, err)
		var content map[string]any
		require.NoError(t, json.Unmarshal(text, &content))
		spec, err := json.Marshal(content["spec"])
		require.NoError(t, err)
		all[object] = string(spec)
	}
	return all
}
