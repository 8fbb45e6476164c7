package storageversion_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/transform"
)

// world has the values that a server stored at the old version, and the values after no-op requests
// to the server.
type world struct {
	shapes  []*shape
	before  string            // the snapshot: all objects at the old version, the new one the storage version
	names   map[string]string // name of the object, by key
	of      map[string]*shape // by key
	once    map[string]string // by key: the value in etcd after one no-op request
	settled map[string]string // the same after a second request, if the first left pure bytes
}

// newWorld writes objects at the old version, changes the storage version, takes the snapshot, and
// then sends the no-op requests to the server.
func newWorld(t *testing.T, shapes []*shape, raw bool, flags ...string) *world {
	t.Helper()
	w := &world{shapes: shapes, names: map[string]string{}, of: map[string]*shape{}, once: map[string]string{},
		settled: map[string]string{}}
	c := startCluster(t, "", flags...)
	defer c.close()
	for _, s := range shapes {
		if s.injected != "" {
			c.put(t, crdDir+s.crdName(), s.injected)
		}
	}
	c.define(t, shapes)
	for _, s := range shapes {
		for _, request := range requests(s) {
			w.create(t, c, s, request)
			// Its 1.0 becomes 1 on the way to a client and back: for a PUT at the old version too
			// this is a change, which counts.
			if raw && request != "apply" && request != "oldput" && s.status {
				w.putRaw(t, c, s, "raw-"+request)
			}
		}
		if raw {
			w.putRaw(t, c, s, "raw-never")
		}
	}
	c.flip(t, shapes)
	w.before = c.save(t)
	c.restart(t)
	for _, key := range w.keys() {
		s, name := w.of[key], w.names[key]
		_, request, _ := strings.Cut(name, "-")
		if request == "never" {
			continue
		}
		c.doNothing(t, s, name, request)
		w.once[key], _ = c.record(t, key)
		if isPure(request) {
			c.doNothing(t, s, name, second(s))
			w.settled[key], _ = c.record(t, key)
		}
	}
	return w
}

// second is the second no-op request for a rewritten object: server-side apply fails if the old
// version does not know the new version's defaults.
func second(s *shape) string {
	if s.status {
		return "status"
	}
	return "apply"
}

// create creates one object of each sort, as the target of a request.
func (w *world) create(t *testing.T, c *cluster, s *shape, request string) {
	t.Helper()
	client := c.of(s, oldName)
	create := func(obj map[string]any) *unstructured.Unstructured {
		made, err := client.Create(t.Context(), &unstructured.Unstructured{Object: obj},
			metav1.CreateOptions{FieldManager: "creator"})
		require.NoError(t, err)
		w.add(s, made.GetName())
		return made
	}
	full := create(s.full(t, "full-"+request))
	if isPure(request) {
		create(s.bare(oldName, "bare-"+request))
		dying := create(s.full(t, "dying-"+request))
		require.NoError(t, client.Delete(t.Context(), dying.GetName(), metav1.DeleteOptions{}))
	}
	applied := s.full(t, "owned-"+request)
	applied["spec"] = full.Object["spec"] // pruned: an apply with unknown fields is refused
	_, err := apply(t, client, "gitops", applied)
	require.NoError(t, err)
	w.add(s, "owned-"+request)
	if s.status {
		require.NoError(t, unstructured.SetNestedField(full.Object, "Ready", "status", "phase"))
		_, err = client.UpdateStatus(t.Context(), full, metav1.UpdateOptions{FieldManager: "controller"})
		require.NoError(t, err)
	}
}

func (w *world) add(s *shape, name string) {
	w.names[s.key(name)], w.of[s.key(name)] = name, s
}

// putRaw writes a value that no server would write: other spaces and order of keys, metadata of the
// wrong type, no generation.
func (w *world) putRaw(t *testing.T, c *cluster, s *shape, name string) {
	t.Helper()
	w.add(s, name)
	namespace := ""
	if !s.cluster {
		namespace = `"namespace":"default",`
	}
	c.put(t, s.key(name),
		fmt.Sprintf("{\r\n \"kind\" : %q,\t\"apiVersion\":\"%s\\u002f%s\",\n\"top\":[1],\"metadata\":{\"name\":%q,%s"+
			`"uid":"11111111-2222-3333-4444-555555555555","creationTimestamp":"2020-01-01T00:00:00Z",`+
			`"selfLink":"/apis/x","clusterName":"c","labels":{"ok":"v"},`+
			`"annotations":{"bad":5},"resourceVersion":"77","deletionGracePeriodSeconds":"NaN","junk":{"a":1}},`+
			`"status":{"phase":"\u00e9\/","other":1},"spec" : %s}   `,
			s.kind, group, oldName, name, namespace, s.spec))
}

// doNothing sends one request that changes nothing.
func (c *cluster) doNothing(t *testing.T, s *shape, name, request string) {
	t.Helper()
	client := c.of(s, newName)
	if request == "oldput" {
		client = c.of(s, oldName)
	}
	get := func() *unstructured.Unstructured {
		obj, err := client.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err, "%s %s", s.plural, name)
		return obj
	}
	var err error
	switch request {
	case "apply": // with the revision, or the server may compare with its stale cache
		body := s.bare(newName, name)
		body["metadata"].(map[string]any)["resourceVersion"] = get().GetResourceVersion()
		_, err = apply(t, client, "probe", body)
	case "status":
		_, err = client.UpdateStatus(t.Context(), get(), metav1.UpdateOptions{FieldManager: "probe"})
	case "put", "oldput":
		_, err = client.Update(t.Context(), get(), metav1.UpdateOptions{FieldManager: "probe"})
	case "merge":
		_, err = client.Patch(t.Context(), name, types.MergePatchType, []byte("{}"),
			metav1.PatchOptions{FieldManager: "probe"})
	case "jsonpatch":
		_, err = client.Patch(t.Context(), name, types.JSONPatchType, []byte("[]"),
			metav1.PatchOptions{FieldManager: "probe"})
	default:
		require.Fail(t, "no such request", request)
	}
	require.NoError(t, err, "%s %s %s", request, s.plural, name)
}

// identical compares the migrated values with the server's values.
func (w *world) identical(t *testing.T) {
	t.Run("pure", func(t *testing.T) {
		out, _ := migrate(t, w.before, storageversion.Options{Mode: schema.Pure, KeepManagedFields: true},
			"pruned-field")
		ours, compared := values(t, out), 0
		for key, want := range w.once {
			if _, request, _ := strings.Cut(w.names[key], "-"); isPure(request) {
				require.Equal(t, want, ours[key], key)
				compared++
			}
		}
		t.Logf("%d objects byte for byte as after one request that does nothing", compared)
	})
	t.Run("settled", func(t *testing.T) {
		out, _ := migrate(t, w.before, storageversion.Options{KeepManagedFields: true}, "pruned-field")
		ours := values(t, out)
		require.NotEmpty(t, w.settled)
		for key, want := range w.settled {
			require.Equal(t, want, ours[key], key)
		}
		t.Logf("%d objects byte for byte as after two requests that do nothing", len(w.settled))
	})
	t.Run("relabelled", func(t *testing.T) {
		out, r := migrate(t, w.before, storageversion.Options{}, "pruned-field")
		ours, puts, raised := values(t, out), 0, 0
		pure, _ := migrate(t, w.before, storageversion.Options{Mode: schema.Pure}, "pruned-field")
		before := values(t, pure)
		for key, want := range w.settled {
			require.Equal(t, without(t, want, "managedFields"), without(t, ours[key], "managedFields"), key)
		}
		for key, want := range w.once { // a PUT leaves settled bytes, and counts a difference as a change
			if _, request, _ := strings.Cut(w.names[key], "-"); !isPure(request) {
				require.Equal(t, without(t, want, "managedFields", "generation"),
					without(t, ours[key], "managedFields", "generation"), key)
				puts++
				rise := int64(0) // by the defaults that a PUT stores
				if fields(t, before[key]) != fields(t, ours[key]) {
					rise = 1
					raised++
				}
				require.Equal(t, generation(t, ours[key])+rise, generation(t, want), key)
			}
		}
		require.NotZero(t, raised)
		t.Logf("%d objects as after a PUT or a patch, of which %d have another generation", puts, raised)
		w.reported(t, r, out)
	})
}

func generation(t *testing.T, value string) int64 {
	t.Helper()
	meta, err := encoding.ReadMeta([]byte(value))
	require.NoError(t, err)
	return meta.Generation
}

// fields returns the fields outside metadata.
func fields(t *testing.T, value string) string {
	t.Helper()
	obj, _, err := encoding.DecodeObject([]byte(value))
	require.NoError(t, err)
	delete(obj, "metadata")
	out, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	return string(out)
}

// reported checks the counts, that CRDs change only in storedVersions, and that a second run finds
// nothing to do.
func (w *world) reported(t *testing.T, r *transform.Report, out string) {
	t.Helper()
	require.Equal(t, transform.Written, r.Outcome)
	before, after := values(t, w.before), values(t, out)
	require.Len(t, after, len(before))
	objects := map[string]int{}
	for _, s := range w.of {
		objects[s.crdName()]++
	}
	for _, s := range w.shapes {
		k := resource(t, r, s.crdName())
		n := objects[s.crdName()]
		require.Equal(t, map[string]int{oldName: n}, k.Found)
		require.Equal(t, []int{n, 0, 0}, []int{k.Rewritten, k.Unchanged, k.Refused})
		require.Equal(t, storageversion.StoredVersions{Before: []string{oldName, newName}, After: []string{newName}},
			k.StoredVersions)
		require.Equal(t, strings.Replace(before[crdDir+s.crdName()], `"storedVersions":["v1alpha1","v1beta1"]`,
			`"storedVersions":["v1beta1"]`, 1), after[crdDir+s.crdName()])
	}
	twice, again := migrate(t, out, storageversion.Options{})
	require.Equal(t, after, values(t, twice))
	require.Equal(t, transform.Unchanged, again.Outcome)
	require.Equal(t, transform.Changes{}, again.Changes)
}

// without decodes a value and removes metadata fields.
func without(t *testing.T, value string, fields ...string) string {
	t.Helper()
	obj, format, err := encoding.DecodeObject([]byte(value))
	require.NoError(t, err)
	for _, field := range fields {
		delete(obj["metadata"].(map[string]any), field)
	}
	data, err := encoding.EncodeObject(obj, format)
	require.NoError(t, err)
	return string(data)
}

// TestServer runs all tests that share one snapshot.
func TestServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shapes(), true)
	t.Run("identity", w.identical)
	t.Run("served", func(t *testing.T) { w.served(t, storageversion.Options{}) })
	t.Run("unmigrated", w.unmigrated)
	t.Run("keptManagedFields", w.keptManagedFields)
}

// TestServerCBOR is TestServer with CBOR in etcd, for the kinds with differences. The feature gate
// is global in the process: the test must not run in parallel.
func TestServerCBOR(t *testing.T) {
	gate := "--feature-gates=CBORServingAndStorage=true"
	w := newWorld(t, shapes()[:4], false, gate)
	for key, value := range values(t, w.before) {
		if w.of[key] != nil {
			require.Equal(t, encoding.FormatCBOR, encoding.Detect([]byte(value)), key)
		}
	}
	t.Run("identity", w.identical)
	t.Run("served", func(t *testing.T) { w.served(t, storageversion.Options{AllManagedFields: true}, gate) })
}
