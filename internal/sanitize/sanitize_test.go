package sanitize

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	rounds     = 18 // repetitions of the objects
	secretsDir = "/registry/secrets/shop/"
	widgetsDir = "/registry/example.com/widgets/shop/"
	thingCRD   = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
		`"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com",` +
		`"scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget",` +
		`"listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,` +
		`"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",` +
		`"x-kubernetes-preserve-unknown-fields":true,"properties":{` +
		`"token":{"type":"string","pattern":"^[A-Z][a-z0-9A-Z]{10,30}$"},"mode":{"type":"string","enum":["Basic",` +
		`"Full"]}}}}}}}]},"status":{"storedVersions":["v1"]}}`
)

// plant returns a snapshot with more than 1,000 markers.
func plant(t testing.TB) (path string, markers map[string]bool) {
	p := &planter{t: t, rand: rand.New(rand.NewPCG(1, 2))}
	p.put("/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com", thingCRD)
	p.put("compact_rev_key", "12")
	for n := range rounds {
		p.plantNatives(n)
		p.plantOthers(n)
		if n == 6 { // to free its pages
			fmt.Fprintln(&p.script, "compact")
		}
	}
	server := etcdtest.Start(t, t.TempDir())
	etcdtest.Run(t, server, p.script.String())
	user := p.marker()
	_, err := server.Client.UserAddWithOptions(t.Context(), user, p.marker(), &clientv3.UserAddOptions{})
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "in.db")
	etcdtest.Save(t, server, path)
	markers = map[string]bool{}
	for _, marker := range p.markers {
		markers[marker] = true
	}
	require.Greater(t, len(markers), 1000)
	return path, markers
}

// sanitized runs sanitize.
func sanitized(t testing.TB, in, key string, options transform.Options) (*transform.Report, []byte) {
	t.Helper()
	options.Command, options.In, options.Out = "sanitize", in, filepath.Join(t.TempDir(), "out.db")
	report, err := transform.Run(t.Context(), options, &sanitizer{masker: masker{key: []byte(key)},
		plaintext: options.Encryption != nil, keepNames: true})
	require.NoError(t, err, "%v", report.Problems)
	out, err := os.ReadFile(options.Out)
	require.NoError(t, err)
	return report, out
}

func TestMarkers(t *testing.T) {
	in, markers := plant(t)
	image, err := os.ReadFile(in)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, marker := range left(image, markers, 6) {
		found[marker] = true
	}
	require.Greater(t, len(found), len(markers)*9/10, "the test finds them")
	report, out := sanitized(t, in, "key", transform.Options{})
	require.Empty(t, left(out, markers, 0))
	_, again := sanitized(t, in, "key", transform.Options{})
	require.True(t, bytes.Equal(out, again))
	_, other := sanitized(t, in, "another", transform.Options{})
	require.False(t, bytes.Equal(out, other))

	s, err := snapshot.Open(t.Context(), report.Output.Path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for err := range snapshot.Verify(t.Context(), s) {
		require.NoError(t, err)
	}
	reader := inspect.NewReader(s, nil)
	for e, err := range reader.Live(t.Context(), nil) {
		require.NoError(t, err)
		require.Empty(t, left(e.Value, markers, 6), "%s: %q", e.Key, e.Value)
		requireShape(t, e)
	}
	require.Len(t, transformtest.Section[Sanitized](report).LeftOut, 2*rounds)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	require.Empty(t, left(bytes.ReplaceAll(text, []byte("sha256~Mk"), nil), markers, 0))
	server := etcdtest.Start(t, etcdtest.Restore(t, report.Output.Path))
	list, err := server.Client.Get(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.EqualValues(t, 15*rounds+1, list.Count)
}

// requireShape checks that a Secret has the content that its type requires.
func requireShape(t testing.TB, e *inspect.Entry) {
	t.Helper()
	if !strings.HasPrefix(string(e.Key), "/registry/") {
		return
	}
	require.NoError(t, e.Check(), "%s", e.Key)
	content, err := native.Decode(e.Value)
	require.NoError(t, err)
	entry := func(name string) string {
		data, _ := content["data"].(map[string]any)
		text, _ := data[name].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		return string(plain)
	}
	switch content["type"] {
	case "kubernetes.io/tls":
		require.Regexp(t, `^-----BEGIN RSA PRIVATE KEY-----\n[A-Za-z0-9+/=]+\n-----END RSA PRIVATE KEY-----\n$`,
			entry("tls.key"))
	case "kubernetes.io/dockerconfigjson":
		var config struct {
			Auths map[string]struct{ Auth string }
		}
		require.NoError(t, json.Unmarshal([]byte(entry(".dockerconfigjson")), &config))
		require.Len(t, config.Auths, 1)
	case "kubernetes.io/service-account-token":
		require.Regexp(t, `^eyJ[\w-]+\.[\w-]+\.[\w-]+$`, entry("token"))
	case "helm.sh/release.v1":
		require.NotEmpty(t, entry("release"))
	}
}

// TestBinaryOfText checks that binary data that is valid UTF-8 by chance is replaced as binary
// data, with its control characters.
func TestBinaryOfText(t *testing.T) {
	m := masker{key: bytes.Repeat([]byte("k"), leastKey)}
	for _, secret := range []string{"\x00\x01\x02\x03\x04\x05\x06\x07", "ab\x1b\x7f\x01--__\x02\x03\x04\x05"} {
		data := base64.StdEncoding.EncodeToString([]byte(secret))
		plain, err := base64.StdEncoding.DecodeString(m.data(data))
		require.NoError(t, err)
		require.Len(t, plain, len(secret))
		same := 0
		for i := range plain {
			if plain[i] == secret[i] {
				same++
			}
		}
		require.Less(t, same, 3, "%q", plain)
	}
}

// TestPackedTwice checks that gzip in gzip is replaced inside, and that a bomb is replaced as bytes
// without unpacking its second level.
func TestPackedTwice(t *testing.T) {
	m := masker{key: bytes.Repeat([]byte("k"), leastKey), unpacker: redact.NewUnpacker()}
	inner := gzipped(t, "secret text "+strings.Repeat("a", 1<<20))
	for _, packed := range []string{gzipped(t, inner), gzipped(t, `{"a":"`+encode(inner)+`"}`)} {
		out, is := m.packed(packed, 1)
		require.True(t, is)
		out = gunzipped(t, out)
		if out[0] == '{' {
			var content map[string]string
			require.NoError(t, json.Unmarshal([]byte(out), &content))
			data, err := base64.StdEncoding.DecodeString(content["a"])
			require.NoError(t, err)
			out = string(data)
		}
		require.Regexp(t, "^[a-z]{6} [a-z]{4} [a-z]+$", gunzipped(t, out))
		require.NotContains(t, gunzipped(t, out), "secret")
	}
	bomb := gzipped(t, strings.Repeat("a", 80<<20))
	require.Equal(t, len(bomb), len(gunzipped(t, m.bytes(gzipped(t, bomb), 0))))
}

func gunzipped(t *testing.T, packed string) string {
	t.Helper()
	unzip, err := gzip.NewReader(strings.NewReader(packed))
	require.NoError(t, err)
	plain, err := io.ReadAll(unzip)
	require.NoError(t, err)
	return string(plain)
}

// TestSecretOfAnotherObject checks that a secret of one object is replaced in others, under any
// name, also packed. Words, hosts and certificates of a Secret stay elsewhere.
func TestSecretOfAnotherObject(t *testing.T) {
	p := &planter{t: t, rand: rand.New(rand.NewPCG(3, 4))}
	const certificate = "-----BEGIN CERTIFICATE-----\nMIIBpublic\n-----END CERTIFICATE-----"
	marker, token, setting, password := p.marker(), p.marker(), p.marker(), p.marker()
	object := func(kind, name, data string) {
		p.putNative("/registry/"+kind+"s/shop/"+name, `{"apiVersion":"v1","kind":"`+
			map[string]string{"secret": "Secret", "configmap": "ConfigMap"}[kind]+
			`","metadata":{"name":"`+name+`","namespace":"shop"},"data":`+data+`}`)
	}
	object("secret", "a", fmt.Sprintf(`{"word":%q,"host":%q,"ca.crt":%q,"x":%q,"kubeconfig":%q,".env":%q,"auth":%q}`,
		encode("administrator"), encode("db.shop.example.com"), encode(certificate), encode(marker),
		encode("users:\n- user:\n    token: "+token+"\n"), encode("GREETING="+setting+"\nHOST=db.shop.example.com\n"),
		encode("me:"+password)))
	object("configmap", "in."+marker, `{"a":"b"}`)
	data, err := json.Marshal(map[string]string{"plain": "greet " + marker + " today", "one": encode("a" + marker),
		"two": "x " + encode("ab"+marker), "of-" + token: "a", "gzip": encode(gzipped(t, "use "+marker+" here")),
		"setting": setting, "password": "{\"a\":\"" + password + "\"}", "url": "me-" + encode(encode(marker)),
		"stays": "administrator of db.shop.example.com", "bundle": certificate})
	require.NoError(t, err)
	object("configmap", "b", string(data))
	report, out := sanitized(t, etcdtest.Build(t, p.script.String()), "key", transform.Options{})
	require.Equal(t, []string{"/registry/configmaps/shop/in." + marker}, report.Sections[0].(*Sanitized).Keys)
	out = bytes.ReplaceAll(out, []byte("in."+marker), nil) // of the key and its name
	require.Empty(t, left(out, map[string]bool{marker: true, token: true, setting: true, password: true}, 6))
	of := func(secret string) string { return masker{key: []byte("key")}.text(secret, 0) }
	for _, want := range []string{"greet " + of(marker) + " today", "administrator of db.shop.example.com", certificate,
		`{"a":"` + of(password) + `"}`} {
		require.Contains(t, string(out), want)
	}
	all := secrettest.Unpack(string(out), 3)
	for _, want := range []string{`[a-z]{3} ` + of(marker) + ` [a-z]{4}`, `[a-z]` + of(marker),
		`[A-Z]{8}=` + of(setting) + `\n`, `[a-z]{2}:` + of(password)} {
		require.True(t, regexp.MustCompile(want).MatchString(all),
			"%s: the alias is the same when packed, and in the Secret", want)
	}
	require.Equal(t, 3, report.Sections[0].(*Sanitized).Unsearched)
}

// left returns the markers in data, also in packed parts.
func left(data []byte, markers map[string]bool, depth int) (found []string) {
	all := secrettest.Unpack(string(data), depth)
	for at := range all {
		if strings.HasPrefix(all[at:], "Mk") && markers[all[at:min(at+24, len(all))]] {
			found = append(found, all[at:at+24])
		}
	}
	return found
}
