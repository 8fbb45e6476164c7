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

	"github.com/etcdshift/etcdshift/internal/test/unpacked"
)

// planter makes records with markers in the place of secrets.
type planter struct {
	t       testing.TB
	rand    *rand.Rand
	markers []string
	script  strings.Builder // for etcdtest
}

// marker is a new secret.
func (p *planter) marker() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	out := []byte("Mk")
	for range 22 {
		out = append(out, letters[p.rand.IntN(len(letters))])
	}
	p.markers = append(p.markers, string(out))
	return string(out)
}

// fill puts a new marker in place of each MARKER, in the form that its suffix names.
func (p *planter) fill(text string) string {
	return places.ReplaceAllStringFunc(text, func(place string) string {
		switch marker := p.marker(); place {
		case "MARKER64": // base64
			return encode(marker)
		case "MARKERPEM64": // a private key in base64
			return encode("-----BEGIN RSA PRIVATE KEY-----\n" + encode("key of "+marker+".") + "\n-----END RSA PRIVATE KEY-----\n")
		case "MARKERJWT64": // a token of a ServiceAccount in base64
			return encode(token(marker))
		case "MARKERJWT":
			return token(marker)
		case "MARKERAUTH64": // a docker configuration in base64
			return encode(`{"auths":{"https://registry.example.com/v1/":{"username":"me","password":"` + marker + `","auth":"` + encode("me:"+marker) + `"}}}`)
		case "MARKERBIN64": // bytes that are no text
			return encode("\xff\xfe\x00" + marker)
		case "MARKERHELM64": // a release of Helm as Secrets have it
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
	return raw([]byte(`{"alg":"RS256","kid":"a"}`)) + "." + raw([]byte(`{"iss":"kubernetes","sub":"`+marker+`","exp":12}`)) + "." + raw([]byte(marker))
}

// release packs a release of Helm.
func (p *planter) release(marker string) string {
	content := map[string]any{
		"name": "web", "namespace": "shop", "version": 3, "info": map[string]any{"status": "deployed", "notes": "use " + marker, "description": marker},
		"chart": map[string]any{"metadata": map[string]any{"name": "web", "version": "1.2.3"}, "values": map[string]any{"greeting": marker},
			"templates": []any{map[string]any{"name": "a", "data": encode("x: " + marker)}}},
		"config":   map[string]any{"auth": map[string]any{"password": marker, "greeting": marker, "port": 5432}},
		"manifest": "---\n# " + marker + "\napiVersion: v1\nkind: Secret\nstringData:\n  a: " + marker + "\n", "hooks": []any{map[string]any{"manifest": marker}},
	}
	text, err := json.Marshal(content)
	require.NoError(p.t, err)
	return encode(gzipped(p.t, string(text)))
}

// put stores a value as it is, with markers.
func (p *planter) put(key, value string) { fmt.Fprintf(&p.script, "put %q %q\n", key, p.fill(value)) }

// putNative stores an object as an API server does, in protobuf.
func (p *planter) putNative(key, object string) {
	p.t.Helper()
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(p.fill(object)), nil, nil)
	require.NoError(p.t, err, object)
	var stored bytes.Buffer
	require.NoError(p.t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &stored))
	fmt.Fprintf(&p.script, "put %q %q\n", key, stored.String())
}

// left returns the markers that are in data, or in what is packed in it.
func left(data []byte, markers map[string]bool, depth int) (found []string) {
	all := unpacked.All(string(data), depth)
	for at := range all {
		if strings.HasPrefix(all[at:], "Mk") && markers[all[at:min(at+24, len(all))]] {
			found = append(found, all[at:at+24])
		}
	}
	return found
}
