package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"

	"github.com/etcdshift/etcdshift/encoding"
)

// allocated returns the number of bytes allocated by fn.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// nestedDefaults returns a schema with nested lists, levels deep, each with a default of twelve
// empty objects.
func nestedDefaults(levels int) string {
	s := `{"type":"string"}`
	for range levels {
		s = `{"type":"array","default":[` + strings.Repeat(`{},`, 11) +
			`{}],"items":{"type":"object","properties":{"l":` + s + `}}}`
	}
	return `{"type":"object","properties":{"spec":{"type":"object","properties":{"l":` + s + `}}}}`
}

func TestDefaultsAreBounded(t *testing.T) {
	for levels, want := range map[int]error{1: nil, 3: nil, 5: ErrTooLarge, 9: ErrTooLarge, 100: ErrTooLarge} {
		t.Run(fmt.Sprint(levels), func(t *testing.T) {
			v := thing(t, nestedDefaults(levels))
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","spec":{}}`)
			var err error
			require.Less(t, allocated(func() { err = v.Default(obj) }), uint64(10*MaxGrowth))
			require.ErrorIs(t, err, want)
			require.Less(t, encoding.Weigh(obj), 2*MaxGrowth)
			if want == nil {
				same := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","spec":{}}`)
				structural, _ := v.structural()
				defaulting.Default(same, structural)
				require.Equal(t, same, obj)
			}
		})
	}
}

// A large object may grow as much as a small one.
func TestLargeObjectsAreDefaulted(t *testing.T) {
	v := thing(t,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"text":{"type":"string"},`+
			`"a":{"type":"string","default":"b"}}}}}`)
	obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","spec":{}}`)
	spec := obj["spec"].(map[string]any)
	spec["text"] = strings.Repeat("x", 2*MaxGrowth)
	require.NoError(t, v.Default(obj))
	require.Equal(t, "b", spec["a"])
}

// The size of one long default in many elements is counted before the copy.
func TestLongDefaultsAreBounded(t *testing.T) {
	text := strings.Repeat("x", 1<<20)
	for _, of := range []string{`"items":{"type":"string","default":%q}`,
		`"items":{"type":"array","default":[%q],"items":{"type":"string"}}`,
		`"items":{"type":"object","properties":{"a":{"type":"string","default":%q}}}`} {
		v := thing(t, `{"type":"object","properties":{"l":{"type":"array",`+fmt.Sprintf(of, text)+`}}}`)
		element := `null,`
		if strings.Contains(of, "properties") {
			element = `{},`
		}
		obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","l":[`+
			strings.TrimSuffix(strings.Repeat(element, 100), ",")+`]}`)
		require.ErrorIs(t, v.Default(obj), ErrTooLarge)
	}
}

func TestBeginAndFinishAreBounded(t *testing.T) {
	const plain = `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`
	for _, c := range []struct{ stored, storage string }{{nestedDefaults(9), plain}, {plain, nestedDefaults(9)}} {
		crd := parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":`+c.storage+
			`}},`+
			`{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":`+c.stored+`}}`, ""))
		_, err := crd.Rewrite(object(t, `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{},"spec":{}}`))
		require.ErrorIs(t, err, ErrTooLarge)
	}
}
