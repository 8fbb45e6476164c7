package native

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/etcdshift/etcdshift/encoding"
)

var update = flag.Bool("update", false, "write fields.txt")

// patches are the newest patches of the minor releases from OldestRelease on.
func patches() []string {
	return []string{"29.6", "30.14", "31.14", "32.13", "33.13", "34.4", "35.4", "36.3", "37.2"}
}

// releaseDir returns the folder of a module of a minor release.
func releaseDir(t testing.TB, module string, minor int) string {
	t.Helper()
	query := module + "@v0." + patches()[minor-OldestRelease]
	out, err := exec.Command("go", "mod", "download", "-json", query).Output()
	require.NoError(t, err, query)
	var found struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &found))
	return found.Dir
}

// fieldsOf returns the names of the fields by number, of all Go types of a release.
func fieldsOf(t *testing.T, minor int) map[string]map[int]string {
	t.Helper()
	api, machinery := releaseDir(t, "k8s.io/api", minor), releaseDir(t, "k8s.io/apimachinery", minor)
	all := map[string]map[int]string{}
	for _, pattern := range []string{api + "/*/v*/*.go", machinery + "/pkg/apis/meta/v1/*.go"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, paths)
		for _, file := range paths {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			require.NoError(t, err)
			dir, version := path.Split(path.Dir(file))
			ast.Inspect(parsed, func(n ast.Node) bool {
				spec, isType := n.(*ast.TypeSpec)
				if !isType {
					return true
				}
				if of, isStruct := spec.Type.(*ast.StructType); isStruct {
					all[path.Base(dir)+"/"+version+"."+spec.Name.Name] = fieldsOfStruct(of)
				}
				return false
			})
		}
	}
	return all
}

func fieldsOfStruct(of *ast.StructType) map[int]string {
	names := map[int]string{}
	for _, f := range of.Fields.List {
		if f.Tag == nil {
			continue
		}
		text, _ := strconv.Unquote(f.Tag.Value)
		tag := reflect.StructTag(text)
		if parts := strings.Split(tag.Get("protobuf"), ","); len(parts) > 1 {
			number, _ := strconv.Atoi(parts[1])
			names[number], _, _ = strings.Cut(tag.Get("json"), ",")
		}
	}
	return names
}

// TestFieldsOfReleases compares fields.txt with the Go types of all releases.
func TestFieldsOfReleases(t *testing.T) {
	type field struct {
		number int
		name   string
	}
	having := map[string]map[field][]int{} // releases with a field
	types := map[string][]int{}            // releases with a type
	for minor := OldestRelease; minor <= LinkedRelease; minor++ {
		for name, names := range fieldsOf(t, minor) {
			types[name] = append(types[name], minor)
			if having[name] == nil {
				having[name] = map[field][]int{}
			}
			for number, text := range names {
				having[name][field{number, text}] = append(having[name][field{number, text}], minor)
			}
		}
	}
	linked := linkedTypes()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(linked)) {
		line := ""
		fields := slices.SortedFunc(maps.Keys(having[name]), func(a, b field) int { return a.number - b.number })
		for _, f := range fields {
			if in := having[name][f]; !slices.Equal(in, types[name]) {
				line += fmt.Sprintf(" %d:%s:%s", f.number, f.name, rangeOf(t, in))
			}
		}
		if line != "" {
			lines = append(lines, name+line+"\n")
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("fields.txt", []byte(strings.Join(lines, "")), 0o644))
	}
	require.Greater(t, len(lines), 50)
	require.Equal(t, strings.Join(lines, ""), fields)
}

// linkedTypes returns the names of the types in values of kinds that API servers store.
func linkedTypes() map[string]bool {
	names := map[string]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			add(t.Elem())
		case reflect.Struct:
			if names[typeName(t)] || hasContentOfItsOwn(t) {
				return
			}
			names[typeName(t)] = true
			for i := range t.NumField() {
				add(t.Field(i).Type)
			}
		}
	}
	for _, name := range storedKinds() {
		add(name)
	}
	return names
}

// rangeOf formats minor releases without gaps, as in fields.txt.
func rangeOf(t *testing.T, minors []int) string {
	t.Helper()
	first, last := minors[0], minors[len(minors)-1]
	require.Len(t, minors, last-first+1)
	switch {
	case last == LinkedRelease:
		return fmt.Sprintf("%d-", first)
	case first == last:
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// storedKinds returns the Go types of objects that API servers of some release decode.
func storedKinds() map[schema.GroupVersionKind]reflect.Type {
	kinds := map[schema.GroupVersionKind]reflect.Type{}
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		_, isObject := reflect.New(of).Interface().(metav1.Object)
		first, last := Releases(gvk)
		if isObject && legacyscheme.Scheme.Recognizes(gvk) && last >= OldestRelease && first <= LinkedRelease {
			kinds[gvk] = of
		}
	}
	return kinds
}

// TestUnknownFields checks which fields count: fields that are set, and with a value that the
// release would lose.
func TestUnknownFields(t *testing.T) {
	pod := func(spec string) string { return "v1 Pod " + spec }
	for _, test := range []struct {
		object string
		minor  int
		want   []string
	}{
		{pod(`{"hostUsers":false,"schedulingGroup":{},"resources":{}}`), 34, []string{"spec.schedulingGroup"}},
		{pod(`{"schedulingGroup":{},"resources":{}}`), 31, []string{"spec.resources", "spec.schedulingGroup"}},
		{pod(`{"schedulingGroup":{}}`), 36, nil},
		{pod(`{"workloadRef":{"name":"a"}}`), 35, nil},
		{pod(`{"workloadRef":{"name":"a"}}`), 36, []string{"spec.workloadRef"}},
		{pod(`{"hunter2":{"name":"a"},"later":null}`), LinkedRelease, []string{"spec.hunter2"}},
		{pod(`{"containers":[{},{"volumeMounts":[{},{"bindMountOptions":["ro"]}]}]}`), 36,
			[]string{"spec.containers[1].volumeMounts[1].bindMountOptions"}},
		{`storage.k8s.io/v1 CSIDriver {"preventPodSchedulingIfMissing":false}`, 35, nil}, // the default
		{`storage.k8s.io/v1 CSIDriver {"preventPodSchedulingIfMissing":true}`, 35,
			[]string{"spec.preventPodSchedulingIfMissing"}},
		{`apps/v1 StatefulSet {"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1","status":{` +
			`"healthStatus":{}}}]}`, 36, []string{"spec.volumeClaimTemplates[0].status.healthStatus"}},
		{`resource.k8s.io/v1 ResourceSlice {"devices":[{"attributes":{"a.b":{"ints":[1]}}}]}`, 35,
			[]string{"spec.devices[0].attributes.a.b.ints"}},
		{`apps/v1 Deployment {"template":{"spec":{"volumes":[{"emptyDir":{"mode":0}}]}}}`, 36,
			[]string{"spec.template.spec.volumes[0].emptyDir.mode"}},
		{`example.com/v1 Thing {"a":1}`, 30, nil},
	} {
		content, gvk := object(t, test.object)
		text, err := json.Marshal(content)
		require.NoError(t, err)
		v := encoding.Value{Format: encoding.FormatJSON, GVK: gvk, Raw: text}
		require.Equal(t, test.want, UnknownFields(v, test.minor), test.object)
		obj, err := scheme.Scheme.New(gvk)
		if err != nil || Unfit(v, content) != nil { // of another release
			continue
		}
		require.NoError(t, json.Unmarshal(text, obj))
		raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
		require.NoError(t, err)
		v = encoding.Value{Format: encoding.FormatProtobuf, GVK: gvk, Raw: raw}
		require.Equal(t, test.want, UnknownFields(v, test.minor), test.object)
		v.Raw = append(raw, 0xc0, 0x3e, 1)
		require.Equal(t, append([]string{"field 1000"}, test.want...), UnknownFields(v, test.minor))
	}
}

// TestPrune prunes objects with every field of each release for each other one: the fields of both
// releases are left, with the bytes of either.
func TestPrune(t *testing.T) {
	var objects [LinkedRelease + 1]map[string][]byte
	stored, lossy := storedKinds(), 0
	for minor := OldestRelease; minor <= LinkedRelease; minor++ {
		objects[minor] = headOf(t, minor)
	}
	for minor := OldestRelease; minor <= LinkedRelease; minor++ {
		for _, other := range []int{LinkedRelease, max(minor-1, OldestRelease)} {
			compared := 0
			for name, value := range objects[minor] {
				v, err := encoding.Parse(value)
				require.NoError(t, err)
				there := objects[other][name]
				if stored[v.GVK] == nil || there == nil || !DecodedBy(v.GVK, minor) || !DecodedBy(v.GVK, other) {
					continue
				}
				compared++
				w, err := encoding.Parse(there)
				require.NoError(t, err)
				first, lost := prune(v, other)
				second, _ := prune(w, minor)
				require.Equal(t, of(t, v, first, min(minor, other)), of(t, w, second, min(minor, other)),
					"%s of 1.%d by 1.%d", name, minor, other)
				if len(lost) > 0 {
					lossy++
				}
			}
			require.Greater(t, compared, 150)
		}
	}
	require.Greater(t, lossy, 150)
}

// TestPruneBack checks that an object without a lost field has its first bytes again after the way
// back to its own release: also an object without a set field, and random ones.
func TestPruneBack(t *testing.T) {
	same := 0
	for gvk, of := range storedKinds() {
		unset, err := reflect.New(of).Interface().(interface{ Marshal() ([]byte, error) }).Marshal()
		require.NoError(t, err)
		for _, raw := range [][]byte{unset, encoded(t, gvk, 1), encoded(t, gvk, 2)} {
			v := encoding.Value{Format: encoding.FormatProtobuf, GVK: gvk, Raw: raw}
			require.True(t, messages()[gvk].known(raw, LinkedRelease), gvk)
			for minor := OldestRelease; minor < LinkedRelease; minor++ {
				there, lost := prune(v, minor)
				v := encoding.Value{Format: v.Format, GVK: gvk, Raw: there}
				require.Empty(t, UnknownFields(v, minor))
				back, _ := prune(v, LinkedRelease)
				if len(lost) == 0 && gvk.Kind != "CSIDriver" { // has a default that older releases lack
					require.Equal(t, raw, back, "%s by 1.%d", gvk, minor)
					same++
				}
			}
		}
	}
	require.Greater(t, same, 2000)
}

// of returns the message of an older release, without its unset fields, or JSON as compact text.
func of(t *testing.T, v encoding.Value, body []byte, minor int) string {
	t.Helper()
	v.Raw = body
	body, _ = prune(v, minor)
	if v.Format == encoding.FormatProtobuf {
		return string(body)
	}
	var out bytes.Buffer
	require.NoError(t, json.Compact(&out, body))
	return out.String()
}

// headOf returns upstream's objects of a release with every field, by file name.
func headOf(t *testing.T, minor int) map[string][]byte {
	t.Helper()
	values := map[string][]byte{}
	for _, format := range []string{"json", "pb"} {
		files, err := filepath.Glob(filepath.Join(releaseDir(t, "k8s.io/api", minor), "testdata", "HEAD", "*."+format))
		require.NoError(t, err)
		for _, file := range files {
			value, err := os.ReadFile(file)
			require.NoError(t, err)
			values[filepath.Base(file)] = value
		}
	}
	return values
}
