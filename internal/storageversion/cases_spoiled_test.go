package storageversion

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// spoil damages a value: bytes changed, lost or duplicated, or a field replaced.
func spoil(r *rand.Rand, value string) string {
	b := []byte(value)
	at := r.IntN(len(b))
	switch r.IntN(5) {
	case 0:
		b[at] = byte(r.IntN(256))
	case 1:
		b = b[:at]
	case 2:
		b = slices.Concat(b[:at], b[min(len(b), at+r.IntN(20)):])
	case 3:
		b = slices.Concat(b[:at], b[max(0, at-r.IntN(20)):])
	default:
		fields := []string{`"v1"`, `"v1alpha1"`, `"Widget"`, `"object"`, `"string"`, `"ns"`, `true`, `"metadata"`,
			`"widgets"`, `{"text":"x"}`}
		others := []string{`null`, `7`, `""`, `[]`, `{}`, `"v1alpha1"`, `-1e400`, `"\ud800"`, `[[[[{}]]]]`,
			`{"":{"":null}}`}
		return strings.Replace(value, fields[r.IntN(len(fields))], others[r.IntN(len(others))], 1+r.IntN(2))
	}
	if len(b) == 0 {
		return "x"
	}
	return string(b)
}

// TestSpoiled checks for any damage of some values that the run ends without a panic, reports each
// skipped object, and removes no version from a list if an object may be stored at that version.
func TestSpoiled(t *testing.T) {
	for seed := range uint64(120) {
		random := rand.New(rand.NewPCG(seed, 2))
		d := twoVersions()
		d.schemas = map[string]string{"v1": typed(
			`"text":{"type":"string"},"size":{"type":"integer","default":3},"free":{"type":"object",` +
				`"x-kubernetes-preserve-unknown-fields":true}`)}
		definition := d.json(t)
		if seed%4 == 0 {
			definition = spoil(random, definition)
		}
		c := newCluster(t).put(definitions+"things.example.org", twoVersions().json(t)).put(widgetsKey, definition)
		for i := range 6 {
			o := resource{version: []string{"v1alpha1", "v1"}[i%2], name: fmt.Sprintf("w%d", i),
				late: `"managedFields":[{"apiVersion":"example.com/v0","fieldsType":"FieldsV1",` +
					`"fieldsV1":{"f:spec":{"f:text":{}}},"manager":"m","operation":"Apply"}],`,
				spec: `{"free":{"a":[1]},"text":"x"}`}
			value := o.json(t)
			if random.IntN(3) == 0 {
				value = spoil(random, value)
			}
			c.put(o.key(), value)
		}
		files := transform.Options{In: c.build(), Allow: finding.Allowable(codes())}
		r := migrate(t, files, Options{Exclude: []string{"things.example.org"}})
		require.NoError(t, r.err, "seed %d", seed)
		refused := 0
		for _, row := range r.CustomResources {
			refused += row.Refused
		}
		named := map[string]bool{}
		for _, p := range r.Problems {
			if p.Level == finding.Error && strings.HasPrefix(p.Key, widgetsDir) {
				named[p.Key] = true
			}
		}
		if slices.ContainsFunc(r.Problems, func(p finding.Finding) bool {
			return p.Key == widgetsKey &&
				p.Level == finding.Error
		}) {
			require.NotContains(t, r.changed(), widgetsKey, "seed %d", seed)
			continue
		}
		require.LessOrEqual(t, refused, len(named), "seed %d: %v", seed, r.problems())
		keepsWhatIsThere(t, r, seed)
	}
}

// keepsWhatIsThere requires that each object's version is in the list, and with an unreadable
// object the list has lost no version.
func keepsWhatIsThere(t *testing.T, r result, seed uint64) {
	list := r.resources(widgetsCRD).StoredVersions
	for key, record := range r.out {
		if !strings.HasPrefix(key, widgetsDir) {
			continue
		}
		var obj struct{ APIVersion, Kind string }
		if json.Unmarshal([]byte(record.value), &obj) != nil || obj.Kind != "Widget" ||
			!strings.HasPrefix(obj.APIVersion, "example.com/") || strings.Count(obj.APIVersion, "/") != 1 {
			require.Subset(t, list.After, list.Before, "seed %d: %s", seed, key)
			continue
		}
		require.Contains(t, list.After, strings.TrimPrefix(obj.APIVersion, "example.com/"), "seed %d: %s", seed, key)
	}
}
