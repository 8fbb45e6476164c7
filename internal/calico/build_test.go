package calico

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// The records of these tests are stored values: raw JSON, put into a copy of the recorded cluster.

const (
	storedUID = "12345678-9abc-4def-8123-456789abcdef"
	clientUID = "482c6a1e-593d-4df7-81c4-a2e691d5b3f7" // storedUID as seen by clients
)

// v1 is a stored v1 record. inner is the text of its metadata annotation; "-" means none.
type v1 struct {
	kind, namespace, name string
	uid                   string // storedUID when empty
	meta                  string // additional own metadata: `"labels":{...},`
	inner                 string
	spec                  string // {} when empty
	rest                  string // after spec: `,"status":{...}`
}

func (r v1) json(t testing.TB) []byte {
	t.Helper()
	uid, spec, meta := r.uid, r.spec, r.meta
	if uid == "" {
		uid = storedUID
	}
	if spec == "" {
		spec = "{}"
	}
	if r.inner != "-" {
		text, err := json.Marshal(r.inner)
		require.NoError(t, err)
		meta += `"annotations":{"projectcalico.org/metadata":` + string(text) + `},`
	}
	if r.namespace != "" {
		meta += `"namespace":"` + r.namespace + `",`
	}
	name, err := json.Marshal(r.name)
	require.NoError(t, err)
	out := `{"apiVersion":"crd.projectcalico.org/v1","kind":"` + r.kind + `","metadata":{` + meta +
		`"creationTimestamp":"2026-01-01T00:00:00Z","generation":3,"name":` + string(name) + `,"uid":"` + uid +
		`"},"spec":` + spec + r.rest + "}\n"
	require.True(t, json.Valid([]byte(out)), out)
	return []byte(out)
}

// key returns the key of the record, v3 the key of its v3 record under the same name.
func (r v1) key() string { return recordsV1 + r.path(func(k *kind) string { return k.V1Plural }) }
func (r v1) v3() string  { return recordsV3 + r.path(func(k *kind) string { return k.Plural }) }

func (r v1) path(plural func(*kind) string) string {
	for _, k := range kinds() {
		if k.V1Kind == r.kind {
			return strings.TrimSuffix(plural(k)+"/"+r.namespace, "/") + "/" + r.name
		}
	}
	return r.kind + "/" + r.name
}

func (in *input) record(r v1) *input {
	in.put(r.key(), r.json(in.t))
	return in
}

// migrateRecords migrates the recorded cluster with additional records.
func migrateRecords(t testing.TB, o Options, records ...v1) result {
	t.Helper()
	in := newInput(t)
	for _, r := range records {
		in.record(r)
	}
	return planOn(t, in.write(), New(o))
}

// written returns the decoded v3 record at key.
func (r result) written(t testing.TB, key string) map[string]any {
	t.Helper()
	require.NoError(t, r.err, "%v", r.Problems)
	require.Contains(t, r.out, key)
	var obj map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.out[key]), &obj))
	require.Equal(t, "projectcalico.org/v3", obj["apiVersion"])
	return obj
}

// at returns the value at a path of field names, nil if absent.
func at(obj map[string]any, path ...string) any {
	var v any = obj
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (r result) has(level finding.Level, code, key string) bool {
	for _, p := range r.Problems {
		if p.Level == level && p.Code.Name == code && p.Key == key {
			return true
		}
	}
	return false
}

// count returns the report's counts of a kind.
func (r result) count(kind string) transform.KindCount {
	for _, k := range r.Kinds {
		if k.Kind == kind {
			return k
		}
	}
	return transform.KindCount{}
}
