package native

import (
	"bytes"
	"errors"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// TestExponents checks that a quantity with very many digits is never computed, in any field, and
// that a label that looks like one is accepted. Computing takes hours.
func TestExponents(t *testing.T) {
	for text, bomb := range map[string]bool{
		"11111111111111111111e999999999": true, "11111111111111111111E99999999": true, "1.5e-999999999": true,
		"11111111111111111111e+99999999":  true,
		"-11111111111111111111e999999999": true, strings.Repeat("1", 99) + "e999999999": true,
		strings.Repeat("1", 45) + "e999999999": true,
		"1e9999":                               false, "12e4": false, "100Ei": false,
	} {
		for _, field := range []string{"limit", "divisor", "sizeLimit"} {
			json, proto := podOf(t, field, text, "x")
			for _, v := range []encoding.Value{json, proto} {
				_, err := DecodeParsed(v)
				if content, _, err := encoding.DecodeObject(json.Raw); err == nil {
					raw, err := encoding.EncodeObject(content, encoding.FormatCBOR)
					require.NoError(t, err)
					_, err = Decode(raw)
					require.Equal(t, bomb, errors.Is(err, errExponent), "CBOR %s %s", field, text)
				}
				if bomb {
					require.ErrorIs(t, err, errExponent, "%s %s", field, text)
					require.ErrorIs(t, Check(v), errExponent, "%s %s", field, text)
				} else {
					require.NoError(t, err, text)
				}
			}
		}
		if len(text) > 48 {
			continue // too long for a label
		}
		json, proto := podOf(t, "limit", "1234567", text)
		for _, v := range []encoding.Value{json, proto} {
			content, err := DecodeParsed(v)
			require.NoError(t, err)
			require.Equal(t, text, content["metadata"].(map[string]any)["labels"].(map[string]any)["a"])
			require.NoError(t, Check(v))
		}
	}
}

// TestHasExponent compares the search for exponents in random texts with a regular expression.
func TestHasExponent(t *testing.T) {
	want, found := regexp.MustCompile(`[0-9.][eE][+-]?[0-9]{5}`), 0
	random := rand.New(rand.NewSource(1))
	for range 200_000 {
		text := make([]byte, random.Intn(40))
		for i := range text {
			text[i] = "0123456789012345.eE+-x"[random.Intn(22)]
		}
		has := want.Match(text)
		require.Equal(t, has, hasExponent(text), "%s", text)
		if has {
			found++
		}
	}
	require.Greater(t, found, 1000)
}

// TestExponentsInJSON checks numbers, escapes, and fields that occur twice: an API server decodes
// both.
func TestExponentsInJSON(t *testing.T) {
	for spec, bomb := range map[string]bool{
		`"limits":[{"max":{"cpu":1e-99999999}}]`:                true,
		`"limits":[{"max":{"cpu":"1\u0065-99999999"}}]`:         true,
		`"limits":[{"max":{"cpu":"1e99999999","cpu":"1"}}]`:     true,
		`"limits":[{"max":{"cpu":"1e99999999"}}],"limits":null`: true,
		`"limits":[{"max":{"cpu\u0065-99999":"1"}}]`:            false,
		`"limits":[{"Max":{"cpu":"1e99999999"}}]`:               false,
		`"more":{"cpu":["1e99999999",1e-99999]}`:                false,
	} {
		v, err := encoding.Parse([]byte(`{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a",` +
			`"annotations":{"a":"1\u0065-99999999 1\\u0065-99999999 \u003c"}},"spec":{` + spec + `}}`))
		require.NoError(t, err)
		require.Equal(t, bomb, errors.Is(Check(v), errExponent), spec)
		_, err = DecodeParsed(v)
		require.Equal(t, bomb, errors.Is(err, errExponent), spec)
	}
}

// TestExponentsInTexts checks that a healthy Pod whose texts look like numbers is read, with any
// length before the text.
func TestExponentsInTexts(t *testing.T) {
	for n := range 60 {
		text := strings.Repeat("1", n) + "2e34567"
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: text, UID: types.UID("1-" + text + "-1")},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: text, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceName("a/" + text): resource.MustParse("1.5e3")}}}}},
			Status: corev1.PodStatus{Message: "111 " + text + "999999999999999999999999"}}
		raw, err := pod.Marshal()
		require.NoError(t, err)
		v := encoding.Value{GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Format: encoding.FormatProtobuf, Raw: raw}
		content, err := DecodeParsed(v)
		require.NoError(t, err)
		json, err := encoding.EncodeObject(content, encoding.FormatJSON)
		require.NoError(t, err)
		_, err = Decode(json)
		require.NoError(t, err)
	}
}

// TestExponentsInMessages checks quantities in places where no encoder writes them, but the decoder
// reads them.
func TestExponentsInMessages(t *testing.T) {
	type bytes = []byte
	field := func(number protowire.Number, content bytes) bytes {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	const text, entryKey, entryValue = "1e99999", 1, 2
	hard, soft := field(1, bytes(text)), field(1, bytes("1"))
	pod := func(entry bytes) bytes { // spec, containers, resources, limits
		return field(2, field(2, field(8, field(1, entry))))
	}
	key := field(entryKey, bytes("cpu"))
	entry := func(quantity bytes) bytes { return slices.Concat(key, field(entryValue, quantity)) }
	plain := pod(entry(hard))
	overlong := bytes{0x92, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e}
	for name, raw := range map[string]bytes{
		"plain": plain, "twice": append(pod(entry(hard)), pod(entry(soft))...),
		"behind unknown fields":    slices.Concat(field(999, bytes("a")), bytes{0x20, 1}, plain),
		"behind an unknown group":  slices.Concat(bytes{0x23, 0x2b, 0x34, 0x24}, plain),
		"value before key":         pod(slices.Concat(field(entryValue, hard), key)),
		"value twice":              pod(slices.Concat(entry(hard), field(entryValue, soft))),
		"unknown in an entry":      pod(slices.Concat(field(9, nil), entry(hard))),
		"type of a varint":         pod(slices.Concat(key, bytes{entryValue << 3}, protowire.AppendBytes(nil, hard))),
		"text twice":               pod(entry(slices.Concat(hard, soft))),
		"behind the entry":         field(2, field(2, field(8, slices.Concat(field(1, append(key, 0x12, 9)), hard)))),
		"long tag":                 append(bytes{0x92, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, plain[1:]...),
		"tag of more than 32 bits": append(bytes{0x92, 0x80, 0x80, 0x80, 0x80, 0x01}, plain[1:]...),
		"tag of more than 64 bits": append(overlong, plain[1:]...),
	} {
		v := encoding.Value{GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Format: encoding.FormatProtobuf, Raw: raw}
		if name != "behind the entry" { // an error after the quantity
			require.NoError(t, new(corev1.Pod).Unmarshal(raw), name)
		}
		_, err := DecodeParsed(v)
		require.ErrorIs(t, err, errExponent, name)
		require.ErrorIs(t, Check(v), errExponent, name)
		unknown := field(777, raw)
		_, err = DecodeParsed(encoding.Value{GVK: v.GVK, Format: v.Format, Raw: unknown})
		require.NoError(t, err, name)
	}
}

// TestPlansHoldQuantities checks that the plans know every field with a quantity.
func TestPlansHoldQuantities(t *testing.T) {
	seen, found := map[*message]bool{}, 0
	var look func(of reflect.Type, m *message)
	look = func(of reflect.Type, m *message) {
		if seen[m] || of.Kind() != reflect.Struct {
			return
		}
		seen[m] = true
		for i := range of.NumField() {
			f := of.Field(i)
			within := f.Type
			for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, within.Kind()) {
				within = within.Elem()
			}
			if within == reflect.TypeFor[resource.Quantity]() {
				found++
			} else if !holdsQuantity(within, map[reflect.Type]bool{}) {
				continue
			}
			number, err := strconv.Atoi(strings.Split(f.Tag.Get("protobuf")+",", ",")[1])
			require.NoError(t, err, "%s.%s", of, f.Name)
			plan := m.fields[number]
			require.Contains(t, []wireKind{nested, nestedMap, quantity, quantityMap}, plan.kind, "%s.%s", of, f.Name)
			if plan.below != nil && within != reflect.TypeFor[resource.Quantity]() {
				look(within, plan.below)
			}
		}
	}
	for gvk, m := range messages() {
		look(scheme.Scheme.AllKnownTypes()[gvk], m)
	}
	require.Greater(t, found, 20)
}

// holdsQuantity reports whether a type has a quantity.
func holdsQuantity(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsQuantity(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] {
			return false
		}
		seen[t] = true
		for i := range t.NumField() {
			if holdsQuantity(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return t == reflect.TypeFor[resource.Quantity]()
}

// podOf returns a Pod with a quantity in a field and a label, as JSON and protobuf.
func podOf(t *testing.T, field, quantity, label string) (json, proto encoding.Value) {
	stand := "2" + strings.Repeat("1", len(quantity)-1) // as long
	q := resource.MustParse(stand)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", Labels: map[string]string{"a": label}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
	c := &pod.Spec.Containers[0]
	switch field {
	case "limit":
		c.Resources.Limits = corev1.ResourceList{"cpu": q}
	case "divisor":
		c.Env = []corev1.EnvVar{{Name: "e",
			ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu",
				Divisor: q}}}}
	case "sizeLimit":
		pod.Spec.Volumes = []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &q}}}}
	}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	proto = encoding.Value{GVK: gvk, Format: encoding.FormatProtobuf,
		Raw: bytes.Replace(raw, []byte(stand), []byte(quantity), 1)}
	content, err := DecodeParsed(encoding.Value{GVK: gvk, Format: encoding.FormatProtobuf, Raw: raw})
	require.NoError(t, err)
	text, err := encoding.EncodeObject(content, encoding.FormatJSON)
	require.NoError(t, err)
	json, err = encoding.Parse(bytes.Replace(text, []byte(`"`+stand+`"`), []byte(`"`+quantity+`"`), 1))
	require.NoError(t, err)
	return json, proto
}
