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
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

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

// plantNatives plants secrets in objects stored in protobuf.
func (p *planter) plantNatives(n int) {
	meta := func(name string) string {
		return fmt.Sprintf(`"metadata":{"name":"%s-%d","namespace":"shop"}`, name, n)
	}
	secret := func(name, kind, data string) {
		p.putNative(fmt.Sprintf("%s%s-%d", secretsDir, name, n),
			`{"apiVersion":"v1","kind":"Secret",`+meta(name)+`,"type":"`+kind+`","data":{`+data+`}}`)
	}
	secret("opaque", "Opaque", `"password":"MARKER64","greeting":"MARKER64","raw":"MARKERBIN64"`)
	secret("tls", "kubernetes.io/tls", `"tls.crt":"MARKERPEM64","tls.key":"MARKERPEM64"`)
	secret("docker", "kubernetes.io/dockerconfigjson", `".dockerconfigjson":"MARKERAUTH64"`)
	secret("basic", "kubernetes.io/basic-auth", `"username":"MARKER64","password":"MARKER64"`)
	secret("bootstrap-token", "bootstrap.kubernetes.io/token", `"token-secret":"MARKER64"`)
	secret("sh.helm.release.v1.web.v3", "helm.sh/release.v1", `"release":"MARKERHELM64"`)
	p.putNative(fmt.Sprintf("%stoken-%d", secretsDir, n),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"token-%d","namespace":"shop",`+
			`"annotations":{"kubernetes.io/service-account.name":"default"}},`+
			`"type":"kubernetes.io/service-account-token","data":{"token":"MARKERJWT64"}}`, n))
	container :=
		`{"name":"a","image":"a","env":[{"name":"DB_PASSWORD","value":"MARKER"},{"name":"URL",` +
			`"value":"postgres://me:MARKER@db/x"}],` +
			`"args":["--token=MARKER","--password","MARKER","-v"],"command":["sh","-c","curl -H 'Authorization: ` +
			`Bearer MARKER' https://x"]}`
	p.putNative(fmt.Sprintf("/registry/pods/shop/pod-%d", n), `{"apiVersion":"v1","kind":"Pod",`+meta("pod")+
		`,"spec":{"containers":[`+container+`],"initContainers":[`+container+`]}}`)
	applied, err := json.Marshal(
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[` + container + `]}}}}` +
			"\n")
	require.NoError(p.t, err)
	p.putNative(fmt.Sprintf("/registry/deployments/shop/web-%d", n),
		fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","namespace":"shop",`+
			`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%s,"example.com/api-token":"MARKER"}},`+
			`"spec":{"selector":{"matchLabels":{"a":"b"}},`+
			`"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[%s]}}}}`, n, applied, container))
	p.putNative(fmt.Sprintf("/registry/configmaps/shop/config-%d", n),
		`{"apiVersion":"v1","kind":"ConfigMap",`+meta("config")+`,"data":{"a.yaml":"# c\na: b\npassword: MARKER\n",`+
			`"a.json":"{\"user\": \"me\", \"clientSecret\": \"MARKER\"}","a.ini":"[db]\nuser=me\npassword=MARKER\n",`+
			`"a.xml":"<password>MARKER</password>","token":"MARKER",`+
			`"id_rsa":"-----BEGIN RSA PRIVATE KEY-----\nMARKER\n-----END RSA PRIVATE KEY-----\n","jwt":"x MARKERJWT `+
			`y","in.txt":"eyJhIjoiYiJ9",`+
			`"secret.yaml":"apiVersion: v1\nkind: Secret\ndata:\n  a: MARKER64\n","enc.yaml":"kind: `+
			`EncryptionConfiguration\nresources:\n- providers:\n  - aescbc:\n      keys:\n      - secret: `+
			`MARKER64\n"},`+
			`"binaryData":{"b":"`+encode("password: MARKER")[:0]+`MARKERPEM64"}}`)
	p.putNative(fmt.Sprintf("/registry/configmaps/shop/tiller-%d", n),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"tiller-%d","namespace":"shop",`+
			`"labels":{"owner":"helm"}},"data":{"release":"MARKERHELM"}}`, n))
	p.putNative(fmt.Sprintf("/registry/events/shop/event-%d", n), `{"apiVersion":"v1","kind":"Event",`+meta("event")+
		`,"message":"login failed: password=MARKER","involvedObject":{}}`)
}

// plantOthers plants secrets in custom resources, outside objects, in history and in deleted
// records.
func (p *planter) plantOthers(n int) {
	name := func(name string) string {
		return fmt.Sprintf(`"metadata":{"name":"%s-%d","namespace":"shop"}`, name, n)
	}
	p.put(fmt.Sprintf("%sa-%d", widgetsDir, n), `{"apiVersion":"example.com/v1","kind":"Widget",`+name("a")+
		`,"spec":{"mode":"Full","token":"MARKER","auth":{"password":"MARKER"},`+
		`"values":"db:\n  password: MARKER\n","headers":[{"name":"Authorization","value":"Bearer MARKER"}],"size":3,`+
		`"users":[{"apiKey":"MARKER"}]}}`)
	p.put(fmt.Sprintf("%sb-%d", widgetsDir, n),
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"managedFields":[{"manager":"m",`+
			`"operation":"Apply","apiVersion":"example.com/v1",`+
			`"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:tokens":{"v:\"MARKER\"":{}}}}}],`+
			strings.TrimPrefix(name("b"), `"metadata":{`)+`,"spec":{"tokens":["MARKER"]}}`)
	old := fmt.Sprintf("/registry/configmaps/shop/old-%d", n)
	p.putNative(old, `{"apiVersion":"v1","kind":"ConfigMap",`+name("old")+`,"data":{"greeting":"MARKER"}}`)
	p.putNative(old, `{"apiVersion":"v1","kind":"ConfigMap",`+name("old")+`,"data":{"greeting":"hello"}}`)
	gone := fmt.Sprintf("/registry/configmaps/shop/gone-%s", p.marker())
	p.putNative(gone,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gone","namespace":"shop"},`+
			`"data":{"greeting":"MARKER"}}`)
	fmt.Fprintf(&p.script, "del %q\n", gone)
	p.put(fmt.Sprintf("/openshift.io/oauth/accesstokens/sha256~%s", p.marker()),
		`{"kind":"OAuthAccessToken","apiVersion":"oauth.openshift.io/v1","metadata":{"name":"a"},`+
			`"refreshToken":"MARKER"}`)
	p.put(fmt.Sprintf("/bootstrap/%d", n), `MARKER`)
}

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

// planter makes records with markers as secrets.
type planter struct {
	t       testing.TB
	rand    *rand.Rand
	markers []string
	script  strings.Builder // for etcdtest
}

// marker returns a new secret.
func (p *planter) marker() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	out := []byte("Mk")
	for range 22 {
		out = append(out, letters[p.rand.IntN(len(letters))])
	}
	p.markers = append(p.markers, string(out))
	return string(out)
}

// fill replaces each MARKER by a new marker, in the form that its suffix names.
func (p *planter) fill(text string) string {
	return places.ReplaceAllStringFunc(text, func(place string) string {
		switch marker := p.marker(); place {
		case "MARKER64": // base64
			return encode(marker)
		case "MARKERPEM64": // a private key in base64
			return encode("-----BEGIN RSA PRIVATE KEY-----\n" + encode("key of "+marker+".") +
				"\n-----END RSA PRIVATE KEY-----\n")
		case "MARKERJWT64": // a ServiceAccount token in base64
			return encode(token(marker))
		case "MARKERJWT":
			return token(marker)
		case "MARKERAUTH64": // a docker configuration in base64
			return encode(`{"auths":{"https://registry.example.com/v1/":{"username":"me","password":"` + marker +
				`","auth":"` + encode("me:"+marker) + `"}}}`)
		case "MARKERBIN64": // binary data
			return encode("\xff\xfe\x00" + marker)
		case "MARKERHELM64": // a Helm release as in Secrets
			return encode(p.release(marker))
		case "MARKERHELM":
			return p.release(marker)
		default:
			return marker
		}
	})
}

var places = regexp.MustCompile(`MARKER(?:PEM64|JWT64|JWT|AUTH64|BIN64|HELM64|HELM|64)?`)

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func token(marker string) string {
	raw := base64.RawURLEncoding.EncodeToString
	return raw([]byte(`{"alg":"RS256","kid":"a"}`)) + "." +
		raw([]byte(`{"iss":"kubernetes","sub":"`+marker+`","exp":12}`)) + "." + raw([]byte(marker))
}

// release packs a Helm release.
func (p *planter) release(marker string) string {
	content := map[string]any{
		"name": "web", "namespace": "shop", "version": 3, "info": map[string]any{"status": "deployed",
			"notes": "use " + marker, "description": marker},
		"chart": map[string]any{"metadata": map[string]any{"name": "web", "version": "1.2.3"},
			"values":    map[string]any{"greeting": marker},
			"templates": []any{map[string]any{"name": "a", "data": encode("x: " + marker)}}},
		"config":   map[string]any{"auth": map[string]any{"password": marker, "greeting": marker, "port": 5432}},
		"manifest": "---\n# " + marker + "\napiVersion: v1\nkind: Secret\nstringData:\n  a: " + marker + "\n",
		"hooks":    []any{map[string]any{"manifest": marker}},
	}
	text, err := json.Marshal(content)
	require.NoError(p.t, err)
	return encode(gzipped(p.t, string(text)))
}

// put stores a raw value, with markers.
func (p *planter) put(key, value string) { fmt.Fprintf(&p.script, "put %q %q\n", key, p.fill(value)) }

// putNative stores an object in protobuf, like an API server.
func (p *planter) putNative(key, object string) {
	p.t.Helper()
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(p.fill(object)), nil, nil)
	require.NoError(p.t, err, object)
	var stored bytes.Buffer
	require.NoError(p.t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &stored))
	fmt.Fprintf(&p.script, "put %q %q\n", key, stored.String())
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
