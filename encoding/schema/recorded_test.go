package schema

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// recordedCRDs returns the definitions of live clusters in testdata, and of manifests below the
// folder in the environment variable CRDS.
func recordedCRDs(t testing.TB) map[string]*CRD {
	out := map[string]*CRD{}
	files, err := filepath.Glob("../../testdata/[cks]*/*before.db.gz")
	require.NoError(t, err)
	for _, file := range append(files, "../../testdata/kubectl/all.db.gz", "../../testdata/kcp-claims/shard-1.db.gz") {
		in, err := snapshot.Open(t.Context(), file, snapshot.Config{})
		require.NoError(t, err)
		for r, err := range in.Live(t.Context(), nil) {
			require.NoError(t, err)
			if strings.Contains(string(r.Key), "/apiextensions.k8s.io/customresourcedefinitions/") {
				if crd, err := ParseCRD(r.Value); err == nil {
					out[crd.Object().Name] = crd
				}
			}
		}
		require.NoError(t, in.Close())
	}
	folder := os.Getenv("CRDS")
	if folder == "" {
		return out
	}
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ os.DirEntry, _ error) error {
		if data, err := os.ReadFile(path); err == nil && strings.HasSuffix(path, ".yaml") {
			crds, _, _ := ParseManifest(data)
			for _, crd := range crds {
				if crd != nil {
					out[crd.Object().Name] = crd
				}
			}
		}
		return nil
	}))
	return out
}

// fitting returns a value that a schema mostly accepts, or a value just outside its bounds.
func (g generator) fitting(s *apiextensions.JSONSchemaProps, depth int) any {
	switch {
	case g.IntN(300) == 0:
		return g.value(1)
	case len(s.Enum) > 0 && g.IntN(30) > 0:
		return s.Enum[g.IntN(len(s.Enum))]
	case s.XIntOrString:
		return g.one("5", int64(5), "50%", "1Gi", int64(-1))
	}
	switch s.Type {
	case "string":
		return g.fittingText(s)
	case "integer", "number":
		return g.fittingNumber(s)
	case "boolean":
		return g.IntN(2) == 0
	case "array":
		return g.fittingList(s, depth)
	case "object":
		return g.fittingObject(s, depth)
	}
	return g.value(2)
}

func (g generator) fittingText(s *apiextensions.JSONSchemaProps) any {
	text := map[string]any{
		"date-time": g.one("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z", "2026-02-29T03:04:05Z",
			"2026-01-02t03:04:05z", "yesterday", "2026-01-02T24:00:00Z", ""),
		"date": g.one("2026-01-02", "2026-13-02"), "duration": g.one("5s", "5"),
		"ipv4": g.one("10.1.2.3", "10.1.2.256", "010.1.2.3"), "byte": g.one("aGk=", "aGk", ""),
		"uri": g.one("https://a.example/b", "a b"), "uuid": g.one("06e2ce51-8ced-45ff-976a-a35b2eed996d", "06e2"),
		"hostname": g.one("a.example", "-a"),
		"cidr":     g.one("10.0.0.0/8", "10.0.0.0/33"), "email": g.one("a@b.example", "a"),
	}[s.Format]
	if text != nil {
		return text
	}
	length := g.IntN(6)
	for _, bound := range []*int64{s.MinLength, s.MaxLength} {
		if bound != nil && g.IntN(3) == 0 {
			length = int(min(*bound, 200)) + g.IntN(3) - 1
		}
	}
	return strings.Repeat(g.one("a", "x", "1", "é", "<", "\n", `"`, "ab").(string), max(length, 0))
}

func (g generator) fittingNumber(s *apiextensions.JSONSchemaProps) any {
	for _, bound := range []*float64{s.Minimum, s.Maximum} {
		if bound != nil && g.IntN(3) == 0 {
			return int64(*bound) + int64(g.IntN(3)) - 1
		}
	}
	return g.one(int64(1), int64(3), int64(100), int64(2147483647), int64(2147483648), int64(0), 1.5, 1e30,
		int64(9007199254740993))
}

func (g generator) fittingList(s *apiextensions.JSONSchemaProps, depth int) any {
	list := []any{}
	if s.Items == nil || s.Items.Schema == nil || depth == 0 {
		return list
	}
	for range g.IntN(4) {
		item := g.fitting(s.Items.Schema, depth-1)
		if object, ok := item.(map[string]any); ok && g.IntN(10) > 0 {
			for _, key := range s.XListMapKeys {
				if property, found := s.Items.Schema.Properties[key]; found {
					object[key] = g.fitting(&property, 0)
				}
			}
		}
		list = append(list, item)
	}
	if len(list) > 0 && g.IntN(20) == 0 {
		list = append(list, cloneJSON(list[0]))
	}
	return list
}

func (g generator) fittingObject(s *apiextensions.JSONSchemaProps, depth int) any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		if required := slices.Contains(s.Required, name); required && g.IntN(60) > 0 || !required && depth > 0 &&
			g.IntN(len(s.Properties)+2) < 4 {
			out[name] = g.fitting(&property, depth-1)
		}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && depth > 0 {
		for range g.IntN(3) {
			out[g.one("a", "b.example/c", "d").(string)] = g.fitting(s.AdditionalProperties.Schema, depth-1)
		}
	}
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields && g.IntN(2) == 0 {
		out["free"] = g.value(2)
	}
	return out
}

// recordedObject returns an object of a definition, mostly settled at its storage version, or nil.
func (g generator) recordedObject(t testing.TB, crd *CRD) []byte {
	v, err := crd.Version(crd.StorageVersion())
	if err != nil {
		return nil
	}
	props, err := v.props()
	require.NoError(t, err)
	if props == nil {
		return nil
	}
	obj, _ := g.fittingObject(props, 5).(map[string]any)
	metadata := map[string]any{"name": "x", "generation": int64(1), "creationTimestamp": "2026-01-02T03:04:05Z"}
	if crd.isNamespaced() {
		metadata["namespace"] = "default"
	}
	obj["apiVersion"], obj["kind"], obj["metadata"] = crd.storageAPIVersion(), crd.GroupKind().Kind, metadata
	versions := crd.Object().Spec.Versions
	apiVersion := func() any {
		return crd.prefix + g.one(crd.StorageVersion(), versions[g.IntN(len(versions))].Name).(string)
	}
	if g.IntN(2) == 0 {
		metadata["managedFields"] = []any{map[string]any{"manager": "m", "operation": "Update",
			"apiVersion": apiVersion(), "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": g.fieldsV1(2)}, "time": "2026-01-02T03:04:05Z"}}
	}
	if crd.Webhook() || g.IntN(20) > 0 {
		_, _ = crd.Rewrite(obj)
	}
	if !crd.Webhook() {
		obj["apiVersion"] = apiVersion()
	}
	value, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	return value
}

// TestTellOfRecordedCRDs checks that decoding confirms Tell, at the schemas of real definitions.
func TestTellOfRecordedCRDs(t *testing.T) {
	crds := recordedCRDs(t)
	require.Greater(t, len(crds), 60)
	var made, toldOf, accepted, acceptable int
	for i, name := range slices.Sorted(maps.Keys(crds)) {
		crd, g := crds[name], generator{rand.New(rand.NewPCG(uint64(i), 37))}
		namespace := ""
		if crd.isNamespaced() {
			namespace = "default"
		}
		for range 40 {
			value := g.recordedObject(t, crd)
			if value == nil {
				continue
			}
			is := requireTold(t, crd, value, namespace, "x")
			if made++; is != nil {
				toldOf++
				if is.accepted {
					accepted++
				}
				if isAcceptable(t, crd, value) {
					acceptable++
				}
			}
			requireTold(t, crd, g.mutated(value), namespace, "x")
		}
	}
	require.Greater(t, accepted, 2_000)
	t.Logf("%d definitions, %d objects, %d told, %d accepted of %d", len(crds), made, toldOf, accepted, acceptable)
}

// isAcceptable decodes an object and reports whether servers accept writes of the object.
func isAcceptable(t testing.TB, crd *CRD, value []byte) bool {
	obj, _, err := encoding.DecodeObject(value)
	require.NoError(t, err)
	_, err = crd.Rewrite(obj)
	require.NoError(t, err)
	storage, err := crd.Version(crd.StorageVersion())
	require.NoError(t, err)
	refused := storage.Refused(t.Context(), obj)
	require.Equal(t, Fields(storage.refused(t.Context(), obj)), Fields(refused))
	return len(storage.Validate(t.Context(), obj)) == 0 && len(refused) == 0 && crd.CheckApply(obj) == nil
}
