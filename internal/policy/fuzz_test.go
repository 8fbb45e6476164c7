package policy_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/policy"
)

// FuzzRead checks that an error names the document and is not longer than the file, and that a read
// set survives writing and reading, including defaults and without duplicates.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"mutating.yaml", "validating.yaml"} {
		f.Add([]byte(read(f, name)))
	}
	f.Add(
		[]byte(
			`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},` +
				`"data":{"max":"5"}}]}`))
	f.Add([]byte("a: 1\n---\n---\nkind: A\napiVersion: b/c\n"))
	named := regexp.MustCompile(`^document [0-9]+: `)
	f.Fuzz(func(t *testing.T, manifest []byte) {
		set := &policy.Set{}
		if err := set.Read(manifest); err != nil {
			require.Regexp(t, named, err.Error())
			require.Less(t, len(err.Error()), 2000+20*len(manifest))
			return
		}
		again := &policy.Set{}
		text := written(t, set)
		require.NoError(t, again.Read(text), "%s", text)
		require.Equal(t, string(text), string(written(t, again)))
		if all := len(set.Mutating) + len(set.Validating) + len(set.MutatingBindings) +
			len(set.ValidatingBindings); all > 0 {
			require.ErrorContains(t, again.Read(text), "it is given twice")
		}
	})
}

// written returns a set as JSON documents.
func written(t *testing.T, s *policy.Set) []byte {
	t.Helper()
	var out bytes.Buffer
	add := func(object any) {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		out.Write(append(text, '\n'))
	}
	for _, p := range s.Mutating {
		add(p)
	}
	for _, b := range s.MutatingBindings {
		add(b)
	}
	for _, p := range s.Validating {
		add(p)
	}
	for _, b := range s.ValidatingBindings {
		add(b)
	}
	for _, o := range s.Others {
		add(o)
	}
	return out.Bytes()
}
