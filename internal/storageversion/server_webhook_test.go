package storageversion_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/conversion"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/transform"
)

// renamer is an operator's conversion webhook: spec.size at the old version is spec.replicas at the
// new one.
type renamer struct {
	*httptest.Server
	ca    []byte
	asked atomic.Int64 // objects
}

func startRenamer(t *testing.T) *renamer {
	t.Helper()
	r := &renamer{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.convert))
	t.Cleanup(r.Close)
	r.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	return r
}

func (r *renamer) convert(w http.ResponseWriter, request *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID,
		Result: metav1.Status{Status: metav1.StatusSuccess}}
	from, to := "size", "replicas"
	if strings.HasSuffix(review.Request.DesiredAPIVersion, oldName) {
		from, to = to, from
	}
	for _, given := range review.Request.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(given.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		obj.SetAPIVersion(review.Request.DesiredAPIVersion)
		if spec, ok := obj.Object["spec"].(map[string]any); ok && spec[from] != nil {
			spec[to] = spec[from]
			delete(spec, from)
		}
		if to == "size" { // a server does not prune this field for server-side apply
			unstructured.RemoveNestedField(obj.Object, "spec", "mode")
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: obj})
		r.asked.Add(1)
	}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

// gadgets is a kind with that webhook.
func gadgets() *shape {
	return &shape{
		plural: "gadgets", kind: "Gadget", status: true,
		old: `{"type":"object","properties":{"text":{"type":"string"},"size":{"type":"integer"},` +
			`"since":{"type":"string","default":"alpha"}}}`,
		new: `{"type":"object","properties":{"text":{"type":"string"},"replicas":{"type":"integer"},` +
			`"since":{"type":"string"},"mode":{"type":"string","default":"auto"}}}`,
		spec: `{"text":"<t>","size":3}`,
	}
}

// TestServerWebhook checks that the converters and the server's own webhook give the same result,
// and the webhook is not needed afterwards.
func TestServerWebhook(t *testing.T) {
	t.Parallel()
	hook, s := startRenamer(t), gadgets()
	w := &world{shapes: []*shape{s}, names: map[string]string{}, of: map[string]*shape{}, once: map[string]string{},
		settled: map[string]string{}}
	w.storeWithWebhook(t, hook)
	config := conversion.WebhookOptions{URL: hook.URL, CA: hook.ca}
	webhook, err := conversion.Webhook(config)
	require.NoError(t, err)
	// sed is a complete converter: it turns the request into an answer and renames the field.
	command, err := conversion.Command(
		`sed -e 's/"request":{"uid":\("[^"]*"\),"desiredAPIVersion":"[^"]*","objects":\(\[.*\]\)},"response".*/`+
			`"response":{"uid":\1,"convertedObjects":\2,"result":{"status":"Success"}}}/' -e `+
			`'s|demo.example.com/v1alpha1|demo.example.com/v1beta1|g' -e 's/"size":/"replicas":/g'`, 0)
	require.NoError(t, err)

	var out string
	for name, converter := range map[string]storageversion.Converter{"webhook": webhook, "command": command} {
		with := map[string]storageversion.Converter{group: converter}
		pure, _ := migrate(t, w.before, storageversion.Options{Mode: schema.Pure, KeepManagedFields: true,
			Converters: with})
		settled, r := migrate(t, w.before, storageversion.Options{KeepManagedFields: true, Converters: with})
		require.Equal(t, map[string]int{oldName: 6, newName: 2}, resource(t, r, s.crdName()).Found)
		inPure, inSettled := values(t, pure), values(t, settled)
		for key := range w.settled {
			require.Equal(t, w.once[key], inPure[key], "%s %s", name, key)
			require.Equal(t, w.settled[key], inSettled[key], "%s %s", name, key)
		}
		out, _ = migrate(t, w.before, storageversion.Options{Converters: with})
	}
	w.withoutConverter(t)
	hook.Close()
	w.withoutWebhook(t, out)
}

// storeWithWebhook writes objects at the old version, changes the storage version, writes two more
// objects, and then sends no-op requests for each object.
func (w *world) storeWithWebhook(t *testing.T, hook *renamer) {
	t.Helper()
	s := w.shapes[0]
	c := startCluster(t, "")
	defer c.close()
	crd := s.definition(t)
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &hook.URL, CABundle: hook.ca},
			ConversionReviewVersions: []string{"v1"},
		}}
	_, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd,
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return isEstablished(c.crd(t, s.crdName())) }, 30*time.Second,
		20*time.Millisecond)
	c.establish(t)
	create := func(version, name string) {
		obj := s.full(t, name)
		obj["apiVersion"] = group + "/" + version
		_, err := apply(t, c.of(s, version), "gitops", obj)
		require.NoError(t, err, name)
		w.add(s, name)
	}
	for i, request := range []string{"apply", "status", "apply", "status", "apply", "status"} {
		create(oldName, fmt.Sprintf("owned%d-%s", i, request))
	}
	c.flip(t, w.shapes)
	c.restart(t)
	for i, request := range []string{"apply", "status"} {
		create(oldName, fmt.Sprintf("late%d-%s", i, request))
	}
	require.Positive(t, hook.asked.Load())
	w.before = c.save(t)
	for _, key := range w.keys() {
		_, request, _ := strings.Cut(w.names[key], "-")
		c.doNothing(t, s, w.names[key], request)
		w.once[key], _ = c.record(t, key)
		c.doNothing(t, s, w.names[key], "status")
		w.settled[key], _ = c.record(t, key)
		require.Contains(t, w.settled[key], `"replicas":3`)
		require.Contains(t, w.settled[key], `"mode":"auto"`)
	}
}

// withoutConverter checks that no conversion is guessed; if allowed, the list keeps the old
// version.
func (w *world) withoutConverter(t *testing.T) {
	t.Helper()
	name := w.shapes[0].crdName()
	r, err := transform.Run(t.Context(), transform.Options{In: w.before, Out: filepath.Join(t.TempDir(), "refused.db")},
		storageversion.New(storageversion.Options{}))
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, 6, resource(t, r, name).Refused)
	out, r := migrate(t, w.before, storageversion.Options{}, "needs-webhook")
	require.Equal(t, []string{oldName, newName}, resource(t, r, name).StoredVersions.After)
	require.NotEmpty(t, resource(t, r, name).StoredVersions.Kept)
	before := values(t, w.before)
	for key, value := range values(t, out) {
		if strings.Contains(before[key], "/"+oldName+`","kind":"Gadget"`) {
			require.Equal(t, before[key], value, key)
		}
	}
}

// withoutWebhook serves the migrated cluster with the webhook down.
func (w *world) withoutWebhook(t *testing.T, out string) {
	t.Helper()
	s := w.shapes[0]
	down := func(path string) *cluster { // the old version cannot be listed there, with or without a migration
		c := startCluster(t, etcdtest.Restore(t, path), uncached)
		c.broken = true
		c.establish(t)
		return c
	}
	control := down(w.before)
	_, err := control.of(s, newName).List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "conversion webhook for demo.example.com/v1alpha1")
	control.close()

	c := down(out)
	defer c.close()
	w.listed(t, c)
	list, err := c.of(s, newName).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, obj := range list.Items {
		require.Equal(t, int64(1), obj.GetGeneration(), obj.GetName())
	}
	for _, key := range w.keys() {
		_, revision := c.record(t, key)
		for _, request := range []string{"put", "status", "merge", "jsonpatch"} {
			c.doNothing(t, s, w.names[key], request)
		}
		_, now := c.record(t, key)
		require.Equal(t, revision, now, key)
	}

	// managedFields stay at the old version while the version exists: only the webhook knows the
	// field names of the other version. Server-side apply calls the webhook, and fails; after the
	// removal of the version it fails too, until a migration repairs managedFields.
	_, err = apply(t, c.of(s, newName), "newcomer", s.bare(newName, "owned0-apply"))
	require.ErrorContains(t, err, "conversion webhook for demo.example.com/v1beta1")
	require.NoError(t, c.dropVersion(t, s.crdName(), oldName))
	applyFails(t, c.of(s, newName), "newcomer", s.bare(newName, "owned0-apply"),
		"request to convert CR to an invalid group/version: demo.example.com/v1alpha1")
	out, r := migrate(t, c.save(t), storageversion.Options{})
	require.Equal(t, len(w.of), resource(t, r, s.crdName()).ManagedFields)
	again := restore(t, out)
	defer again.close()
	for _, key := range w.keys() {
		body := s.bare(newName, w.names[key])
		require.NoError(t, unstructured.SetNestedField(body, int64(5), "spec", "replicas"))
		obj, err := apply(t, again.of(s, newName), "gitops", body)
		require.NoError(t, err, "no conflict with anyone")
		require.Equal(t, int64(5), obj.Object["spec"].(map[string]any)["replicas"])
	}
}
