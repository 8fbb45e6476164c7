package sanitize

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

func dictionaryOf(key string, names ...string) *dictionary {
	d := newDictionary([]byte(key))
	d.vocabulary("checkout.example.com")
	for _, name := range names {
		d.take(name)
		d.add(name, whole)
	}
	d.add("shop", whole|namespace)
	d.add("team-blue", whole|namespace)
	d.settle()
	return d
}

func aliasOf(t testing.TB, d *dictionary, name string) string {
	t.Helper()
	out, is := d.alias(name)
	require.True(t, is, name)
	return out
}

// shape returns name with x for each letter and 9 for each digit.
func shape(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return 'x'
		case r >= 'A' && r <= 'Z':
			return 'X'
		case r >= '0' && r <= '9':
			return '9'
		}
		return r
	}, name)
}

// TestAliases checks that names have different aliases of the same shape, and that the same key
// gives the same aliases.
func TestAliases(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const letters = "aabcde07-."
	names := map[string]bool{}
	for range 3000 {
		name := make([]byte, 1+random.IntN(9))
		for i := range name {
			name[i] = letters[random.IntN(len(letters))]
		}
		names[strings.Trim(string(name), "-.")] = true
	}
	delete(names, "")
	var list []string
	for name := range names {
		list = append(list, name)
	}
	d, same, other := dictionaryOf("key", list...), dictionaryOf("key", list...), dictionaryOf("other", list...)
	by, different := map[string]string{}, 0
	for _, name := range list {
		is, known := d.alias(name)
		require.Equal(t, shape(name), shape(is))
		again, _ := same.alias(name)
		require.Equal(t, is, again)
		require.Empty(t, by[is], name)
		by[is] = name
		if known && is != name {
			require.False(t, names[is], "%s is there already", is)
			if another, _ := other.alias(name); another != is {
				different++
			}
		}
	}
	require.Greater(t, different, 1000)
}

// TestComposed checks that names composed of names have aliases composed of their aliases.
func TestComposed(t *testing.T) {
	d := dictionaryOf("key", "checkout", "web", "data", "web-0", "data-web-0", "kube-apiserver-worker-a", "worker-a",
		"sh.helm.release.v1.web.v12", "100.64.0.1", "pvc-web")
	web := aliasOf(t, d, "web")
	require.Equal(t, web+"-0", aliasOf(t, d, "web-0"))
	require.Equal(t, aliasOf(t, d, "data")+"-"+web+"-0", aliasOf(t, d, "data-web-0"))
	require.Equal(t, "kube-apiserver-"+aliasOf(t, d, "worker-a"), aliasOf(t, d, "kube-apiserver-worker-a"))
	require.Equal(t, "sh.helm.release.v1."+web+".v12", aliasOf(t, d, "sh.helm.release.v1.web.v12"))
	require.Equal(t, []string{"100.64.0.1"}, slices.Collect(maps.Keys(d.kept)))
	require.NotContains(t, d.replaced(), "kube")
	require.Equal(t, d.replaced()["web"], web)
}

// TestTexts checks that unambiguous names are replaced in any text, and ambiguous names only in
// name fields or in a context that identifies them.
func TestTexts(t *testing.T) {
	d := dictionaryOf("key", "payments-api", "web", "status", "checkout", "image-pull", "admin", "in", "not")
	api, web, blue, shop := aliasOf(t, d, "payments-api"), aliasOf(t, d, "web"), aliasOf(t, d, "team-blue"),
		aliasOf(t, d, "shop")
	upper := strings.ToUpper(strings.ReplaceAll(api, "-", "_"))
	for text, want := range map[string]string{
		"payments-api":                                     api,
		"https://payments-api.team-blue:80/x":              "https://" + api + "." + blue + ":80/x",
		"a\\npayments-api":                                 "a\\n" + api,
		"x%2Fpayments-api":                                 "x%2F" + api,
		"PAYMENTS_API_SERVICE_HOST":                        upper + "_SERVICE_HOST",
		"mypayments-api payments-apis":                     "mypayments-api payments-apis",
		"the web status":                                   "the web status",
		"web.shop.svc.cluster.local:80":                    web + "." + shop + ".svc.cluster.local:80",
		"system:serviceaccount:shop:web":                   "system:serviceaccount:" + shop + ":" + web,
		"shop/web":                                         shop + "/" + web,
		"web.storageclass.storage.k8s.io/requests.storage": web + ".storageclass.storage.k8s.io/requests.storage",
		"checkout.example.com":                             "checkout.example.com",
		"app == 'web' && x != 'web'":                       "app == '" + web + "' && x != 'web'",
		"k8s-app not in {'web', \"shop\"}":                 "k8s-app not in {'" + web + "', \"" + shop + "\"}",
		"app=web,tier=web,app in (web,x)":                  "app=" + web + ",tier=web,app in (" + web + ",x)",
		"kubernetes.io/metadata.name!='shop'":              "kubernetes.io/metadata.name!='" + shop + "'",
		"cluster-admin admin":                              "cluster-admin admin",
		"image-pull":                                       aliasOf(t, d, "image-pull"),
		`{"a": "payments-api", "name": "web", "n": 1.50}`:  `{"a": "` + api + `", "name": "` + web + `", "n": 1.50}`,
		encode("see payments-api"):                         encode("see " + api),
	} {
		require.Equal(t, want, d.edit().text(text), text)
	}
	packed := d.edit().text(encode(gzipped(t, "at payments-api")))
	data, err := base64.StdEncoding.DecodeString(packed)
	require.NoError(t, err)
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	plain, err := io.ReadAll(unzip)
	require.NoError(t, err)
	require.Equal(t, "at "+api, string(plain))
	edit := d.edit()
	edit.text("web and web")
	require.Equal(t, map[string]int{"web": 2}, edit.left)
}

// TestVocabularyStays checks that no text of the vocabulary changes, even if objects have such
// names.
func TestVocabularyStays(t *testing.T) {
	d := dictionaryOf("key", strings.Fields(constants)...)
	for _, text := range vocabulary() {
		require.Equal(t, text, d.edit().text(text))
	}
}

// TestFields checks that references and selectors are replaced and that names of ports and
// containers stay.
func TestFields(t *testing.T) {
	d := dictionaryOf("key", "web", "http", "db", "worker-7")
	web, node := aliasOf(t, d, "web"), aliasOf(t, d, "worker-7")
	object := func(web, db, http, node, shop string) map[string]any {
		ref := func(name string) map[string]any { return map[string]any{"kind": "ConfigMap", "name": name} }
		return map[string]any{
			"apiVersion": "web/v1", "kind": "web", "metadata": map[string]any{"name": web, "namespace": shop,
				"labels":          map[string]any{"app": web, "tier": "web"},
				"ownerReferences": []any{ref(web)}, "generateName": web + "-"},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": web}},
				"affinity": map[string]any{"key": "kubernetes.io/hostname", "operator": "In", "values": []any{node}},
				"other":    map[string]any{"key": "tier", "operator": "In", "values": []any{"web"}},
				"containers": []any{map[string]any{"name": "web", "ports": []any{map[string]any{"name": "http"}},
					"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": db}}}}},
				"volumes":            []any{map[string]any{"name": db, "configMap": map[string]any{"name": db}}},
				"serviceAccountName": web,
				"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"worker-7"},
					"resourceNames": []any{web}}},
			},
		}
	}
	content := object("web", "db", "http", "worker-7", "shop")
	require.NoError(t, d.edit().object(content))
	require.Equal(t, object(web, aliasOf(t, d, "db"), "http", node, aliasOf(t, d, "shop")), content)
	twice := map[string]any{"worker-7": "a", node: "b"}
	require.ErrorIs(t, d.edit().object(twice), errNames)
}

// TestLabelsOfTypes checks that a label called "kind" and its selector follow the same rule.
func TestLabelsOfTypes(t *testing.T) {
	d := dictionaryOf("key", "payments-api", "rollout")
	api := aliasOf(t, d, "payments-api")
	object := func(api string) map[string]any {
		return map[string]any{
			"kind": "Rollout", "uid": "8d0c4a1e-0000-4000-8000-000000000001",
			"labels": map[string]any{"kind": api, "uid": api},
			"in":     map[string]any{"key": "kind", "operator": "In", "values": []any{api, "Rollout"}},
		}
	}
	content := object("payments-api")
	require.NoError(t, d.edit().object(content))
	require.Equal(t, object(api), content)
}

// TestNodes checks that a name with a staying word is long enough for texts, and that names with
// letters outside ASCII are reported.
func TestNodes(t *testing.T) {
	d := dictionaryOf("key", "node-a", "web-0", "команда-api")
	node := aliasOf(t, d, "node-a")
	require.Equal(t, "host:"+node+" web-0", d.edit().text("host:node-a web-0"))
	require.Equal(t, node+"-192-0-2-0-26", d.edit().name("node-a-192-0-2-0-26"))
	require.Equal(t, []string{"команда-api"}, slices.Collect(maps.Keys(d.kept)))
}

// TestHostile checks that long names and packed data take bounded time, and that a failed search is
// an error.
func TestHostile(t *testing.T) {
	long := strings.Repeat("a-", 1<<19) + "payments"
	d := dictionaryOf("key", long, "payments-api")
	require.Equal(t, shape(long), shape(d.edit().name(long)))
	require.NotEqual(t, long, d.edit().name(long))
	bomb := encode(gzipped(t, strings.Repeat("x", 20<<20)))
	for _, packed := range []string{gzipped(t, "at payments-api")[:20], gzipped(t, strings.Repeat("x", 65<<20))} {
		require.ErrorIs(t, d.edit().object(map[string]any{"a": encode(packed)}), redact.ErrPacked)
		require.ErrorIs(t, d.edit().object(map[string]any{"a": `{"a": "` + encode(packed) + `"}`}), redact.ErrPacked)
	}
	require.NoError(t, d.edit().object(map[string]any{"a": bomb}))
	require.ErrorIs(t, d.edit().object(map[string]any{"a": []any{bomb, bomb}}), redact.ErrPacked)
	require.NoError(t, d.edit().object(map[string]any{"a": encode(gzipped(t, "at payments-api"))}))
}

// FuzzText checks that any text keeps its length and shape.
func FuzzText(f *testing.F) {
	f.Add("a\\npayments-api", "payments-api")
	f.Fuzz(func(t *testing.T, text, name string) {
		d := dictionaryOf("key", name)
		out := d.inText(text, func(string) {})
		require.Equal(t, shape(text), shape(out))
		require.Equal(t, out, d.inText(text, func(string) {}))
		_ = fmt.Sprint(d.edit().text(text), d.count())
	})
}

// TestEncodedForms checks that a name in an encoded text is replaced and that the text keeps its
// form.
func TestEncodedForms(t *testing.T) {
	d := dictionaryOf("key", "payments-api")
	utf16 := func(low int) func(string) string {
		return func(text string) string {
			out := make([]byte, 2*len(text))
			for i := range text {
				out[2*i+low] = text[i]
			}
			return string(out)
		}
	}
	std := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	forms := map[string]func(string) string{
		"hex":        func(text string) string { return fmt.Sprintf("%x", text) },
		"upper hex":  func(text string) string { return fmt.Sprintf("%X", text) },
		"upper case": strings.ToUpper,
		"base64":     std,
		"unpadded":   func(text string) string { return base64.RawStdEncoding.EncodeToString([]byte(text)) },
		"URL-safe": func(text string) string {
			return base64.URLEncoding.EncodeToString([]byte("\xff\xef\xbf" +
				text))
		},
		"wrapped": func(text string) string {
			s := std(strings.Repeat(text, 5))
			return s[:76] + "\n" + s[76:] +
				"\n"
		},
		"CRLF":       func(text string) string { s := std(strings.Repeat(text, 5)); return s[:76] + "\r\n" + s[76:] },
		"UTF-16":     utf16(0),
		"UTF-16BE":   utf16(1),
		"PowerShell": func(text string) string { return std(utf16(0)(text)) },
		"twice":      func(text string) string { return fmt.Sprintf("%x", std(text)) },
	}
	const text = "use payments-api ."
	want := "use " + aliasOf(t, d, "payments-api") + " ."
	for name, form := range forms {
		e := d.edit()
		content := map[string]any{"a": form(text)}
		require.NoError(t, e.object(content))
		require.Equal(t, form(want), content["a"], name)
		require.NotZero(t, e.replaced)
		other := map[string]any{"a": form("use nothing of it.")}
		require.NoError(t, e.object(other))
		require.Equal(t, form("use nothing of it."), other["a"], name)
	}
}

// TestRepackedLength checks that base64 of packed data keeps its padding although the length of the
// data changes. Helm stores such data in Secrets.
func TestRepackedLength(t *testing.T) {
	encodings := []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding,
		base64.RawURLEncoding}
	for i := range 100 {
		d := dictionaryOf(fmt.Sprint("key", i), "checkout-api", "webfront")
		text := fmt.Sprintf(`{"name":"checkout-api","namespace":"shop","info":%q}`, strings.Repeat("webfront ", i))
		for _, packed := range []string{gzipped(t, text), deflated(t, text), archived(t, text)} {
			of := encodings[i%len(encodings)]
			inner := of.EncodeToString([]byte(packed))
			edit := d.edit()
			out, err := base64.StdEncoding.DecodeString(edit.text(base64.StdEncoding.EncodeToString([]byte(inner))))
			require.NoError(t, err, i)
			require.NotEqual(t, inner, string(out))
			_, err = of.DecodeString(string(out))
			require.NoError(t, err, i)
			require.Positive(t, edit.replaced)
		}
	}
}

func deflated(t testing.TB, text string) string {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

func archived(t testing.TB, text string) string {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	file, err := w.Create("a")
	require.NoError(t, err)
	_, err = file.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// TestLocalNames checks that every listed field, the last of a line too, is found in the list.
func TestLocalNames(t *testing.T) {
	for _, field := range strings.Fields(localNames) {
		require.False(t, holdsName("name", field), field)
	}
	require.True(t, holdsName("name", "metadata"))
}
