package encoding

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// readObject is the fast path of DecodeObject.
func readObject(data []byte) (obj map[string]any, ok bool) {
	p := decoderOf(data)
	value, ok := p.decode()
	obj, isObject := value.(map[string]any)
	return obj, ok && isObject
}

// checkRead checks that an object accepted by readObject equals the result of an API server's
// decoder.
func checkRead(t *testing.T, data []byte) {
	obj, ok := readObject(data)
	if ok {
		var want map[string]any
		require.NoError(t, utiljson.Unmarshal(data, &want), "%q", data)
		require.Equal(t, want, obj, "%q", data)
		checkWrite(t, obj)
	}
}

// checkWrite checks that EncodeObject equals encoding/json.
func checkWrite(t *testing.T, obj map[string]any) {
	var want bytes.Buffer
	require.NoError(t, json.NewEncoder(&want).Encode(obj))
	got, err := EncodeObject(obj, FormatJSON)
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
}

// TestEncodeOthers checks that values no decoder returns are encoded like encoding/json, with the
// same errors.
func TestEncodeOthers(t *testing.T) {
	checkWrite(t, nil)
	checkWrite(t, map[string]any{
		"a": []string{"<b>"}, "b": map[string]any(nil), "c": []any(nil), "d": 7, "e": json.Number("1e2"),
		"f": struct{ A string }{"&"},
		"g": math.Copysign(0, -1), "h": 1e21, "i": "\u2028\x7f\xff\x00", "<\"": nil,
	})
	_, err := EncodeObject(map[string]any{"a": []any{map[string]any{"b": math.NaN()}}}, FormatJSON)
	require.EqualError(t, err, "encode JSON: json: unsupported value: NaN")
}

// checkPass checks that parseJSON and encoding/json accept the same text, field by field, and that
// the text stays the same.
func checkPass(t *testing.T, data []byte) (passed bool) {
	checkRead(t, data)
	fields, err := parseJSONObject(data)
	var want map[string]json.RawMessage
	if wantErr := json.Unmarshal(data, &want); wantErr != nil || want == nil || err != nil {
		require.Equal(t, wantErr == nil && want != nil, err == nil, "%q: %v, %v", data, wantErr, err)
		return false
	}
	for name, value := range want {
		require.Equal(t, string(value), string(fields.get(name)), "%q", data)
		if list, err := parseJSONList(fields.get(name)); err == nil && list != nil {
			require.JSONEq(t, string(value), string(list.listText()))
		}
	}
	for _, f := range fields {
		require.Contains(t, want, f.name, "%q", data)
	}
	require.True(t, json.Valid(fields.text()))
	others := len(fields.without("b"))
	again, err := parseJSONObject(fields.set("b", []byte("7")).without("b").text())
	require.NoError(t, err)
	require.Len(t, again, others)
	return true
}

var passSeeds = []string{
	`{}`, " {\t} \r\n", `{"a":1}`, `{"a":[],"b":{},"c":[1,-0.5e+3,"x"],"d":null,"e":true , "f" : false}`,
	`{"a":"\u00e9\n\"","a":"é"}`,
	`{"é":1}`, `{"\u0061":1}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
	"{\"a\":\"\x01\"}", "{\"a\":\"\xff\x80\"}",
	`{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1]`, `{"a":[1,]}`, `{"a":[}`, `{"a":1} x`, `{"a":nul}`,
	`{"a":truefalse}`, "{\"a\":1}\x00", `{"a":"`, `{"a":"\`, `{"a":"\u1`,
	`{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`,
	`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
	`{"a":1,"a":{"b":2},"a":{"c":3}}`,
	`{"a":-0,"b":-0.0,"c":1E400,"d":9223372036854775808,"e":-9223372036854775808,"f":1e3}`, "{\"\xff\":\"\\ud800\"}",
	`{"metadata":{"a":1,"managedFields":[{"apiVersion":"v1"}],"name":"x"},"spec":{"managedFields":[7]}}`,
	`{"metadata":{"managedFields":[{"apiVersion":"v3"}]}}`,
	`{"metadata":{"managedFields":[{"apiVersion":"\u00763"}]}}`,
	`{"metadata":{"managedFields":[]},"metadata":{"managedFields":{},"b":2}}`,
	`{"metadata":{"managedFields":[{"apiVersion":"v3"}],"managedFields":[]},"a":[]}`,
	`{"metadata":[{"managedFields":[]}]}`, `{"metadata":{"managedFields":[1e400]}}`,
	`{"metadata":{"managedFields":[` + strings.Repeat("9", 400) + `]}}`,
	`{"a" : [ 1 , "]" , {"b":"\\\"}"} ] , "b":{},"c":-1.5e3,"d":null , "a":true}`,
	`{"\u0061":"\ud83d\ude00","":"","é":[[],[[]],{}]}`,
	`{"":0,"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"spec":{"long":"` + strings.Repeat("plain text ", 9) +
		`\\"},"status":{}}`,
}

func FuzzPassObject(f *testing.F) {
	for _, s := range passSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkPass(t, data) })
}

// TestPassObject checks that stored custom resources take the fast path, and that random damage is
// found or left to encoding/json.
func TestPassObject(t *testing.T) {
	paths, err := filepath.Glob("testdata/cr/*")
	require.NoError(t, err)
	texts := passSeeds
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if Detect(data) == FormatJSON {
			texts = append(texts, string(data))
			require.True(t, checkPass(t, data), path)
			_, ok := readObject(data)
			require.True(t, ok, path)
		}
	}
	require.Greater(t, len(texts), len(passSeeds))
	random, passed := rand.New(rand.NewPCG(1, 2)), 0
	const bytesOf = "\"\\{}[]:,0-.eE+tfnu \n\x00\x1fa\xff"
	for _, text := range texts {
		for range 2000 {
			data := []byte(text)
			for range 1 + random.IntN(3) {
				if i := random.IntN(len(data) + 1); i < len(data) && random.IntN(3) > 0 {
					data[i] = bytesOf[random.IntN(len(bytesOf))]
				} else {
					data = append(data[:i:i], data[min(len(data), i+random.IntN(4)):]...)
				}
			}
			if checkPass(t, data) {
				passed++
			}
		}
	}
	require.Greater(t, passed, 1000)
}

func BenchmarkPassObject(b *testing.B) {
	paths, err := filepath.Glob("testdata/cr/*.after")
	require.NoError(b, err)
	data, err := os.ReadFile(paths[0])
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	var few [8]jsonField
	for b.Loop() {
		if _, err := parseJSON(data, '{', few[:0]); err != nil {
			b.Fatal(err)
		}
	}
}
