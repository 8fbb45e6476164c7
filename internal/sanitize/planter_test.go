package sanitize

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
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
