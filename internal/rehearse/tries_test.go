package rehearse

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/doctor"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// managedAt returns metadata with a manager that wrote at the version.
func managedAt(version string) string {
	return `"managedFields":[{"apiVersion":"` + group + `/` + version +
		`","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:text":{}}},"manager":"m","operation":"Update",` +
		`"time":"2026-01-01T00:00:00Z"}],`
}

// strictObjects returns objects of kind Strict, with the server's answers.
func strictObjects() map[string]string {
	return merge(
		crd("stricts", "v1* v2", `["v1"]`, strict),
		object("stricts", "v1", "fine", "", `{"text":"abc"}`),
		// errors about unchanged fields are tolerated, also of rules
		object("stricts", "v1", "long", "", `{"text":"secret-text"}`),
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
		object("stricts", "v1", "dying",
			`"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["a/b"],`,
			`{"root":"no"}`),
	)
}

// TestWrites checks that exactly the objects that a server refuses are named, with the reason, and
// that doctor has the same findings about the file.
func TestWrites(t *testing.T) {
	w := newWorld(t, strictObjects())
	doctored := w.doctor(t)
	r := w.run(t, w.options())
	const (
		update = "rehearse-update stricts.demo.example.com a/"
		apply  = "rehearse-apply stricts.demo.example.com a/"
		port   = "at v1: spec.ports[1].port: Invalid value: spec.ports[1].port in body should be less than " +
			"or equal to 9"
		root  = "at v1: the object itself: Invalid value: failed rule: !has(self.spec.root) || self.spec.root != 'no'"
		typed = "at v1: failed to create manager for existing fields: failed to convert new object (a/"
		label = "at v1: metadata.labels: Invalid value: a valid label must be"
	)
	requirePrefixes(t, []string{
		apply + "doubled-bad: apply " + port, update + "doubled-bad: update " + port,
		apply + "keyless: apply " + typed + "keyless; demo.example.com/v1, Kind=Strict) to smd typed: .spec.ports: " +
			"element 0: ",
		update + "keyless: update at v1: spec.ports[0].name: Required value",
		apply + "label: apply " + label, update + "label: update " + label,
		apply + "managed-gone: apply at v1: request to convert CR to an invalid group/version: demo.example.com/v0",
		apply + "mistyped: apply " + typed + "mistyped; demo.example.com/v1, Kind=Strict) to smd typed: .spec.text: " +
			"expected string",
		apply + "root: apply " + root, update + "root: update " + root,
		apply + "root-managed: apply " + root, update + "root-managed: update " + root,
	}, r.lines())
	for _, value := range []string{"secret-text", "77777", "88888", "55555", "not allowed"} {
		require.NotContains(t, strings.Join(r.lines(), "\n"), value)
	}
	require.Equal(t, Kind{Resource: "stricts.demo.example.com", Objects: 13, Listed: []string{"v1", "v2"}, Tried: 12,
		Terminating: 1, Failed: 12}, r.kind(t, "stricts").Kind)
	require.Equal(t, map[*finding.Code]int{codeUpdate: 5, codeApply: 7}, r.Counts)

	said := r.names(codeUpdate)
	require.Equal(t, append(said, "dying"), sortedLast(doctored["update-refused"], "dying"),
		"doctor checks the object that is being deleted, too")
	said = append(said, doctored["apply-refused"]...)
	said = append(said, doctored["managed-fields-version"]...)
	slices.Sort(said)
	require.Equal(t, r.names(codeApply), slices.Compact(said), "what refuses an update refuses an apply")
}

// TestUnreadable checks that an unreadable object is named at each version, and that others are
// tried.
func TestUnreadable(t *testing.T) {
	records := merge(crd("brokens", "v1* v2", `["v1"]`, strict),
		object("brokens", "v1", "after", "", `{"root":"no"}`), object("brokens", "v0", "gone", "", `{}`),
		object("brokens", "v1", "fine", "", `{}`),
		map[string]string{group + "/brokens/a/junk": "{"},
		crd("sounds", "v1*", `["v1"]`, plain), object("sounds", "v1", "x", "", `{}`))
	w := newWorld(t, records)
	r := w.run(t, w.options())
	const code, stored = "rehearse-list brokens.demo.example.com a/",
		": Internal error occurred: StorageError: corrupt object, Code: 7, Key: /demo.example.com/brokens/a/"
	requirePrefixes(t, []string{
		"rehearse-apply brokens.demo.example.com a/after: apply at v1: the object itself",
		"rehearse-update brokens.demo.example.com a/after: update at v1: the object itself",
		code + "gone: get at v1" + stored + "gone", code + "gone: get at v2" + stored + "gone",
		code + "junk: get at v1" + stored + "junk", code + "junk: get at v2" + stored + "junk",
	}, r.lines())
	require.Contains(t, r.lines()[2], "request to convert CR from an invalid group/version: demo.example.com/v0")
	require.Equal(t, Kind{Resource: "brokens.demo.example.com", Objects: 2, Tried: 2, Failed: 6},
		r.kind(t, "brokens").Kind)
	require.Equal(t, 1, r.kind(t, "sounds").Tried)
	doctored := w.doctor(t)
	require.Equal(t, []string{"gone"}, doctored["version-not-listed"])
	require.Equal(t, []string{"junk"}, doctored["undecodable"])

	r = w.run(t, tryOptions{})
	require.Len(t, r.lines(), 2, "without names: the list at each version")
	require.Contains(t, r.lines()[0], "rehearse-list brokens.demo.example.com: list at v1: failed to read one or "+
		"more brokens.demo.example.com from the storage")
}

// TestDefinitions checks that definitions are tried like other objects, and that an unserved one is
// named.
func TestDefinitions(t *testing.T) {
	unserved := crd("halfs", "v1*", `["v1"]`, plain)
	for key, value := range unserved {
		head, _, _ := strings.Cut(value, `,"conditions"`)
		unserved[key] = head + "}}" // the naming controller skips it: names are already accepted
	}
	dying := crd("dyings", "v1*", `["v1"]`, plain)
	for key, value := range dying {
		dying[key] = strings.Replace(value, `"uid"`,
			`"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/a"],"uid"`, 1)
	}
	w := newWorld(t, merge(unserved, dying, crd("trimmeds", "v1*", `["v0","v1"]`, plain),
		crd("hiddens", "v1-*", `["v1"]`, plain)))
	r := w.run(t, w.options())
	const definition = "customresourcedefinitions.apiextensions.k8s.io trimmeds.demo.example.com: "
	requirePrefixes(t, []string{
		"rehearse-apply " + definition + "apply at v1: status.storedVersions[0]: Invalid value: missing from " +
			"spec.versions; v0 was previously a storage version",
		"rehearse-update " + definition + "update at v1: status.storedVersions[0]: Invalid value: missing from " +
			"spec.versions; v0 was previously a storage version",
		"rehearse-list halfs.demo.example.com: list at v1: the server could not find the requested resource",
	}, r.lines())
	require.Equal(t, "no version is served", r.kind(t, "hiddens").NotChecked)
	require.Contains(t, r.kind(t, "dyings").NotChecked, "the definition is being deleted")
	require.Equal(t, []string{"trimmeds.demo.example.com"}, w.doctor(t)["stored-versions-invalid"])
}

// TestLargeObjects checks that a dry run succeeds above etcd's request limit, because it does not
// reach etcd. The API server's own limit is twice as large.
func TestLargeObjects(t *testing.T) {
	w := newWorld(t, merge(crd("larges", "v1*", `["v1"]`, plain),
		object("larges", "v1", "two", "", `{"a":"`+strings.Repeat("x", 2<<20)+`"}`),
		object("larges", "v1", "four", "", `{"a":"`+strings.Repeat("x", 4<<20)+`"}`)))
	r := w.run(t, w.options())
	require.Equal(t, []string{"rehearse-update larges.demo.example.com a/four: update at v1: Request entity too " +
		"large: limit is 3145728"}, r.lines())
	require.Equal(t, []string{"four", "two"}, w.doctor(t)["value-too-large"])
}

// doctor returns the names of objects in doctor's findings, by code.
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

// names returns the names of the objects with a failure.
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

// fake is an API server with a definition of widgets, and objects of these names. It ends the
// connection of requests for the object "panics", and does not find the object "gone".
func fake(t *testing.T, names ...string) *rest.Config {
	definition := crd("widgets", "v1*", `["v1"]`, plain)
	var items []string
	for _, name := range names {
		items = append(items,
			fmt.Sprintf(`{"apiVersion":"demo.example.com/v1","kind":"Widget","metadata":{"namespace":"a","name":%q}}`,
				name))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/customresourcedefinitions"):
			for _, value := range definition {
				fmt.Fprintf(w, `{"kind":"List","items":[%s]}`, value)
			}
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/widgets"):
			fmt.Fprintf(w, `{"kind":"List","items":[%s]}`, strings.Join(items, ","))
		case strings.HasSuffix(r.URL.Path, "/gone"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w,
				`{"kind":"Status","apiVersion":"v1","status":"refused","reason":"NotFound","code":404,"message":"not `+
					`found"}`)
		case strings.HasSuffix(r.URL.Path, "/panics"):
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestUnanswered checks that the run continues after an object over which a server panics, and ends
// if the server is gone.
func TestUnanswered(t *testing.T) {
	config := fake(t, "fine", "panics")
	r, err := tryAll(t.Context(), config, tryOptions{})
	require.NoError(t, err)
	const why = " at v1: Internal error occurred: the API server ended the connection without an answer, or gave " +
		"none in time"
	require.Equal(t, []string{
		"rehearse-apply widgets.demo.example.com a/panics: apply" + why,
		"rehearse-update widgets.demo.example.com a/panics: update" + why}, r.lines())
	config.Host = "http://127.0.0.1:1"
	_, err = tryAll(t.Context(), config, tryOptions{})
	require.ErrorContains(t, err, "the API server does not answer: "+
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
}

// TestNotFound checks that an object deleted after the list is no failure.
func TestNotFound(t *testing.T) {
	r, err := tryAll(t.Context(), fake(t, "gone", "fine"), tryOptions{})
	require.NoError(t, err)
	require.Empty(t, r.lines())
	require.Equal(t, 1, r.kind(t, "widgets").Tried)
}

// TestUnnamable checks that a name that would change the path is refused.
func TestUnnamable(t *testing.T) {
	r, err := tryAll(t.Context(), fake(t, "..", "a/b"), tryOptions{})
	require.NoError(t, err)
	require.Len(t, r.lines(), 4)
	require.Equal(t, "rehearse-apply widgets.demo.example.com a/..: apply at v1: no request can name it: it may "+
		"not be '..'", r.lines()[0])
}

// TestReasonsHoldNoValues checks that reasons keep the server's messages without the values of
// fields.
func TestReasonsHoldNoValues(t *testing.T) {
	at := field.NewPath("spec", "a")
	for _, c := range []struct {
		err  *field.Error
		want string
	}{
		{field.Invalid(at, "se\"cret: x", "must not be so"), "spec.a: Invalid value: must not be so"},
		{field.Invalid(at, 5, "must not be so"), "spec.a: Invalid value: must not be so"},
		{field.Invalid(at, map[string]any{"a": "secret: x"}, "must not be so"),
			"spec.a: Invalid value: must not be so"},
		// printed as in Go
		{field.Invalid(at, map[any]any{"a": "secret: x"}, "must not be so"), "spec.a: Invalid value"},
		{field.Invalid(nil, field.OmitValueType{}, "must not be so"),
			"the object itself: Invalid value: must not be so"},
		{field.NotSupported(at, "secret", []string{"a", "b"}), `spec.a: Unsupported value: supported values: "a", "b"`},
		{field.Duplicate(at, map[string]any{"a": "secret"}), "spec.a: Duplicate value"},
		{field.TooLong(at, "secret", 3), "spec.a: Too long: may not be more than 3 bytes"},
		{field.TooMany(at, 5, 3), "spec.a: Too many: must have at most 3 items"},
		{field.Required(at, "name it"), "spec.a: Required value: name it"},
		{field.NotFound(at, "secret"), "spec.a: Not found"},
		{field.Forbidden(at, "not now"), "spec.a: Forbidden: not now"},
		{field.TypeInvalid(at, "secret", "must be of type integer"), "spec.a: Invalid value: must be of type integer"},
	} {
		refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "Widget"}, "a", field.ErrorList{c.err})
		require.Equal(t, c.want, reason(refusal, false))
		require.NotContains(t, reason(refusal, true), "must not")
	}
	for message, want := range map[string]string{
		"failed to convert new object (a/b) to smd typed: errors:\n  .spec.b: expected map, got &{[secret]}\n  " +
			".spec.a[name=\"secret\"]: expected string, got &value.valueUnstructured{Value:5}": //
		`failed to convert new object (a/b) to smd typed: errors: .spec.a[name="..."]: expected string; .spec.b: ` +
			`expected map`,
		`.metadata.managedFields: parsing time "secret" as "2006"`: `.metadata.managedFields: parsing time ` +
			`"..." as "..."`,
		`conversion webhook for a/v1, Kind=B failed: Post "https://x": no`: `conversion webhook for a/v1, Kind=B ` +
			`failed: Post "https://x": no`,
		"request to convert CR from an invalid group/version: example.com/v0": "request to convert CR from an " +
			"invalid group/version: example.com/v0",
	} {
		require.Equal(t, want, reason(&apierrors.StatusError{ErrStatus: metav1.Status{Message: message}}, false))
	}
}

// TestFailuresAreBounded checks that the first 1,000 of each code are kept, in any order of
// arrival.
func TestFailuresAreBounded(t *testing.T) {
	var f failures
	for _, i := range rand.Perm(5000) {
		f.add(refused{Finding: codeList.Because("x"), Resource: "a",
			objectName: objectName{Name: fmt.Sprintf("%04d", i)}})
		f.add(refused{Finding: codeApply.Because("x"), Resource: "b",
			objectName: objectName{Name: fmt.Sprintf("%04d", i%10)}, Version: fmt.Sprintf("%04d", i)})
	}
	all, counts := f.all()
	require.Equal(t, map[*finding.Code]int{codeList: 5000, codeApply: 5000}, counts)
	require.Len(t, all, 2000)
	require.Equal(t, "0000", all[0].Name)
	require.Equal(t, "0999", all[999].Name)
	require.Equal(t, "1", all[1999].Name[3:])
	require.Equal(t, "4991", all[1999].Version)
}
