package schema

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// told is a result of Tell, confirmed by decoding.
type told struct {
	Told
	settled, relabelled, accepted bool
}

// requireTold compares Tell with each step of a migration and a check of writes. The result is nil
// if Tell cannot decide.
func requireTold(t testing.TB, crd *CRD, value []byte, namespace, name string) *told {
	found, ok := crd.Tell(value, namespace, name)
	if !ok {
		return nil
	}
	is := &told{Told: found}
	obj, format, err := encoding.DecodeObject(value)
	require.NoError(t, err, "%s", value)
	require.Equal(t, encoding.FormatJSON, format)
	metadata := obj["metadata"].(map[string]any)
	inside, _ := metadata["namespace"].(string)
	require.Equal(t, []any{name, namespace}, []any{metadata["name"], inside}, "%s", value)
	require.Equal(t, crd.prefix+found.Version, obj["apiVersion"])
	for _, mode := range []Mode{Settled, Pure} {
		requireRewritten(t, crd, cloneJSON(obj).(map[string]any), mode, found.Managed, value)
	}
	obj["apiVersion"] = crd.storageAPIVersion()
	after, err := encoding.EncodeObject(obj, format)
	require.NoError(t, err)
	is.settled = found.Version == crd.StorageVersion()
	require.True(t, !is.settled || bytes.Equal(value, after), "%s", value)
	var out []byte
	if out, is.relabelled = found.Relabelled(); is.relabelled {
		require.Equal(t, string(after), string(out))
		_, err := crd.RewriteManagedFields(obj)
		require.NoError(t, err)
		again, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		require.Equal(t, string(after), string(again))
	}
	if is.accepted = found.Accepted(context.Background()); is.accepted {
		storage, err := crd.Version(crd.StorageVersion())
		require.NoError(t, err)
		require.Empty(t, storage.Validate(context.Background(), obj), "%s", value)
		require.Empty(t, storage.validateUpdate(context.Background(), touch(obj), obj), "%s", value)
		require.NoError(t, crd.CheckApply(obj), "%s", value)
	}
	return is
}

// requireRewritten requires that a no-op write changes only the apiVersion of an object.
func requireRewritten(t testing.TB, crd *CRD, obj map[string]any, mode Mode, managed []string, value []byte) {
	before := cloneJSON(obj).(map[string]any)
	before["apiVersion"] = crd.storageAPIVersion()
	dropped, err := crd.Begin(obj)
	require.NoError(t, err, "%s", value)
	require.Empty(t, dropped, "%s", value)
	crd.Relabel(obj)
	dropped, err = crd.Finish(obj, mode)
	require.NoError(t, err, "%s", value)
	require.Empty(t, dropped, "%s", value)
	for _, all := range []bool{false, true} {
		if all && len(managed) > 0 {
			break
		}
		changed, lost, err := crd.RelabelManagedFields(obj, all)
		require.NoError(t, err)
		require.Zero(t, changed, "%s", value)
		require.Empty(t, lost)
	}
	require.Equal(t, before, obj, "%s", value)
	list, _ := before["metadata"].(map[string]any)["managedFields"].([]any)
	var named []string
	for _, element := range list {
		apiVersion := entryField(element.(map[string]any), "apiVersion")
		if version := strings.TrimPrefix(apiVersion, crd.prefix); apiVersion != crd.storageAPIVersion() &&
			!slices.Contains(named, version) {
			named = append(named, version)
		}
	}
	require.Equal(t, named, managed, "%s", value)
}

// TestTellIsNeverWrong checks that decoding confirms Tell, at random schemas.
func TestTellIsNeverWrong(t *testing.T) {
	var settled, relabelled, accepted int
	for seed := range uint64(600) {
		g := generator{rand.New(rand.NewPCG(seed, 12))}
		crd, root := g.restrictedCRD(t)
		if _, err := crd.Version("v2"); err != nil {
			continue // a default that cannot be pruned
		}
		for range 30 {
			for _, value := range g.acceptable(t, crd, root) {
				is := requireTold(t, crd, value, "", "x")
				switch {
				case is == nil:
					continue
				case is.settled:
					settled++
				case is.relabelled:
					relabelled++
				}
				if is.accepted {
					accepted++
				}
			}
		}
	}
	require.Greater(t, settled, 4_000)
	require.Greater(t, relabelled, 2_000)
	require.Greater(t, accepted, 500)
}

// TestTellOfRecordings checks that Tell decides about all objects settled by a real server.
func TestTellOfRecordings(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	require.Equal(t, "v1beta1", crd.StorageVersion())
	for _, name := range crNames(t) {
		// only .relabel has no version that breaks applies
		for _, state := range []string{".before", ".settled", ".relabel"} {
			value := readFile(t, "cr/"+name+state)
			metadata := object(t, string(value))["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			is := requireTold(t, crd, value, namespace, metadata["name"].(string))
			assert.True(t, state != ".relabel" || is != nil && is.settled && is.relabelled, "%s%s", name, state)
			_, ok := crd.Tell(value, namespace, "another")
			assert.False(t, ok, name)
			_, ok = crd.Tell(value, "another", metadata["name"].(string))
			assert.False(t, ok, name)
		}
	}
}

// tellCase is a value, and whether it surely needs no change.
type tellCase struct {
	value string
	want  bool
}

func tellCases(value func(spec string) string) map[string]tellCase {
	return map[string]tellCase{
		"whole":                  {value(`{"a":"y"}`), true},
		"no newline":             {strings.TrimSpace(value(`{"a":"y"}`)), false},
		"default missing":        {value(`{"n":1}`), false},
		"default of spec":        {strings.Replace(value(`{}`), `,"spec":{}`, "", 1), false},
		"last default missing":   {value(`{}`), false},
		"unknown field":          {value(`{"a":"y","b":1}`), false},
		"order":                  {value(`{"n":1,"a":"y"}`), false},
		"twice":                  {value(`{"a":"y","a":"y"}`), false},
		"space":                  {value(`{"a": "y"}`), false},
		"float":                  {value(`{"a":"y","n":1.5}`), true},
		"large float":            {value(`{"a":"y","n":1e+21}`), true},
		"odd float":              {value(`{"a":"y","n":1.50}`), false},
		"whole float":            {value(`{"a":"y","n":1.0}`), false},
		"minus zero":             {value(`{"a":"y","n":-0}`), false},
		"minus zero float":       {value(`{"a":"y","n":-0.0}`), false},
		"leading zero":           {value(`{"a":"y","n":01}`), false},
		"too large":              {value(`{"a":"y","n":12345678901234567890}`), false},
		"null allowed":           {value(`{"a":"y","none":null}`), true},
		"null that goes":         {value(`{"a":"y","n":null}`), false},
		"null for a default":     {value(`{"a":null}`), false},
		"HTML escaped":           {value(`{"a":"\u003c\u003e\u0026"}`), true},
		"HTML bare":              {value(`{"a":"<"}`), false},
		"escape in capitals":     {value(`{"a":"\u003C"}`), false},
		"needless escape":        {value(`{"a":"\u0041"}`), false},
		"slash":                  {value(`{"a":"\/"}`), false},
		"usual escapes":          {value(`{"a":"\"\\\n\r\t\b\f"}`), true},
		"other letters":          {value(`{"a":"über 漢"}`), true},
		"no UTF-8":               {value("{\"a\":\"\xff\"}"), false},
		"line separator":         {value("{\"a\":\"\u2028\"}"), false},
		"line separator escaped": {value(`{"a":"\u2028\u2029"}`), true},
		"control escaped":        {value(`{"a":"\u0000\u0007\u001f"}`), true},
		"long form":              {value(`{"a":"\u000a"}`), false},
		"no control":             {value(`{"a":"\u0020"}`), false},
		"escaped names":          {value(`{"a":"y","free":{"x":{"k:\"":1,"k:!":1}}}`), false},
		"ordered names": {
			value(`{"a":"y","free":{"x":{"k:!":1,"k:\"a":1,"k:\"b":1,"k:#":1,"k:[":1,"k:\\":1,"k:]":1}}}`), true},
		"escape of a field":      {value(`{"a":"y","\u003c":1}`), false},
		"free fields":            {value(`{"a":"y","free":{"any":[null,{"z":1}],"deep":{"d":2}}}`), true},
		"default in free fields": {value(`{"a":"y","free":{"deep":{}}}`), false},
		"unknown in free fields": {value(`{"a":"y","free":{"deep":{"d":1,"e":1}}}`), false},
		"map":                    {value(`{"a":"y","each":{"one":{"d":1},"two":{"d":1}}}`), true},
		"default in a map":       {value(`{"a":"y","each":{"one":{}}}`), false},
		"list":                   {value(`{"a":"y","list":[{"k":"v"},{}]}`), true},
		"unknown in a list":      {value(`{"a":"y","list":[{"l":"v"}]}`), false},
		"deep": {value(`{"a":"y","free":{"x":` + strings.Repeat("[", 9_000) +
			strings.Repeat("]", 9_000) + `}}`), false},
		"generation missing": {strings.Replace(value(`{"a":"y"}`), `"generation":1,`, "", 1), false},
		"resourceVersion": {strings.Replace(value(`{"a":"y"}`), `"uid"`, `"resourceVersion":"1","uid"`, 1),
			false},
		"empty labels":    {strings.Replace(value(`{"a":"y"}`), `"name"`, `"labels":{},"name"`, 1), false},
		"labels":          {strings.Replace(value(`{"a":"y"}`), `"name"`, `"labels":{"a":""},"name"`, 1), true},
		"no such day":     {strings.Replace(value(`{"a":"y"}`), "01-02", "02-30", 1), false},
		"leap day":        {strings.Replace(value(`{"a":"y"}`), "2026-01-02", "2024-02-29", 1), true},
		"another version": {strings.Replace(value(`{"a":"y"}`), "example.com/v1", "example.com/v0", 1), false},
		"another kind":    {strings.Replace(value(`{"a":"y"}`), "Thing", "Thong", 1), false},
		"cut":             {value(`{"a":"y"}`)[:60], false},
		"entry": {strings.Replace(value(`{"a":"y"}`), `"name"`,
			`"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1",`+
				`"fieldsV1":{"f:spec":{"f:a":{}}},"manager":"m","operation":"Update",`+
				`"time":"2026-01-02T03:04:05Z"}],"name"`, 1), true},
		"entry of another": {strings.Replace(value(`{"a":"y"}`), `"name"`,
			`"managedFields":[{"apiVersion":"example.com/v0","manager":"m"}],"name"`, 1), false},
		"entry without version": {strings.Replace(value(`{"a":"y"}`), `"name"`,
			`"managedFields":[{"manager":"m"}],"name"`, 1), false},
	}
}

func TestTell(t *testing.T) {
	crd := parseCRD(t, thingCRD(`{"type":"object","properties":{
		"spec":{"type":"object","default":{},"properties":{
			"a":{"type":"string","default":"x"},"n":{"type":"number"},"none":{"type":"string","nullable":true},
			"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"deep":{"type":"object","properties":{"d":{"type":"integer","default":1}}}}},
			"each":{"type":"object","additionalProperties":{"type":"object","properties":{"d":{"type":"integer","default":1}}}},
			"list":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}}}}}}}`))
	meta := `"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"name":"x","uid":"u"}`
	value := func(spec string) string {
		return `{"apiVersion":"example.com/v1","kind":"Thing",` + meta + `,"spec":` + spec + "}\n"
	}
	for name, test := range tellCases(value) {
		assert.Equal(t, test.want, requireTold(t, crd, []byte(test.value), "", "x") != nil, name)
	}
	text := []byte(value(`{"a":"y"}`))
	assert.Zero(t, testing.AllocsPerRun(10, func() { crd.Tell(text, "", "x") }), "allocations")
}

// TestTellMetaDefaults checks that the schema of a map also adds defaults to metadata.
func TestTellMetaDefaults(t *testing.T) {
	crd := parseCRD(t,
		thingCRD(
			`{"type":"object","additionalProperties":{"type":"object","properties":{"labels":{"type":"object",`+
				`"additionalProperties":{"type":"string"},"default":{"a":"b"}}}}}`))
	value := []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"x"}}` + "\n")
	require.Nil(t, requireTold(t, crd, value, "", "x"))
}

// thingCRD returns a cluster-scoped Thing of example.com with one version with the given schema.
func thingCRD(schema string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
}

func FuzzTell(f *testing.F) {
	crd := readCRD(f, "crd.etcd")
	for _, name := range crNames(f) {
		f.Add(readFile(f, "cr/"+name+".settled"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		namespace, name := "", ""
		if obj, err := tryObject(data); err == nil {
			metadata, _ := obj["metadata"].(map[string]any)
			namespace, _ = metadata["namespace"].(string)
			name, _ = metadata["name"].(string)
		}
		requireTold(t, crd, data, namespace, name)
	})
}

func BenchmarkTell(b *testing.B) {
	crd, value := readCRD(b, "crd.etcd"), benchValue(b, "untouched.settled")
	value = bytes.ReplaceAll(value, []byte("demo.example.com/v1alpha1"), []byte("demo.example.com/v1beta1"))
	metadata := object(b, string(value))["metadata"].(map[string]any)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		_, ok := crd.Tell(value, metadata["namespace"].(string), metadata["name"].(string))
		require.True(b, ok)
	}
}

// BenchmarkAccepts checks one object's writes, with and without a CEL rule.
func BenchmarkAccepts(b *testing.B) {
	value := []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"x"},` +
		`"spec":{"list":[{"n":1,"name":"a"},{"n":2,"name":"b"}]}}` + "\n")
	for name, rules := range map[string]string{"plain": "",
		"CEL": `,"x-kubernetes-validations":[{"rule":"self.list.size() < 9"}]`} {
		crd := parseCRD(b, thingCRD(`{"type":"object","properties":{"spec":{"type":"object"`+rules+
			`,"properties":{"list":{"type":"array",`+
			`"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",`+
			`"required":["name"],`+
			`"properties":{"name":{"type":"string"},"n":{"type":"integer","format":"int32"}}}}}}}}`))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(value)))
			b.ReportAllocs()
			for b.Loop() {
				require.True(b, crd.Accepts(b.Context(), value, "", "x"))
			}
		})
	}
}

// BenchmarkRelabelled migrates one object with a change of the apiVersion only.
func BenchmarkRelabelled(b *testing.B) {
	crd, value := readCRD(b, "crd.etcd"), readFile(b, "cr/ssa-owned.relabel")
	told, ok := crd.Tell(value, "default", "ssa-owned")
	require.True(b, ok)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		_, ok := told.Relabelled()
		require.True(b, ok)
	}
}

// TestAcceptsLongNames checks names longer than a label, such as the handles of Calico's IPAM.
func TestAcceptsLongNames(t *testing.T) {
	crd := parseCRD(t, thingCRD(`{"type":"object"}`))
	for name, want := range map[string]bool{
		"k8s-pod-network." + strings.Repeat("1b", 32): true, strings.Repeat("a", 253): true,
		strings.Repeat("a", 254): false,
	} {
		value := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"` + name + `"}}` +
			"\n"
		require.Equal(t, want, crd.Accepts(t.Context(), []byte(value), "", name), name)
	}
}
