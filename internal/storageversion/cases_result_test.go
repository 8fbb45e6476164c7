package storageversion

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// addsUp requires that every object of a kind is counted once, every count of a report agrees with
// the others, and every problem has a reason.
func (r result) addsUp() {
	r.t.Helper()
	for _, c := range r.CustomResources {
		sum := 0
		for _, n := range c.Found {
			sum += n
		}
		if c.Chosen {
			require.Equal(r.t, sum, c.Rewritten+c.Unchanged+c.Refused, "%+v", c)
		}
		require.NotNil(r.t, c.StoredVersions.Before)
		require.NotNil(r.t, c.StoredVersions.After)
	}
	deleted := 0
	for _, k := range r.Kinds {
		deleted += k.Deleted
		require.NotZero(r.t, k.Migrated+k.Unchanged+k.Skipped+k.Deleted, "%+v", k)
	}
	for _, p := range r.Problems {
		require.NotEmpty(r.t, p.Code.Name, "%+v", p)
		require.NotEmpty(r.t, p.Reason, "%+v", p)
		if p.Key != "" && r.in != nil {
			require.Contains(r.t, r.in, p.Key)
		}
		if p.Level == finding.Error {
			require.Contains(r.t, finding.Allowable(codes()), p.Code.Name)
		}
	}
	require.Zero(r.t, r.Changes.Created)
	require.Equal(r.t, deleted, r.Changes.Deleted)
	if r.out != nil {
		require.Len(r.t, r.changed(), r.Changes.Updated+r.Changes.Deleted)
	}
}

// changed returns the keys of changed and deleted records, sorted.
func (r result) changed() []string {
	r.t.Helper()
	require.NoError(r.t, r.err, "%v", r.Problems)
	require.Subset(r.t, slices.Collect(maps.Keys(r.in)), slices.Collect(maps.Keys(r.out)))
	keys := []string{}
	for _, key := range slices.Sorted(maps.Keys(r.in)) {
		was := r.in[key]
		is, kept := r.out[key]
		if !kept {
			keys = append(keys, key)
			continue
		}
		require.Equal(r.t, was.lease, is.lease, "lease of %s", key)
		if was.value == is.value {
			require.Equal(r.t, was.mod, is.mod, "%s was written again", key)
			continue
		}
		require.Greater(r.t, is.mod, was.mod)
		keys = append(keys, key)
	}
	return keys
}

// problems returns the report's problems as "level code key", sorted.
func (r result) problems() []string {
	out := []string{}
	for _, p := range r.Problems {
		out = append(out, string(p.Level)+" "+p.Code.Name+" "+p.Key)
	}
	slices.Sort(out)
	return out
}

// reason returns the reason of the only problem with a code.
func (r result) reason(code string) string {
	r.t.Helper()
	var found []string
	for _, p := range r.Problems {
		if p.Code.Name == code {
			found = append(found, p.Reason)
		}
	}
	require.Len(r.t, found, 1, "%v", r.problems())
	return found[0]
}

// resources returns the row of a CustomResourceDefinition in the report.
func (r result) resources(crd string) CustomResource {
	r.t.Helper()
	at := slices.IndexFunc(r.CustomResources, func(c CustomResource) bool { return c.CRD == crd })
	require.GreaterOrEqual(r.t, at, 0, "%v", r.CustomResources)
	return r.CustomResources[at]
}

// storedVersions returns the list in the output, or in the input if there is no output.
func (r result) storedVersions(key string) []string {
	r.t.Helper()
	from := r.out
	if from == nil {
		from = r.in
	}
	var obj struct {
		Status struct{ StoredVersions []string }
	}
	require.NoError(r.t, json.Unmarshal([]byte(from[key].value), &obj))
	return obj.Status.StoredVersions
}

// refusedFor requires that these problems refused the run.
func (r result) refusedFor(problems ...string) {
	r.t.Helper()
	require.ErrorIs(r.t, r.err, transform.ErrRefused)
	require.Equal(r.t, problems, r.problems())
}
