package storageversion

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// twoVersions stores at v1, with v1alpha1 in storedVersions.
func twoVersions() definition {
	return definition{versions: "v1alpha1 v1*", stored: `["v1alpha1","v1"]`}
}

// TestNothingToDo checks that with one version and one entry no byte of the snapshot changes.
func TestNothingToDo(t *testing.T) {
	r := newCluster(t, definition{versions: "v1*"}).add(resource{version: "v1", name: "a"},
		resource{version: "v1", name: "b"}).migrate(Options{})
	require.NoError(t, r.err)
	require.Equal(t, transform.Unchanged, r.Outcome)
	require.Equal(t, r.Input.SHA256, r.Output.SHA256)
	require.Empty(t, r.changed())
	require.Empty(t, r.Problems)
	require.Equal(t, CustomResource{
		Prefix: "/registry", CRD: widgetsCRD, Chosen: true, StorageVersion: "v1", Found: map[string]int{"v1": 2},
		Unchanged:      2,
		StoredVersions: StoredVersions{Before: []string{"v1"}, After: []string{"v1"}},
	}, r.resources(widgetsCRD))
}

// TestObjectStale checks that an object at an older version is stored at the storage version
// without other changes.
func TestObjectStale(t *testing.T) {
	stale, current := resource{version: "v1alpha1", name: "a", spec: `{"free":{"marker":1},"text":"kept"}`},
		resource{version: "v1", name: "b"}
	r := newCluster(t, twoVersions()).add(stale, current).put("/registry/pods/ns/p",
		"k8s\x00").migrate(Options{CRDs: []string{widgetsCRD}}, finding.Undecodable.Name)
	require.Equal(t, []string{widgetsKey, stale.key()}, r.changed())
	require.Equal(t, stale.at("v1").json(t), r.out[stale.key()].value)
	require.Equal(t, []transform.KindCount{
		{Kind: "Widget", From: "example.com/v1", To: "example.com/v1", Unchanged: 1},
		{Kind: "Widget", From: "example.com/v1alpha1", To: "example.com/v1", Migrated: 1},
	}, r.Kinds)
}

// TestLists checks that any list becomes the list of the versions in use.
func TestLists(t *testing.T) {
	tests := []struct {
		name, stored string // of a CustomResourceDefinition v1alpha1, v1 (storage)
		objects      []string
		after        []string
		changed      int
	}{
		{"nil", "-", nil, []string{"v1"}, 1},
		{"empty", "[]", nil, []string{"v1"}, 1},
		{"null", "null", []string{"v1"}, []string{"v1"}, 1},
		{"storage", `["v1"]`, []string{"v1"}, []string{"v1"}, 0},
		{"both", `["v1","v1alpha1"]`, []string{"v1"}, []string{"v1"}, 1},
		{"other", `["v1alpha1"]`, []string{"v1alpha1"}, []string{"v1"}, 2},
		{"duplicates", `["v1","v1"]`, []string{"v1"}, []string{"v1"}, 1},
		{"duplicates of the other", `["v1alpha1","v1","v1alpha1"]`, []string{"v1alpha1", "v1"}, []string{"v1"}, 2},
		{"a version that is not listed", `["v9"]`, []string{"v1"}, []string{"v1"}, 1},
		{"too short", `["v1"]`, []string{"v1alpha1", "v1"}, []string{"v1"}, 1},
		{"without objects", `["v1alpha1","v1"]`, nil, []string{"v1"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t, definition{versions: "v1alpha1 v1*", stored: tt.stored})
			for i, version := range tt.objects {
				c.add(resource{version: version, name: string(rune('a' + i))})
			}
			r := c.migrate(Options{})
			require.Len(t, r.changed(), tt.changed)
			require.Equal(t, tt.after, r.storedVersions(widgetsKey))
			require.Equal(t, tt.after, r.resources(widgetsCRD).StoredVersions.After)
			require.Empty(t, r.Problems)
		})
	}
}

// TestListKept checks that a list is not trimmed while one object is unproved, even in repeated
// runs; missing versions are added.
func TestListKept(t *testing.T) {
	gone := resource{version: "v1old", name: "gone"}
	c := newCluster(t, definition{versions: "v1alpha1 v1*",
		stored: `["v1alpha1","v1"]`}).add(resource{version: "v1alpha1", name: "a"}, gone)
	path := c.build()
	for range 2 {
		r := migrate(t, transform.Options{In: path}, Options{})
		r.refusedFor("error unlisted-version "+gone.key(), "warning stored-versions-kept "+widgetsKey)
		require.Contains(t, r.reason(codeUnlistedVersion.Name),
			"stored at v1old, and widgets.example.com lists only v1alpha1, v1")
	}
	r := migrate(t, transform.Options{In: path, Allow: []string{codeUnlistedVersion.Name}}, Options{})
	require.Equal(t, []string{widgetsKey, widgetsDir + "ns/a"}, r.changed())
	require.Equal(t, []string{"v1", "v1old"}, r.storedVersions(widgetsKey))
	require.Equal(t, "storedVersions is not trimmed: objects are still stored at v1old", r.reason(codeListKept.Name))
	require.Equal(t, StoredVersions{Before: []string{"v1alpha1", "v1"}, After: []string{"v1", "v1old"},
		Kept: "objects are still stored at v1old"}, r.resources(widgetsCRD).StoredVersions)

	again := migrate(t, transform.Options{In: r.path, Allow: []string{codeUnlistedVersion.Name}}, Options{})
	require.Equal(t, transform.Unchanged, again.Outcome)
	require.Equal(t, 1, again.resources(widgetsCRD).Refused)
}

// TestUnreadKeepsList checks that with one unreadable key no version is removed from the list.
func TestUnreadKeepsList(t *testing.T) {
	tests := []struct {
		name, key, value, code string
		found                  map[string]int
	}{
		{"not JSON", widgetsDir + "ns/bad", "{", finding.Undecodable.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"no object", widgetsDir + "ns/bad", "[]", finding.Undecodable.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"empty object", widgetsDir + "ns/bad", "{}", codeUnknownKind.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"another kind", widgetsDir + "ns/bad",
			`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"bad","namespace":"ns"}}`,
			codeUnknownKind.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"another group", widgetsDir + "ns/bad",
			`{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"bad","namespace":"ns"}}`,
			codeUnknownKind.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"encrypted", widgetsDir + "ns/bad", "k8s:enc:aescbc:v1:key1:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
			finding.Encrypted.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"protobuf", widgetsDir + "ns/bad", "k8s\x00\n\x14\n\x0eexample.com/v1\x12\x02ab\x12\x00",
			finding.Undecodable.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"a number beyond all", widgetsDir + "ns/bad",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"bad","namespace":"ns"},` +
				`"spec":{"free":{"a":1e400}}}`, finding.Undecodable.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"no metadata", widgetsDir + "ns/bad", `{"apiVersion":"example.com/v1","kind":"Widget","spec":{}}`,
			finding.Undecodable.Name, map[string]int{"v1": 1, "v1alpha1": 1}},
		{"metadata of another type", widgetsDir + "ns/bad",
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":"x"}`, finding.Undecodable.Name,
			map[string]int{"v1": 1, "v1alpha1": 1}},
		{"an envelope", widgetsDir + "ns/bad", "k8s\x00\n\x18\n\x0eexample.com/v1\x12\x06Widget\x12\x00\x1a\x00\"\x00",
			finding.Undecodable.Name, map[string]int{"": 1, "v1alpha1": 1}},
		{"a key of nobody", widgetsDir + "ns/bad/deeper/still", resource{version: "v1alpha1", name: "bad"}.json(t),
			codeUnknownKey.Name, map[string]int{"": 1, "v1alpha1": 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := newCluster(t, twoVersions()).add(resource{version: "v1alpha1", name: "a"}).put(tt.key,
				tt.value).build()
			r := migrate(t, transform.Options{In: path}, Options{})
			require.ErrorIs(t, r.err, transform.ErrRefused)
			require.Contains(t, r.problems(), "error "+tt.code+" "+tt.key)
			require.Equal(t, tt.found, r.resources(widgetsCRD).Found)

			r = migrate(t, transform.Options{In: path, Allow: finding.Allowable(codes())}, Options{})
			require.Contains(t, r.changed(), widgetsDir+"ns/a")
			require.Contains(t, r.problems(), "warning stored-versions-kept "+widgetsKey)
			require.Equal(t, "1 of its objects cannot be read", r.resources(widgetsCRD).StoredVersions.Kept)
			require.Equal(t, []string{"v1alpha1", "v1"}, r.storedVersions(widgetsKey))
			require.NotContains(t, strings.Join(r.Steps, "\n"), "may be removed")
			require.Equal(t, tt.value, r.out[tt.key].value)
		})
	}
}
