package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// crd returns a CustomResourceDefinition that lists v1alpha1 (not served), v1beta1 and v1, with
// storage version v1.
func crd(plural, group, kind, conversion, stored string) record {
	name := plural + "." + group
	return record{"/registry/apiextensions.k8s.io/customresourcedefinitions/" + name, fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q,"uid":%q},`+
			`"spec":{"group":%q,"scope":"Namespaced","names":{"plural":%q,"kind":%q},`+
			`"versions":[{"name":"v1alpha1","served":false,"storage":false},{"name":"v1beta1","served":true,`+
			`"storage":false},{"name":"v1","served":true,"storage":true}],`+
			`"conversion":%s},"status":{"acceptedNames":{"plural":%q,"kind":%q}%s}}`, name, name, group, plural, kind,
		conversion, plural, kind, stored)}
}

const (
	none    = `{"strategy":"None"}`
	webhook = `{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://x"},"conversionReviewVersions":["v1"]}}`
)

func object(key, apiVersion, kind string) record {
	return record{"/registry/" + key, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"a"}}`,
		apiVersion, kind)}
}

// surveyed returns the catalogue of records and checks that every record is counted once.
func surveyed(t testing.TB, decrypter Decrypter, records ...record) *Catalogue {
	t.Helper()
	ctx, s := context.Background(), written(t, records...)
	got, err := Survey(ctx, NewReader(s, decrypter))
	require.NoError(t, err)
	count, err := s.Keys(ctx)
	require.NoError(t, err)
	sum := got.Other
	for _, r := range got.Resources {
		objects := 0
		for _, v := range r.Versions {
			objects += v.Objects
		}
		require.Equal(t, r.Objects, objects)
		sum += objects
	}
	require.Equal(t, count, sum)
	return got
}

func (c *Catalogue) resource(t testing.TB, name string) Resource {
	t.Helper()
	for _, r := range c.Resources {
		if r.Resource == name {
			return r
		}
	}
	require.Fail(t, "no such resource", name)
	return Resource{}
}

// TestSurvey checks the stored versions and their standings in the definition.
func TestSurvey(t *testing.T) {
	got := surveyed(t, nil,
		crd("widgets", "example.com", "Widget", none, `,"storedVersions":["v1","v9"]`),
		crd("empties", "example.com", "Empty", webhook, ""),
		record{"/registry/apiextensions.k8s.io/customresourcedefinitions/bad.example.com", "{"},
		object("example.com/widgets/ns/a", "example.com/v1", "Widget"),
		object("example.com/widgets/ns/b", "example.com/v1beta1", "Widget"),
		object("example.com/widgets/ns/c", "example.com/v1alpha1", "Widget"),
		object("example.com/widgets/ns/d", "example.com/v0", "Widget"),
		object("example.com/widgets/ns/e", "example.com/v0", "Widget"),
		object("example.com/widgets/ns/f", "example.com/v1", "Gadget"),
		object("example.com/widgets/ns/g", "example.org/v1", "Widget"),
		object("example.com/widgets/ns/h", "a/b/c", "Widget"),
		record{"/registry/example.com/widgets/ns/i", "{"}, object("example.com/bad/ns/a", "example.com/v1", "Bad"),
		object("example.org/orphans/ns/a", "example.org/v1", "Orphan"),
		object("deployments/ns/a", "apps/v1beta1", "Deployment"),
		object("example.com/widgetsets/ns/a", "example.com/v1", "WidgetSet"),
		record{"compact_rev_key", "1"}, record{"/registryother/pods/ns/a", "{}"},
	)
	widgets := got.resource(t, "widgets.example.com")
	require.Equal(t, &Definition{Name: "widgets.example.com", StorageVersion: "v1",
		Listed: []string{"v1alpha1", "v1beta1", "v1"}, Served: []string{"v1beta1", "v1"},
		StoredVersions: []string{"v1", "v9"}}, widgets.Definition)
	dir := "/registry/example.com/widgets/ns/"
	require.ElementsMatch(t, []Version{
		{Objects: 2, Standing: Unknown, Keys: []string{dir + "h", dir + "i"}},
		{APIVersion: "example.com/v0", Kind: "Widget", Objects: 2, Standing: Unlisted,
			Keys: []string{dir + "d", dir + "e"}},
		{APIVersion: "example.com/v1", Kind: "Gadget", Objects: 1, Standing: Unknown, Keys: []string{dir + "f"}},
		{APIVersion: "example.com/v1", Kind: "Widget", Objects: 1, Standing: AtStorage},
		{APIVersion: "example.com/v1alpha1", Kind: "Widget", Objects: 1, Standing: Stale, Keys: []string{dir + "c"}},
		{APIVersion: "example.com/v1beta1", Kind: "Widget", Objects: 1, Standing: Stale, Keys: []string{dir + "b"}},
		{APIVersion: "example.org/v1", Kind: "Widget", Objects: 1, Standing: Unknown, Keys: []string{dir + "g"}},
	}, widgets.Versions)

	empties := got.resource(t, "empties.example.com")
	require.True(t, empties.Definition.Webhook)
	require.Equal(t, []string{}, empties.Definition.StoredVersions)
	require.Zero(t, empties.Objects)
	bad := got.resource(t, "bad.example.com")
	require.NotEmpty(t, bad.Definition.Error)
	require.False(t, bad.Orphans)
	require.Equal(t, []Version{{APIVersion: "example.com/v1", Kind: "Bad", Objects: 1, Standing: Unknown,
		Keys: []string{"/registry/example.com/bad/ns/a"}}}, bad.Versions)
	require.True(t, got.resource(t, "orphans.example.org").Orphans)
	require.True(t, got.resource(t, "widgetsets.example.com").Orphans, "plurals that begin alike")
	require.Equal(t, []Version{{APIVersion: "apps/v1beta1", Kind: "Deployment", Objects: 1}},
		got.resource(t, "deployments.apps").Versions)
	require.Equal(t, 2, got.Other)

	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.NotContains(t, string(text), "null")
	again, err := json.Marshal(surveyed(t, nil, crd("widgets", "example.com", "Widget", none, ""),
		object("example.com/widgets/ns/a", "example.com/v1", "Widget")))
	require.NoError(t, err)
	require.Contains(t, string(again), `"storedVersions":[]`)
}

// TestSurveyEncrypted checks that encrypted values are counted by provider and key, and decryptable
// values also by version.
func TestSurveyEncrypted(t *testing.T) {
	a, b := transformers(t, "a"), transformers(t, "b")
	secret := `{"apiVersion":"v1","kind":"Secret"}`
	records := []record{
		{marker, "{}"}, encrypted(t, a, "/registry/secrets/ns/a", secret),
		encrypted(t, a, "/registry/secrets/ns/b", secret), encrypted(t, b, "/registry/secrets/ns/c", secret),
		{"/registry/secrets/ns/d", secret},
		{"/registry/apiextensions.k8s.io/customresourcedefinitions/bad.example.com", "k8s:enc:aescbc:v1:k:xxxx"},
	}
	got := surveyed(t, a, records...).resource(t, "secrets")
	require.Equal(t, []Version{
		{Objects: 1, Standing: Unknown, Encrypted: map[string]int{"aesgcm:v1:b": 1},
			Keys: []string{"/registry/secrets/ns/c"}},
		{APIVersion: "v1", Kind: "Secret", Objects: 3, Encrypted: map[string]int{"aesgcm:v1:a": 2}},
	}, got.Versions)
	undecryptable := surveyed(t, nil, records...)
	require.Equal(t, map[string]int{"aesgcm:v1:a": 2, "aesgcm:v1:b": 1},
		undecryptable.resource(t, "secrets").Versions[0].Encrypted)
	require.Equal(t, "value is encrypted by aescbc:v1:k, and no encryption configuration was given",
		undecryptable.resource(t, "bad.example.com").Definition.Error)
}

// TestSurveyPrefixes checks that a resource under two prefixes counts as two resources.
func TestSurveyPrefixes(t *testing.T) {
	inner := "/registry/tenants.io/one"
	outer := crd("widgets", "example.com", "Widget", none, "")
	got := surveyed(t, nil, outer, record{inner + outer.key[len("/registry"):], outer.value},
		object("example.com/widgets/ns/a", "example.com/v1", "Widget"),
		object("tenants.io/one/example.com/widgets/ns/a", "example.com/v1beta1", "Widget"))
	require.Len(t, got.Resources, 4)
	require.Equal(t, []string{"/registry", "/registry", inner, inner},
		[]string{got.Resources[0].Prefix, got.Resources[1].Prefix, got.Resources[2].Prefix, got.Resources[3].Prefix})
	require.Equal(t, AtStorage, got.Resources[1].Versions[0].Standing)
	require.Equal(t, Stale, got.Resources[3].Versions[0].Standing)
}

// TestSurveyKeys checks that only the first of many objects are named, and all are counted.
func TestSurveyKeys(t *testing.T) {
	records := []record{{marker, "{}"}}
	for i := range MaxKeys + 5 {
		records = append(records, record{fmt.Sprintf("/registry/example.com/widgets/ns/%04d", i), "{"})
	}
	v := surveyed(t, nil, records...).Resources[1].Versions[0]
	require.Equal(t, MaxKeys+5, v.Objects)
	require.Len(t, v.Keys, MaxKeys)
	require.Equal(t, "/registry/example.com/widgets/ns/0999", v.Keys[MaxKeys-1])
}

// TestSurveyFails checks that Survey returns an error of the source.
func TestSurveyFails(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := written(t, record{marker, "{}"})
	_, err := Survey(ctx, NewReader(s, failing{}))
	require.ErrorContains(t, err, "socket is gone")
	cancel()
	_, err = Survey(ctx, NewReader(s, nil))
	require.ErrorIs(t, err, context.Canceled)
}
