package rehearse

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// managedAt is metadata with a manager that wrote at the version.
func managedAt(version string) string {
	return `"managedFields":[{"apiVersion":"` + group + `/` + version + `","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:text":{}}},"manager":"m","operation":"Update","time":"2026-01-01T00:00:00Z"}],`
}

// objects of kind Strict, and what a server says of them.
func strictObjects() map[string]string {
	return merge(
		crd("stricts", "v1* v2", `["v1"]`, strict),
		object("stricts", "v1", "fine", "", `{"text":"abc"}`),
		object("stricts", "v1", "long", "", `{"text":"secret-text"}`), // lets unchanged errors of fields pass, also of their rules
		object("stricts", "v1", "rule", "", `{"rule":"no"}`),
		object("stricts", "v1", "doubled", "", `{"ports":[{"name":"a"},{"name":"a"}]}`),
		object("stricts", "v1", "managed", managedAt("v1"), `{}`),
		object("stricts", "v1", "root", "", `{"root":"no"}`),
		object("stricts", "v1", "root-managed", managedAt("v1"), `{"root":"no"}`),
		object("stricts", "v1", "keyless", "", `{"ports":[{"port":1}]}`),
		object("stricts", "v1", "doubled-bad", "", `{"ports":[{"name":"a","port":77777},{"name":"a","port":88888}]}`),
		object("stricts", "v1", "label", `"labels":{"a":"not allowed"},`, `{}`),
		object("stricts", "v1", "mistyped", "", `{"text":55555}`),
		object("stricts", "v1", "managed-gone", managedAt("v0"), `{}`),
		object("stricts", "v1", "dying", `"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["a/b"],`, `{"root":"no"}`),
	)
}

// TestWrites: each object that a server refuses is named with the reason, and no other. Doctor says
// the same of the file.
func TestWrites(t *testing.T) {
	w := newWorld(t, strictObjects())
	doctored := w.doctor(t)
	r := w.run(t, w.options())
	const (
		update = "rehearse-update stricts.demo.example.com a/"
		apply  = "rehearse-apply stricts.demo.example.com a/"
		port   = "at v1: spec.ports[1].port: Invalid value: spec.ports[1].port in body should be less than or equal to 9"
		root   = "at v1: the object itself: Invalid value: failed rule: !has(self.spec.root) || self.spec.root != 'no'"
		typed  = "at v1: failed to create manager for existing fields: failed to convert new object (a/"
		label  = "at v1: metadata.labels: Invalid value: a valid label must be"
	)
	requirePrefixes(t, []string{
		apply + "doubled-bad: apply " + port, update + "doubled-bad: update " + port,
		apply + "keyless: apply " + typed + "keyless; demo.example.com/v1, Kind=Strict) to smd typed: .spec.ports: element 0: ",
		update + "keyless: update at v1: spec.ports[0].name: Required value",
		apply + "label: apply " + label, update + "label: update " + label,
		apply + "managed-gone: apply at v1: request to convert CR to an invalid group/version: demo.example.com/v0",
		apply + "mistyped: apply " + typed + "mistyped; demo.example.com/v1, Kind=Strict) to smd typed: .spec.text: expected string",
		apply + "root: apply " + root, update + "root: update " + root,
		apply + "root-managed: apply " + root, update + "root-managed: update " + root,
	}, r.lines())
	for _, value := range []string{"secret-text", "77777", "88888", "55555", "not allowed"} {
		require.NotContains(t, strings.Join(r.lines(), "\n"), value)
	}
	require.Equal(t, Kind{Resource: "stricts.demo.example.com", Objects: 13, Listed: []string{"v1", "v2"}, Tried: 12, Terminating: 1, Failed: 12},
		r.kind(t, "stricts").Kind)
	require.Equal(t, map[*finding.Code]int{codeUpdate: 5, codeApply: 7}, r.Counts)

	said := r.names(codeUpdate)
	require.Equal(t, append(said, "dying"), sortedLast(doctored["update-refused"], "dying"), "doctor checks the object that is being deleted, too")
	said = append(said, doctored["apply-refused"]...)
	said = append(said, doctored["managed-fields-version"]...)
	slices.Sort(said)
	require.Equal(t, r.names(codeApply), slices.Compact(said), "what refuses an update refuses an apply")
}

// TestUnreadable: an object that cannot be read is named at each version; the others are tried.
func TestUnreadable(t *testing.T) {
	records := merge(crd("brokens", "v1* v2", `["v1"]`, strict),
		object("brokens", "v1", "after", "", `{"root":"no"}`), object("brokens", "v0", "gone", "", `{}`), object("brokens", "v1", "fine", "", `{}`),
		map[string]string{group + "/brokens/a/junk": "{"},
		crd("sounds", "v1*", `["v1"]`, plain), object("sounds", "v1", "x", "", `{}`))
	w := newWorld(t, records)
	r := w.run(t, w.options())
	const code, stored = "rehearse-list brokens.demo.example.com a/", ": Internal error occurred: StorageError: corrupt object, Code: 7, Key: /demo.example.com/brokens/a/"
	requirePrefixes(t, []string{
		"rehearse-apply brokens.demo.example.com a/after: apply at v1: the object itself",
		"rehearse-update brokens.demo.example.com a/after: update at v1: the object itself",
		code + "gone: get at v1" + stored + "gone", code + "gone: get at v2" + stored + "gone",
		code + "junk: get at v1" + stored + "junk", code + "junk: get at v2" + stored + "junk",
	}, r.lines())
	require.Contains(t, r.lines()[2], "request to convert CR from an invalid group/version: demo.example.com/v0")
	require.Equal(t, Kind{Resource: "brokens.demo.example.com", Objects: 2, Tried: 2, Failed: 6}, r.kind(t, "brokens").Kind)
	require.Equal(t, 1, r.kind(t, "sounds").Tried)
	doctored := w.doctor(t)
	require.Equal(t, []string{"gone"}, doctored["version-not-listed"])
	require.Equal(t, []string{"junk"}, doctored["undecodable"])

	r = w.run(t, tryOptions{})
	require.Len(t, r.lines(), 2, "without names: the list at each version")
	require.Contains(t, r.lines()[0], "rehearse-list brokens.demo.example.com: list at v1: failed to read one or more brokens.demo.example.com from the storage")
}

// TestDefinitions: definitions are tried like other objects, and one that is not served is named.
func TestDefinitions(t *testing.T) {
	unserved := crd("halfs", "v1*", `["v1"]`, plain)
	for key, value := range unserved {
		head, _, _ := strings.Cut(value, `,"conditions"`)
		unserved[key] = head + "}}" // the naming controller passes it over: names are accepted already
	}
	dying := crd("dyings", "v1*", `["v1"]`, plain)
	for key, value := range dying {
		dying[key] = strings.Replace(value, `"uid"`, `"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/a"],"uid"`, 1)
	}
	w := newWorld(t, merge(unserved, dying, crd("trimmeds", "v1*", `["v0","v1"]`, plain), crd("hiddens", "v1-*", `["v1"]`, plain)))
	r := w.run(t, w.options())
	const definition = "customresourcedefinitions.apiextensions.k8s.io trimmeds.demo.example.com: "
	requirePrefixes(t, []string{
		"rehearse-apply " + definition + "apply at v1: status.storedVersions[0]: Invalid value: missing from spec.versions; v0 was previously a storage version",
		"rehearse-update " + definition + "update at v1: status.storedVersions[0]: Invalid value: missing from spec.versions; v0 was previously a storage version",
		"rehearse-list halfs.demo.example.com: list at v1: the server could not find the requested resource",
	}, r.lines())
	require.Equal(t, "no version is served", r.kind(t, "hiddens").NotChecked)
	require.Contains(t, r.kind(t, "dyings").NotChecked, "the definition is being deleted")
	require.Equal(t, []string{"trimmeds.demo.example.com"}, w.doctor(t)["stored-versions-invalid"])
}

// TestLargeObjects: a dry run does not reach etcd, so it does not show that etcd refuses what
// exceeds its limit for requests. The API server's own limit is twice as large.
func TestLargeObjects(t *testing.T) {
	w := newWorld(t, merge(crd("larges", "v1*", `["v1"]`, plain),
		object("larges", "v1", "two", "", `{"a":"`+strings.Repeat("x", 2<<20)+`"}`), object("larges", "v1", "four", "", `{"a":"`+strings.Repeat("x", 4<<20)+`"}`)))
	r := w.run(t, w.options())
	require.Equal(t, []string{"rehearse-update larges.demo.example.com a/four: update at v1: Request entity too large: limit is 3145728"}, r.lines())
	require.Equal(t, []string{"four", "two"}, w.doctor(t)["value-too-large"])
}

// doctor returns the names of objects by code, as doctor finds them in a snapshot.
func (w *world) doctor(t *testing.T) map[string][]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, w.etcd, path)
	saved, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer saved.Close()
	report, err := doctor.Examine(t.Context(), inspect.NewReader(saved, nil), doctor.Options{})
	require.NoError(t, err)
	by := map[string][]string{}
	for _, f := range report.Findings {
		by[f.Code.Name] = append(by[f.Code.Name], f.Key[strings.LastIndex(f.Key, "/")+1:])
	}
	return by
}

// names of the objects with a failure.
func (r tried) names(code *finding.Code) (names []string) {
	for _, f := range r.Failures {
		if f.Code == code {
			names = append(names, f.Name)
		}
	}
	return names
}

// sortedLast sorts names, and moves one to the end.
func sortedLast(names []string, last string) []string {
	names = slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(name string) bool { return name == last })
	return append(names, last)
}

func requirePrefixes(t *testing.T, want, got []string) {
	t.Helper()
	require.Len(t, got, len(want), strings.Join(got, "\n"))
	for i := range want {
		require.Truef(t, strings.HasPrefix(got[i], want[i]), "%s\nis not\n%s", got[i], want[i])
	}
}
