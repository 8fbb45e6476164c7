package schema

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// slowSettled is Settled by decoding: each step of a migration leaves the bytes as they are.
func slowSettled(t testing.TB, crd *CRD, value []byte, namespace, name string) bool {
	obj, format, err := encoding.DecodeObject(value)
	if err != nil || format != encoding.FormatJSON || obj["apiVersion"] != crd.storageAPIVersion() || obj["kind"] != crd.GroupKind().Kind {
		return false
	}
	metadata, _ := obj["metadata"].(map[string]any)
	inside, _ := metadata["namespace"].(string)
	if metadata["name"] != name || inside != namespace || (crd.Object().Spec.Scope == "Namespaced") != (namespace != "") {
		return false
	}
	for _, mode := range []Mode{Settled, Pure} {
		obj := cloneJSON(obj).(map[string]any)
		dropped, err := crd.Begin(obj)
		if err != nil || len(dropped) > 0 {
			return false
		}
		crd.Relabel(obj)
		if dropped, err = crd.Finish(obj, mode); err != nil || len(dropped) > 0 {
			return false
		}
		changed, lost, err := crd.RelabelManagedFields(obj, true)
		if err != nil || changed > 0 || len(lost) > 0 {
			return false
		}
		out, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		if string(out) != string(value) {
			return false
		}
	}
	list, _ := metadata["managedFields"].([]any)
	for _, element := range list {
		if element.(map[string]any)["apiVersion"] != crd.storageAPIVersion() {
			return false
		}
	}
	return true
}

// mutated changes one place of a value.
func (g generator) mutated(value []byte) []byte {
	text := string(value)
	at, n := g.IntN(len(text)), g.IntN(3)
	insert := g.one("", " ", "0", "-0", "1e3", "1.0", `\u0041`, `\/`, `"`, `,"z":1`, "null", "\xff", "\u2028", "<", "{}", "[]", "12345678901234567890").(string)
	return []byte(text[:at] + insert + text[min(len(text), at+n):])
}

// TestSettledIsNeverWrong: what bytes tell, decoding confirms, at random schemas.
func TestSettledIsNeverWrong(t *testing.T) {
	settled, told := 0, 0
	for seed := range uint64(150) {
		g := generator{rand.New(rand.NewPCG(seed, 11))}
		crd, err := ParseCRD(g.crd())
		require.NoError(t, err)
		if _, err := crd.Version("v2"); err != nil {
			continue // a default that can't be pruned
		}
		for range 40 {
			obj := g.object()
			obj["apiVersion"] = "example.com/v2"
			if g.IntN(4) > 0 {
				if _, err := crd.Rewrite(obj); err != nil {
					continue
				}
			}
			value, err := encoding.EncodeObject(obj, encoding.FormatJSON)
			require.NoError(t, err)
			for _, value := range [][]byte{value, g.mutated(value), g.mutated(value), g.mutated(value)} {
				slow, fast := slowSettled(t, crd, value, "", "x"), crd.Settled(value, "", "x")
				require.False(t, fast && !slow, "%s", value)
				if slow {
					settled++
				}
				if fast {
					told++
				}
			}
		}
	}
	require.Greater(t, settled, 2_000)
	require.Greater(t, told, settled*3/4, "of %d", settled)
}

// TestSettledOfRecordings: all objects that a real server settled are told by their bytes.
func TestSettledOfRecordings(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	settled := 0
	require.Equal(t, "v1beta1", crd.StorageVersion())
	for _, name := range crNames(t) {
		for _, state := range []string{".before", ".settled", ".relabel"} {
			value := readFile(t, "cr/"+name+state)
			metadata := object(t, string(value))["metadata"].(map[string]any)
			namespace, _ := metadata["namespace"].(string)
			slow := slowSettled(t, crd, value, namespace, metadata["name"].(string))
			if slow {
				settled++
			}
			assert.Equal(t, slow, crd.Settled(value, namespace, metadata["name"].(string)), "%s%s", name, state)
			assert.False(t, crd.Settled(value, namespace, "another"), name)
			assert.False(t, crd.Settled(value, "another", metadata["name"].(string)), name)
		}
	}
	require.Positive(t, settled)
}

func TestSettled(t *testing.T) {
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
	for name, test := range map[string]struct {
		value string
		want  bool
	}{
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
		"ordered names":          {value(`{"a":"y","free":{"x":{"k:!":1,"k:\"a":1,"k:\"b":1,"k:#":1,"k:[":1,"k:\\":1,"k:]":1}}}`), true},
		"escape of a field":      {value(`{"a":"y","\u003c":1}`), false},
		"free fields":            {value(`{"a":"y","free":{"any":[null,{"z":1}],"deep":{"d":2}}}`), true},
		"default in free fields": {value(`{"a":"y","free":{"deep":{}}}`), false},
		"unknown in free fields": {value(`{"a":"y","free":{"deep":{"d":1,"e":1}}}`), false},
		"map":                    {value(`{"a":"y","each":{"one":{"d":1},"two":{"d":1}}}`), true},
		"default in a map":       {value(`{"a":"y","each":{"one":{}}}`), false},
		"list":                   {value(`{"a":"y","list":[{"k":"v"},{}]}`), true},
		"unknown in a list":      {value(`{"a":"y","list":[{"l":"v"}]}`), false},
		"deep":                   {value(`{"a":"y","free":{"x":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}}`), false},
		"generation missing":     {strings.Replace(value(`{"a":"y"}`), `"generation":1,`, "", 1), false},
		"resourceVersion":        {strings.Replace(value(`{"a":"y"}`), `"uid"`, `"resourceVersion":"1","uid"`, 1), false},
		"empty labels":           {strings.Replace(value(`{"a":"y"}`), `"name"`, `"labels":{},"name"`, 1), false},
		"labels":                 {strings.Replace(value(`{"a":"y"}`), `"name"`, `"labels":{"a":""},"name"`, 1), true},
		"no such day":            {strings.Replace(value(`{"a":"y"}`), "01-02", "02-30", 1), false},
		"leap day":               {strings.Replace(value(`{"a":"y"}`), "2026-01-02", "2024-02-29", 1), true},
		"another version":        {strings.Replace(value(`{"a":"y"}`), "example.com/v1", "example.com/v0", 1), false},
		"another kind":           {strings.Replace(value(`{"a":"y"}`), "Thing", "Thong", 1), false},
		"cut":                    {value(`{"a":"y"}`)[:60], false},
		"entry":                  {strings.Replace(value(`{"a":"y"}`), `"name"`, `"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:a":{}}},"manager":"m","operation":"Update","time":"2026-01-02T03:04:05Z"}],"name"`, 1), true},
		"entry of another":       {strings.Replace(value(`{"a":"y"}`), `"name"`, `"managedFields":[{"apiVersion":"example.com/v0","manager":"m"}],"name"`, 1), false},
		"entry without version":  {strings.Replace(value(`{"a":"y"}`), `"name"`, `"managedFields":[{"manager":"m"}],"name"`, 1), false},
	} {
		got := crd.Settled([]byte(test.value), "", "x")
		assert.Equal(t, test.want, got, name)
		assert.False(t, got && !slowSettled(t, crd, []byte(test.value), "", "x"), name)
	}
	text := []byte(value(`{"a":"y"}`))
	assert.Zero(t, testing.AllocsPerRun(10, func() { crd.Settled(text, "", "x") }), "allocations")
}

// TestSettledMetaDefaults: metadata, too, is filled by the schema of a map.
func TestSettledMetaDefaults(t *testing.T) {
	crd := parseCRD(t, thingCRD(`{"type":"object","additionalProperties":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"},"default":{"a":"b"}}}}}`))
	value := []byte(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"x"}}` + "\n")
	require.False(t, slowSettled(t, crd, value, "", "x"))
	require.False(t, crd.Settled(value, "", "x"))
}

// thingCRD is a cluster-wide Thing of example.com with one version of that schema.
func thingCRD(schema string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
}

func FuzzSettled(f *testing.F) {
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
		if crd.Settled(data, namespace, name) && !slowSettled(t, crd, data, namespace, name) {
			t.Fatalf("%s", data)
		}
	})
}

func BenchmarkSettled(b *testing.B) {
	crd, value := readCRD(b, "crd.etcd"), benchValue(b, "untouched.settled")
	value = bytes.ReplaceAll(value, []byte("demo.example.com/v1alpha1"), []byte("demo.example.com/v1beta1"))
	metadata := object(b, string(value))["metadata"].(map[string]any)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		require.True(b, crd.Settled(value, metadata["namespace"].(string), metadata["name"].(string)))
	}
}

// TestSkipPlain: eight bytes at a time end at the byte where one at a time do.
func TestSkipPlain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 31))
	for range 100_000 {
		text := make([]byte, random.IntN(40))
		for i := range text {
			if text[i] = byte(' ' + random.IntN(95)); random.IntN(20) == 0 {
				text[i] = byte(random.IntN(256))
			}
		}
		want := 0
		for want < len(text) && plain(text[want]) {
			want++
		}
		c := canonical{text: text}
		c.skipPlain()
		require.Equal(t, want, c.at, "%q", text)
	}
}
