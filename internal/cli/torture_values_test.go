package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
)

const (
	widgetsPrefix = "/registry/demo.example.com/widgets/default/"
	crdsPrefix    = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
)

// hurtful returns records made to break their readers, by a short description.
func hurtful() map[string]map[string][]byte {
	widget := func(spec string) []byte {
		return []byte(
			`{"apiVersion":"demo.example.com/v1beta1","kind":"Widget","metadata":{"name":"hurt",` +
				`"namespace":"default","uid":"u"},"spec":` + spec + `}`)
	}
	one := func(value []byte) map[string][]byte { return map[string][]byte{widgetsPrefix + "hurt": value} }
	configMap := func(meta, data string) map[string][]byte {
		return map[string][]byte{"/registry/configmaps/default/hurt": []byte(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hurt","namespace":"default","uid":"u"` + meta +
				`},"data":{` + data + `}}`)}
	}
	nest := func(begin, middle, end string, n int) string {
		return strings.Repeat(begin, n) + middle + strings.Repeat(end, n)
	}
	long := binary.AppendUvarint(nil, 1<<62)
	pod := "k8s\x00\n\x09\n\x02v1\x12\x03Pod"
	return map[string]map[string][]byte{
		"objects 100,000 deep": one(widget(nest(`{"a":`, "1", "}", 100_000))),
		"lists 100,000 deep":   one(widget(nest("[", "", "]", 100_000))),
		"lists that never end": one([]byte(strings.Repeat("[", 1_000_000))),
		"YAML in YAML":         configMap("", `"a":"`+nest("[", "", "]", 100_000)+`"`),
		"CBOR lists 100,000 deep": one(append([]byte("\xd9\xd9\xf7\xa1\x41a"),
			nest("\x81", "\x01", "", 100_000)...)),
		"CBOR text of 2^62 bytes":   one([]byte("\xd9\xd9\xf7\xa1\x41a\x7b\x40\x00\x00\x00\x00\x00\x00\x00xyz")),
		"CBOR map of 2^62 entries":  one([]byte("\xd9\xd9\xf7\xbb\x40\x00\x00\x00\x00\x00\x00\x00\x41a\x01")),
		"CBOR endless text in text": one([]byte("\xd9\xd9\xf7" + strings.Repeat("\x7f", 100_000))),
		"protobuf of 2^62 bytes":    {"/registry/pods/default/hurt": append([]byte(pod+"\x12"), long...)},
		"protobuf envelope of 2^62": {"/registry/pods/default/hurt": append([]byte("k8s\x00\n"), long...)},
		"protobuf groups": {"/registry/pods/default/hurt": []byte(pod + "\x12\x7f" +
			strings.Repeat("\x0b", 100_000))},
		"protobuf messages nested": {"/registry/pods/default/hurt": nestedProtobuf(pod, 50_000)},
		"owners in a circle":       ownersInACircle(),
		"100,000 owners": configMap(`,"ownerReferences":[`+
			strings.TrimSuffix(strings.Repeat(`{"apiVersion":"v1","kind":"Pod","name":"p","uid":"x"},`, 100_000), ",")+
			`]`, ""),
		"100,000 labels": configMap(`,"labels":{`+numbered(`"l%d":"v"`, 100_000)+`}`, ""),
		"escapes": configMap(
			`,"labels":{"\u001b[2J":"\u001b]0;x\u0007"},"annotations":{"\u0000":"\u202e\u009b31m"}`,
			`"\u001b[2J\u0000":"\u001b[31m\r\n\u0008"`),
		"escapes in names": {widgetsPrefix + "\x1b[2J\x00\xff\xfe": widget(`{}`),
			"/registry/\x1b]0;x\x07/a": []byte("\x1b[2J\xff"), "/registry/pods/\x1b[31m/x\x00": []byte(pod)},
		"invalid UTF-8": one(widget("{\"a\":\"\xff\xfe\xc0\x80\",\"\xed\xa0\x80\":1}")),
		"huge numbers": one(widget(`{"size":1e999999999,"b":` + strings.Repeat("9", 1_000_000) +
			`,"c":-1e-999999999,"d":0.` + strings.Repeat("1", 100_000) + `}`)),
		"the same key a million": one(widget(`{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, 1_000_000), ",") +
			`}`)),
		"a million empty objects": manyEmpty(1_000_000),
		"1,000 versions": definition(numbered(
			`{"name":"v%d","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}`, 1000)),
		"two storage versions": definition(strings.ReplaceAll(
			numbered(`{"name":"v%d","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}`, 2),
			"false", "true")),
		"a schema 20,000 deep": definition(
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` +
				nest(`{"type":"object","properties":{"a":`, `{"type":"string"}`, `}}`, 20_000) + `}}`),
		"a schema that names itself": definition(
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"$ref":"#","type":"object",` +
				`"properties":{"a":{"$ref":"#/properties/a"}}}}}`),
		"a rule that takes for ever": definition(
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",` +
				`"x-kubernetes-validations":[{"rule":"` +
				nest("[1,2,3,4,5,6,7,8,9].all(x, ", "true", ")", 40) + `"}]}}}`),
		"a pattern that takes for ever": definition(
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",` +
				`"properties":{"a":{"type":"string","pattern":"(((a{1,100}){1,100}){1,100}){1,100}"}}}}}`),
		"a bomb in a Helm Secret": helmBomb(256 << 20),
	}
}

// numbered returns a list of n numbered strings.
func numbered(format string, n int) string {
	all := make([]string, n)
	for i := range n {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ",")
}

// nestedProtobuf returns a Pod with nested messages in its spec.
func nestedProtobuf(head string, depth int) []byte {
	var reversed []byte // to grow at its end
	for range depth + 1 {
		begin := binary.AppendUvarint([]byte{0x12}, uint64(len(reversed)))
		slices.Reverse(begin)
		reversed = append(reversed, begin...)
	}
	slices.Reverse(reversed)
	return append([]byte(head), reversed...)
}

func ownersInACircle() map[string][]byte {
	all := map[string][]byte{}
	for i := range 1000 {
		all[fmt.Sprintf("%sc%d", widgetsPrefix, i)] = fmt.Appendf(nil,
			`{"apiVersion":"demo.example.com/v1beta1","kind":"Widget","metadata":{"name":"c%d","namespace":"default",`+
				`"uid":"u%d",`+
				`"ownerReferences":[{"apiVersion":"demo.example.com/v1beta1","kind":"Widget","name":"c%d",`+
				`"uid":"u%d","controller":true}]}}`, i, i, (i+1)%1000, (i+1)%1000)
	}
	return all
}

func manyEmpty(n int) map[string][]byte {
	all := make(map[string][]byte, n)
	for i := range n {
		all[fmt.Sprintf("/registry/configmaps/default/k%d", i)] = []byte("{}")
	}
	return all
}

// definition returns a CRD with versions, and an object of it.
func definition(versions string) map[string][]byte {
	return map[string][]byte{
		crdsPrefix + "hurts.hurt.example": []byte(
			`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
				`"metadata":{"name":"hurts.hurt.example","uid":"u"},` +
				`"spec":{"group":"hurt.example","scope":"Namespaced","names":{"plural":"hurts","singular":"hurt",` +
				`"kind":"Hurt","listKind":"HurtList"},"versions":[` + versions + `]},` +
				`"status":{"storedVersions":["v1"]}}`),
		"/registry/hurt.example/hurts/default/a": []byte(
			`{"apiVersion":"hurt.example/v1","kind":"Hurt","metadata":{"name":"a","namespace":"default",` +
				`"uid":"x"},"a":"` + strings.Repeat("a", 10_000) + `"}`),
	}
}

func helmBomb(n int) map[string][]byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range n >> 20 {
		_, _ = z.Write(make([]byte, 1<<20))
	}
	_ = z.Close()
	release := base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(packed.Bytes())))
	return map[string][]byte{"/registry/secrets/default/sh.helm.release.v1.x.v1": []byte(
		`{"apiVersion":"v1","kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.x.v1",` +
			`"namespace":"default","uid":"u","labels":{"owner":"helm"}},"data":{"release":"` + release + `"}}`)}
}

// TestTortureValues runs every command with a file argument on a sound snapshot with hurtful
// values.
func TestTortureValues(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a worker")
	}
	copies, _ := tortureCopies(t)
	full := copies >= 1000
	c := newCampaign(t)
	w := &torturer{dir: filepath.Join(c.dir, "w")}
	require.NoError(t, os.Mkdir(w.dir, 0o700))
	require.NoError(t, os.Mkdir(w.dir+".tmp", 0o700))
	defer w.end()
	all := hurtful()
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if !full && len(all[name]) > 10_000 {
			continue
		}
		in := filepath.Join(w.dir, "in.db")
		_, err := transform.Run(t.Context(), transform.Options{Command: "plant",
			In: filepath.Join(c.dir, "fix", "storage.db"), Out: in},
			planFunc(func(ctx context.Context, v *transform.View) error {
				for _, key := range slices.Sorted(maps.Keys(all[name])) {
					if err := v.Put(ctx, []byte(key), all[name][key]); err != nil {
						return err
					}
				}
				return nil
			}))
		require.NoError(t, err, name)
		base := c.bases[0]
		asked := map[string]bool{}
		for _, number := range []int{0, 10, 20, 30} { // every choice of formats
			for at, line := range tortureLines(base, number) {
				text := strings.Join(line, " ")
				if path := fmt.Sprint(at, line[:2]); (full || (at+number+i)%40 == 0) && !asked[path] &&
					strings.HasPrefix(text, os.Getenv(tortureOnly)) {
					asked[path] = true
					o := w.run(t, line)
					c.count(t, name, o, c.check(t, w, base, o))
				}
			}
		}
		t.Logf("%s", name)
		require.NoError(t, os.Remove(in))
	}
	c.print(t, len(all))
}
