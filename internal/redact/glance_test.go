package redact

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/internal/native"
)

// TestGlance checks that an object is unchanged if a glance is sure of it, and that a glance is
// sure of most unchanged objects. One or two random values, some of them secrets, are put into each
// object.
func TestGlance(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	objects := objectsOf(t, "testdata/hidden.txtar", "testdata/shown.txtar")
	words := wordsFor(random, objects)
	sure, unchanged := 0, 0
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		for n := range 50 {
			obj := runtime.DeepCopyJSON(objects[name])
			s := NewShared()
			for range random.IntN(3) {
				s.Add(Secret{words.value(random), true})
			}
			s.Settle(nil)
			if n > 0 && !strings.Contains(name, "object:") {
				obj = map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
					"containers": []any{map[string]any{"name": "a"}}, "args": []any{"run", "--now"}}}
			}
			for range min(n, 1+random.IntN(2)) {
				words.put(random, s, mapsIn(obj))
			}
			key := []byte([]string{"/registry/a/b/c", "/registry/secrets/a/b"}[random.IntN(20)/19])
			g := s.Glance(key, new(nothing))
			visit(obj, g)
			before := runtime.DeepCopyJSON(obj)
			if s.Object(key, obj) {
				require.False(t, g.Sure(), "%s: %v", name, before)
				continue
			}
			if unchanged++; g.Sure() {
				sure++
				require.Equal(t, before, obj, name)
			}
		}
	}
	require.Greater(t, sure, unchanged/3)
}

// TestGlanceRules checks that a glance is unsure of an object for each rule of Shared.Object.
func TestGlanceRules(t *testing.T) {
	s := NewShared()
	s.Add(Secret{"of-another-1f2e", true})
	s.Add(Secret{"\xff1\x012hu\xfe3ter\xff", true})
	s.Settle(nil)
	for _, text := range []string{
		`{kind: Secret, apiVersion: v1, data: {a: eA==}}`, `{a: [{kind: Secret, apiVersion: v1, stringData: {a: x}}]}`,
		`{kind: SecretList, apiVersion: v1, items: [{data: {a: eA==}}]}`,
		`{kind: ConfigMap, apiVersion: v1, metadata: {labels: {owner: helm}}, data: {a: x}}`,
		`{kind: ConfigMap, apiVersion: v1, binaryData: {id_rsa: aHVudGVyMg==}}`,
		`{auths: {r: {auth: "12345"}}}`, `{kty: RSA, d: SECRET}`, `{password: SECRET}`, `{password: {a: SECRET}}`, `{password: [SECRET]}`,
		`{password: [[SECRET]]}`, `{password: 1234}`, `{password: [{a: SECRET}]}`,
		`{name: password, value: SECRET}`, `{key: password, value: SECRET}`, `{type: password, value: SECRET}`,
		`{name: password, default: SECRET}`, `{name: Authorization, value: SECRET}`,
		`{a: ["--password", SECRET]}`, `{a: ["--token=$Abc123def"]}`, `{a: [mysql, -uroot, "-pSECRET"]}`, `{a: "password: SECRET"}`,
		`{a: of-another-1f2e}`, `{b: {of-another-1f2e: a}}`, `{a: [of-another-1f2e]}`, `{a: b2YtYW5vdGhlci0xZjJl}`,
		`{a: "` + base64.StdEncoding.EncodeToString([]byte("\xff1\x012hu\xfe3ter\xff")) + `"}`,
		`{a: {ghp_0123456789abcdefghijABCDEFGHIJ012345: a}}`, `{"f:a": {'k:{"password":"SECRET"}': {}}}`,
		`{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`,
		`{metadata: {annotations: {openshift.io/token-secret.value: /a/b/c}}}`,
	} {
		obj := map[string]any{}
		data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "SECRET", "hunter2-7f3a")))
		require.NoError(t, err, text)
		require.NoError(t, utiljson.Unmarshal(data, &obj), text)
		g := s.Glance([]byte("/registry/a/b/c"), new(nothing))
		visit(obj, g)
		require.False(t, g.Sure(), text)
		require.True(t, s.Object([]byte("/registry/a/b/c"), obj), text)
	}
	g := s.Glance([]byte("/registry/secrets/a/b"), new(nothing))
	visit(map[string]any{}, g)
	require.False(t, g.Sure())
}

// nothing is a visitor without an effect.
type nothing struct{}

func (*nothing) Begin(bool, int)  {}
func (*nothing) Name(string, int) {}
func (*nothing) Text(string)      {}
func (*nothing) Value(any)        {}
func (*nothing) End()             {}

// visit shows content to a visitor.
func visit(content any, to native.Visitor) {
	switch v := content.(type) {
	case map[string]any:
		to.Begin(false, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			to.Name(name, 0)
			visit(v[name], to)
		}
		to.End()
	case []any:
		to.Begin(true, len(v))
		for _, item := range v {
			visit(item, to)
		}
		to.End()
	case string:
		to.Text(v)
	default:
		to.Value(v)
	}
}

// mapsIn returns the maps in content.
func mapsIn(content any) (all []map[string]any) {
	switch v := content.(type) {
	case map[string]any:
		all = append(all, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, mapsIn(v[name])...)
		}
	case []any:
		for _, item := range v {
			all = append(all, mapsIn(item)...)
		}
	}
	return all
}

// glanceWords are names and texts for random objects.
type glanceWords struct{ names, texts []string }

func wordsFor(random *rand.Rand, objects map[string]map[string]any) (w glanceWords) {
	w.names = strings.Fields(`name key type value default kind apiVersion data stringData binaryData items spec auths kty
		d k auth openAPIV3Schema encryptedData password token db_password api-key secretKey secretKeyRef secrets Secrets
		authorization credentials env labels a/b annotations conversion v:"password" k:{"name":"x"} f:a 1234
		kubectl.kubernetes.io/last-applied-configuration openshift.io/token-secret.value tls.key id_rsa
		sk-proj-0a1b2c3d4e5f6a7b8c9d owner ghp_0123456789abcdefghijABCDEFGHIJ012345`)
	w.texts = strings.Fields(`v1 Secret SecretList ConfigMap Pod CustomResourceDefinition APIResourceSchema helm
		apiextensions.k8s.io/v1 apis.kcp.io/v1alpha1 password token X-Api-Key Authorization Bearer hunter2-7f3a 12345
		--password --token=hunter2-7f3a -phunter2-7f3a mysql redis-cli -a -u root curl user:hunter2-7f3a sshpass -p
		plain words /etc/x/y $(VAR) postgres://a:hunter2-7f3a@h/d <redacted> c2VjcmV0LXZhbHVlLTEyMw==
		{"password":"hunter2-7f3a"} ghp_0123456789abcdefghijABCDEFGHIJ012345`)
	w.texts = append(w.texts, "<redacted 12 bytes>", "password: hunter2-7f3a", "basic aHVudGVyMi03ZjNh", "")
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		for _, m := range mapsIn(objects[name]) {
			for _, field := range slices.Sorted(maps.Keys(m)) {
				if text, is := m[field].(string); is && len(text) < 300 && random.IntN(4) == 0 {
					w.texts = append(w.texts, text)
				}
			}
		}
	}
	return w
}

func one[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }

func (w glanceWords) value(random *rand.Rand) string { return one(random, w.texts) }

// put puts random values into one of the maps.
func (w glanceWords) put(random *rand.Rand, s *Shared, in []map[string]any) {
	text := func() string { return one(random, w.texts) }
	to := one(random, in)
	switch random.IntN(8) {
	case 0:
		hide(to, random, s)
	case 1:
		to[one(random, w.names)] = []any{text(), text(), text()}
	case 2:
		to[one(random, w.names)] = map[string]any{one(random, w.names): text()}
	case 3:
		to[one(random, w.names)] = []any{int64(7), map[string]any{one(random, w.names): text()}, []any{text()}}
	case 4:
		to[one(random, w.names)] = one(random, []any{int64(12345678), 1.5, true, nil, map[string]any{}})
	case 5:
		to["x"] = map[string]any{"apiVersion": "v1", "kind": text(), one(random, w.names): map[string]any{
			one(random, w.names): text()}}
	default:
		to[one(random, w.names)] = text()
		to[one(random, w.names)] = text()
	}
}
