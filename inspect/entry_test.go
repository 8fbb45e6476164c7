package inspect

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// refusing is a Decrypter that decrypts nothing.
type refusing struct{}

func (refusing) Decrypt(context.Context, gvr.GroupResource, []byte, []byte) ([]byte, bool, error) {
	return nil, false, errors.New("was asked to decrypt a value")
}

// TestParsed checks that an entry parses key and value as the layouts and encoding do, and an
// undecryptable value is an error.
func TestParsed(t *testing.T) {
	ctx, by := context.Background(), transformers(t, "a")
	s := written(t, record{marker, "{}"}, record{"/registry/pods/ns/p", `{"apiVersion":"v1","kind":"Pod"}`},
		record{"/registry/pods/p", "{"}, record{"elsewhere", "x"},
		encrypted(t, by, "/registry/secrets/ns/s", "{}"))
	for _, r := range []*Reader{NewReader(s, by), NewReader(s, nil)} {
		early, err := r.Get(ctx, []byte(marker))
		require.NoError(t, err)
		if _, err = early.ParseKey(); r.decrypter == nil {
			require.ErrorIs(t, err, errNoLayouts)
		}
		layouts, err := r.Layouts(ctx)
		require.NoError(t, err)
		for e, err := range r.Live(ctx, nil) {
			require.NoError(t, err)
			for range 2 {
				wantKey, wantLayout, wantErr := layouts.Parse(e.Key)
				key, err := e.ParseKey()
				require.Equal(t, wantErr, err)
				require.Equal(t, wantKey, key)
				require.Equal(t, wantLayout, e.Layout())
				wantValue, wantErr := encoding.Parse(e.Value)
				if e.Undecryptable != nil {
					wantErr = e.Undecryptable
				}
				value, err := e.ParseValue()
				require.Equal(t, wantErr, err)
				require.Equal(t, wantValue, value)
			}
		}
	}
}

// TestRaw checks that Raw yields the entries of Live without decryption, and Has decrypts nothing.
func TestRaw(t *testing.T) {
	ctx := context.Background()
	s := recordedKCP(t, "root-before")
	var want []*Entry
	for e, err := range NewReader(s, nil).Live(ctx, []byte("/registry/core/")) {
		require.NoError(t, err)
		want = append(want, e)
	}
	r := NewReader(s, refusing{})
	var got []*Entry
	for e, err := range r.Raw(ctx, []byte("/registry/core/")) {
		require.NoError(t, err)
		got = append(got, &e)
	}
	require.Equal(t, want, got)
	require.NotEmpty(t, got)
	require.ErrorContains(t, r.Decrypt(ctx, got[0]), "was asked to decrypt a value")
	for key, there := range map[string]bool{string(got[0].Key): true, "/registry/core/": false} {
		has, err := r.Has(ctx, []byte(key))
		require.NoError(t, err)
		require.Equal(t, there, has)
	}
}

// BenchmarkLive measures the cost of an entry by the parts that are used.
func BenchmarkLive(b *testing.B) {
	ctx := context.Background()
	records := []record{{marker, "{}"}}
	for i := range 20_000 {
		records = append(records, record{fmt.Sprintf("/registry/pods/ns-%d/pod-%d", i%100, i),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`})
	}
	r := NewReader(written(b, records...), nil)
	layouts, err := r.Layouts(ctx)
	require.NoError(b, err)
	for name, visit := range map[string]func(*Entry){
		"nothing": func(*Entry) {},
		"layouts": func(e *Entry) { _, _, _ = layouts.Parse(e.Key) },
		"key":     func(e *Entry) { _, _ = e.ParseKey() },
		"twice":   func(e *Entry) { _, _ = e.ParseKey(); _ = e.Layout() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for e, err := range r.Live(ctx, nil) {
					if err != nil {
						b.Fatal(err)
					}
					visit(e)
				}
			}
		})
	}
}

// TestKindsUnderOtherKeys checks that a value is not accepted under the key of another kind: for
// any pair of built-in kinds, and for any built-in kind below a folder of custom resources or of an
// unknown resource.
func TestKindsUnderOtherKeys(t *testing.T) {
	all := Builtins()
	for _, of := range all {
		is := gvr.GroupVersionKind{Group: of.Resource.Group, Version: "v1", Kind: of.Kind}
		for _, under := range all {
			err := checkKind(keys.Key{Resource: under.Resource, Namespace: "a", Name: "a"}, is)
			require.Equal(t, of.Resource == under.Resource, err == nil, "%s under %s: %v", is, under.Resource, err)
		}
		for _, under := range []gvr.GroupResource{
			{Group: "h.example", Resource: "widgets"}, {Group: "apps.example.com", Resource: of.Resource.Resource},
			{Resource: "widgets"}, {Group: "apps", Resource: "widgets"},
		} {
			require.Error(t, checkKind(keys.Key{Resource: under, Namespace: "a", Name: "a"}, is),
				"%s under %s", is, under)
		}
	}
	// groups differ, or the kind is unknown
	for _, c := range []struct{ group, resource, apiVersion, kind string }{
		{"", "events", "events.k8s.io/v1", "Event"}, {"apps", "deployments", "extensions/v1beta1", "Deployment"},
		{"networking.k8s.io", "ingresses", "extensions/v1beta1", "Ingress"}, {"", "masterleases", "v1", "Endpoints"},
		{"", "ranges", "v1", "RangeAllocation"},
		{"h.example", "widgets", "h.example/v2", "Widget"}, {"", "widgets", "v1", "Widget"},
		{"route.openshift.io", "routes", "route.openshift.io/v1", "Route"},
	} {
		is := gvr.FromAPIVersionAndKind(c.apiVersion, c.kind)
		require.NoError(t, checkKind(keys.Key{Resource: gvr.GroupResource{Group: c.group, Resource: c.resource}}, is),
			fmt.Sprint(c))
	}
}
