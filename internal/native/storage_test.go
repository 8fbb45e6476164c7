package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// moduleDir returns the folder of a module that this one requires.
func moduleDir(t testing.TB, module string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(dir))
}

// upstream returns an object of every kind, with every field, from k8s.io/api: in the folder HEAD
// of its own release, or in that of an older one, such as "v1.33.0"; "*" stands for all.
func upstream(t *testing.T, folder, format string) (values [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(moduleDir(t, "k8s.io/api"), "testdata", folder, "*."+format))
	require.NoError(t, err)
	for _, path := range files {
		value, err := os.ReadFile(path)
		require.NoError(t, err)
		if !strings.Contains(path, ".after_roundtrip.") {
			values = append(values, value)
		}
	}
	return values
}

// TestStorage takes upstream's objects to each release and back: nothing is lost, or Lost names it.
func TestStorage(t *testing.T) {
	losing := []string{ // fields that no later version has
		"apps/v1beta1 Scale", "apps/v1beta2 Scale", "extensions/v1beta1 Scale",
		"rbac.authorization.k8s.io/v1alpha1 ClusterRoleBinding", "rbac.authorization.k8s.io/v1alpha1 RoleBinding",
	}
	converted, pruned, kinds := 0, 0, storedKinds()
	for _, value := range upstream(t, "HEAD", "pb") {
		v, err := encoding.Parse(value)
		require.NoError(t, err)
		if kinds[v.GVK] == nil {
			continue // not in an API server
		}
		kind := v.GVK.GroupKind()
		newest := value
		if form, err := (Target{Minor: LinkedRelease}).Storage(kind, v); form != nil {
			require.NoError(t, err)
			newest = form.Value
		}
		for minor := OldestRelease; minor <= LinkedRelease; minor++ {
			form, err := Target{Minor: minor}.Storage(kind, v)
			if form == nil {
				require.True(t, err == nil || errors.Is(err, ErrNotInRelease) || errors.Is(err, ErrNoForm), "%v", err)
				continue
			}
			converted++
			require.True(t, DecodedBy(form.GVK, minor), form.GVK)
			lossy := form.GVK != v.GVK && slices.Contains(losing, Name(v.GVK))
			require.True(t, !lossy || len(form.Lost) > 0, v.GVK)
			stored, err := encoding.Parse(form.Value)
			require.NoError(t, err)
			require.Equal(t, form.GVK, stored.GVK)
			again, err := Target{Minor: LinkedRelease}.Storage(kind, stored)
			require.NoError(t, err)
			if again == nil {
				again = form
			}
			if lossy || len(form.Lost) == 0 {
				require.Equal(t, newest, again.Value, "%s by 1.%d: %v", v.GVK, minor, form.Lost)
				continue
			}
			pruned++
			require.NotEqual(t, newest, again.Value, "%s by 1.%d: %v", v.GVK, minor, form.Lost)
			require.Empty(t, UnknownFields(stored, minor))
			require.Equal(t, again.Value, downAndUp(t, kind, again.Value, minor), "%s by 1.%d", v.GVK, minor)
		}
	}
	require.Greater(t, pruned, 100)
	require.Greater(t, converted, 400)
}

// downAndUp takes an object to a release and back, without a loss.
func downAndUp(t *testing.T, kind schema.GroupKind, value []byte, minor int) []byte {
	t.Helper()
	for _, to := range []int{minor, LinkedRelease} {
		v, err := encoding.Parse(value)
		require.NoError(t, err)
		form, err := Target{Minor: to}.Storage(kind, v)
		require.NoError(t, err)
		if form != nil {
			require.Empty(t, form.Lost)
			value = form.Value
		}
	}
	return value
}

// TestDefaultsOfTheClock checks that a default of the present time becomes the creation of the
// object, and that only resource.k8s.io has such defaults.
func TestDefaultsOfTheClock(t *testing.T) {
	v, err := encoding.Parse([]byte(`{"kind":"DeviceTaintRule","apiVersion":"resource.k8s.io/v1alpha3","metadata":` +
		`{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"},"spec":{"taint":{"key":"a","effect":"NoExecute"}}}`))
	require.NoError(t, err)
	form, err := Target{Minor: LinkedRelease}.Storage(v.GVK.GroupKind(), v)
	require.NoError(t, err)
	require.Contains(t, string(form.Value), `"timeAdded":"2026-01-02T03:04:05Z"`)

	files, err := filepath.Glob(filepath.Join(moduleDir(t, "k8s.io/kubernetes"), "pkg", "apis", "*", "v*",
		"defaults.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		group := filepath.Base(filepath.Dir(filepath.Dir(path)))
		require.True(t, group == "resource" || !strings.Contains(string(text), "Now()"), path)
	}
}

// TestStorageVersions checks that each release has one storage version of each of its kinds, and
// decodes it.
func TestStorageVersions(t *testing.T) {
	for kind, versions := range kindSpans() {
		for minor := OldestRelease; minor <= LinkedRelease; minor++ {
			stored := 0
			for _, v := range versions {
				if v.stored.has(minor) {
					stored++
				}
			}
			require.LessOrEqual(t, stored, 1, "%s of 1.%d", kind, minor)
			version := storageVersion(kind, minor)
			require.Equal(t, version != "", InRelease(kind, minor), "%s of 1.%d", kind, minor)
			require.True(t, version == "" || DecodedBy(kind.WithVersion(version), minor), "%s of 1.%d", kind, minor)
		}
	}
}

// TestStorageOfRemovedVersions checks versions that the linked release does not decode.
func TestStorageOfRemovedVersions(t *testing.T) {
	for old, like := range alike() {
		require.False(t, DecodedBy(old, LinkedRelease), old)
		require.True(t, DecodedBy(like, LinkedRelease), like)
		_, last := Releases(old)
		require.Positive(t, last, old)
	}
	for _, old := range exactlyAlike() {
		require.Contains(t, alike(), old)
	}
	address := schema.GroupKind{Group: "networking.k8s.io", Kind: "IPAddress"}
	value := []byte(`{"kind":"IPAddress","apiVersion":"networking.k8s.io/v1alpha1","metadata":{"name":"10.0.0.1"},` +
		`"spec":{"parentRef":{"resource":"services","namespace":"a","name":"b"}}}` + "\n")
	v, err := encoding.Parse(value)
	require.NoError(t, err)
	form, err := Target{Minor: LinkedRelease}.Storage(address, v)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(value), "v1alpha1", "v1", 1), string(form.Value))
	v, err = encoding.Parse(form.Value)
	require.NoError(t, err)
	form, err = Target{Minor: 30}.Storage(address, v)
	require.NoError(t, err)
	require.Equal(t, string(value), string(form.Value))
}
