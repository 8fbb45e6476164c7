package sanitize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/unpacked"
	"github.com/etcdshift/etcdshift/transform"
)

// A secret of one object is replaced in others, whatever it is called there, also packed. A word, a
// host and a certificate of a Secret stay elsewhere.
func TestSecretOfAnotherObject(t *testing.T) {
	p := &planter{t: t, rand: rand.New(rand.NewPCG(3, 4))}
	const certificate = "-----BEGIN CERTIFICATE-----\nMIIBpublic\n-----END CERTIFICATE-----"
	marker, token, setting, password := p.marker(), p.marker(), p.marker(), p.marker()
	object := func(kind, name, data string) {
		p.putNative("/registry/"+kind+"s/shop/"+name, `{"apiVersion":"v1","kind":"`+map[string]string{"secret": "Secret", "configmap": "ConfigMap"}[kind]+
			`","metadata":{"name":"`+name+`","namespace":"shop"},"data":`+data+`}`)
	}
	object("secret", "a", fmt.Sprintf(`{"word":%q,"host":%q,"ca.crt":%q,"x":%q,"kubeconfig":%q,".env":%q,"auth":%q}`,
		encode("administrator"), encode("db.shop.example.com"), encode(certificate), encode(marker), encode("users:\n- user:\n    token: "+token+"\n"), encode("GREETING="+setting+"\nHOST=db.shop.example.com\n"), encode("me:"+password)))
	object("configmap", "in."+marker, `{"a":"b"}`)
	data, err := json.Marshal(map[string]string{"plain": "greet " + marker + " today", "one": encode("a" + marker), "two": "x " + encode("ab"+marker), "of-" + token: "a", "gzip": encode(gzipped(t, "use "+marker+" here")),
		"setting": setting, "password": "{\"a\":\"" + password + "\"}", "url": "me-" + encode(encode(marker)), "stays": "administrator of db.shop.example.com", "bundle": certificate})
	require.NoError(t, err)
	object("configmap", "b", string(data))
	report, out := sanitized(t, etcdtest.Build(t, p.script.String()), "key", transform.Options{})
	require.Equal(t, []string{"/registry/configmaps/shop/in." + marker}, report.Sections[0].(*Sanitized).Keys)
	out = bytes.ReplaceAll(out, []byte("in."+marker), nil) // of that key and its name
	require.Empty(t, left(out, map[string]bool{marker: true, token: true, setting: true, password: true}, 6))
	of := func(secret string) string { return masker{key: []byte("key")}.text(secret, 0) }
	for _, want := range []string{"greet " + of(marker) + " today", "administrator of db.shop.example.com", certificate, `{"a":"` + of(password) + `"}`} {
		require.Contains(t, string(out), want)
	}
	all := unpacked.All(string(out), 3)
	for _, want := range []string{`[a-z]{3} ` + of(marker) + ` [a-z]{4}`, `[a-z]` + of(marker), `[A-Z]{8}=` + of(setting) + `\n`, `[a-z]{2}:` + of(password)} {
		require.True(t, regexp.MustCompile(want).MatchString(all), "%s: the alias is the same when packed, and in the Secret", want)
	}
	require.Equal(t, 3, report.Sections[0].(*Sanitized).Unsearched)
}
