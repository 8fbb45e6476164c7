// Package e2e proves the Calico migration on a real cluster's control plane: etcd, kube-apiserver
// and kube-controller-manager with nothing but its garbage collector, each the real program, on
// what etcdshift wrote and etcdutl restored.
//
//	make e2e
//
// builds bin/etcdshift, then into e2e/bin kube-apiserver, kube-controller-manager and kubectl of
// the version in this folder's go.mod (its tool lines) and etcd and etcdutl of the version in the
// main go.mod, and runs the tests. With the binaries there, `go test` in this folder runs them
// alone; `-run`, `-v` and `-count=1` as usual. All of it stays on the loopback device.
//
// The folder is a module of its own so that etcdshift does not require k8s.io/kubernetes; nothing
// imports it. k8s.io/kubernetes asks for a replace line for each of the modules that are staged in
// its repository: a new version means new numbers in all of them, and `go mod tidy`.
//
// What holds:
//
//   - etcdshift is used as its users use it: the binary, its flags, its report, and the restore
//     command that it prints.
//   - The API server serves every migrated object at projectcalico.org/v3, at the UID the report
//     says, and nothing of crd.projectcalico.org is left.
//   - A served object can be listed, watched, created, updated, applied and deleted, with the
//     cluster's admission policies.
//   - Every owner reference in the cluster ends at a live object of that name and UID.
//   - The garbage collector, once it has proved by two objects with a wrong owner that it works,
//     has changed nothing else.
//   - Records that the API server encrypted are migrated, and encrypted under their new keys; after
//     --rewrap a server that has the new key alone, and takes nothing in the clear, serves every
//     kind.
//   - kubectl prints the same of a snapshot under "etcdshift serve" as of the API server that wrote
//     it, but for the lines that justified lists; informers of client-go know the same objects.
//   - An exported namespace is applied to an empty API server in one go; the same again changes
//     nothing.
//   - The page of "etcdshift report" opens in Chromium without a complaint or a request, on a desk,
//     a phone and paper, light and dark; hostile names stay text. The pictures are in bin/pictures.
//   - What "etcdshift rehearse" passes works after the restore: every kind is listed and changed,
//     nothing is collected, the old version of a definition can go. What it names, the same servers
//     fail on. The files are those of "etcdshift save".
//   - "etcdshift delete" and a restore leave the objects that "kubectl delete" leaves on a server,
//     and the garbage collector does what the report says. "etcdshift patch" makes the fields that
//     "kubectl patch" makes. Of both more than 40 kinds are tried; what differs is listed with its
//     reason.
//   - On what the live migration left, the same collector takes what it took when that was
//     recorded.
package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigrated: a migrated cluster is served whole, and the garbage collector has nothing to do.
func TestMigrated(t *testing.T) {
	t.Parallel() // servers wait more than they work
	for _, tc := range []struct {
		name     string
		snapshot func(t testing.TB) string
		flags    []string
		fresh    bool // UIDs
		more     func(t testing.TB, c *cluster)
	}{
		{name: "recorded", snapshot: func(t testing.TB) string { return snapshotOf(t, "before") }},
		{name: "new-uids", snapshot: func(t testing.TB) string { return snapshotOf(t, "before") },
			flags: []string{"--uids", "new"}, fresh: true},
		{name: "manifest-install", snapshot: installed, more: requireRolling},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := migrate(t, tc.snapshot(t), tc.flags...)
			c := startCluster(t, r.restore(t))
			served := c.requireServed(t)
			c.requireNoV1(t)
			r.requireUIDs(t, served, tc.fresh)
			c.requireOwners(t)
			require.Empty(t, c.collect(t, v3("globalnetworkpolicies"), "allow-dns"),
				"nothing else writes to the cluster")
			if tc.more != nil {
				tc.more(t, c)
			}
			c.usePolicy(t)
			for plural, objects := range served {
				for i := range objects {
					c.useObject(t, plural, &objects[i])
				}
			}
		})
	}
}

// TestLiveMigration is the control: after Calico's own controller the same collector, watched in
// the same way, collects what was recorded. If it collected nothing, TestMigrated could not fail.
func TestLiveMigration(t *testing.T) {
	t.Parallel()
	data := restoreAsIs(t, snapshotOf(t, "after-cleanup"), "--bump-revision", "1000000000", "--mark-compacted")
	c := startCluster(t, data)
	c.requireServed(t)
	want := recordedCollection(t)
	require.Len(t, want, 5)
	require.Equal(t, want, c.collect(t, v3("globalnetworkpolicies"), "allow-dns"))
}

// recordedCollection returns the recorded changes of the collector in the form of difference. Lines
// are "resource namespace name live owners", with "<" before the collection and ">" after it.
func recordedCollection(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "testdata", "calico", "gc-after-real-controller.txt"))
	require.NoError(t, err)
	stored := map[string]string{
		"cm": "configmaps", "secret": "secrets", "networkpolicies.networking.k8s.io": "networkpolicies",
		"widgets.example.com": "example.com/widgets",
	}
	kept := make(map[string]bool)
	var before, out []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "<" && f[0] != ">" {
			continue
		}
		require.Contains(t, stored, f[1])
		key := "/registry/" + stored[f[1]] + "/" + f[2] + "/" + f[3]
		if f[0] == "<" {
			before = append(before, key)
		} else {
			kept[key] = true
		}
	}
	for _, key := range before {
		if kept[key] {
			out = append(out, "changed "+key)
		} else {
			out = append(out, "deleted "+key)
		}
	}
	sortChanges(out)
	return out
}
