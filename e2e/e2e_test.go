// Package e2e tests the Calico migration and other commands on a real control plane: etcd,
// kube-apiserver and kube-controller-manager with only its garbage collector, each the real
// program, on files written by etcdshift and restored by etcdutl.
//
//	make e2e
//
// builds bin/etcdshift, then into e2e/bin kube-apiserver, kube-controller-manager and kubectl of
// the version in this folder's go.mod (its tool lines) and etcd and etcdutl of the version in the
// main go.mod, and runs the tests. With these binaries, `go test` in this folder runs only the
// tests; `-run`, `-v` and `-count=1` as usual. All servers use only the loopback device. "make
// bench-live" measures commands beside kubectl and migrations on these servers.
//
// The folder is a separate module so that etcdshift does not require k8s.io/kubernetes; no package
// imports it. k8s.io/kubernetes needs a replace line for each module staged in its repository: for
// a new version, change all their numbers and run `go mod tidy`.
//
// Invariants:
//
//   - etcdshift is used as its users use it: the binary, its flags, its report, and the printed
//     restore command.
//   - The API server serves every migrated object at projectcalico.org/v3, with the reported UID,
//     and no object of crd.projectcalico.org is left.
//   - A served object can be listed, watched, created, updated, applied and deleted, with the
//     cluster's admission policies.
//   - Every owner reference in the cluster refers to a live object with its name and UID.
//   - The garbage collector deletes two canaries with a wrong owner, which proves that it works,
//     and changes no other object.
//   - Records encrypted by the API server are migrated, and encrypted under their new keys; after
//     --rewrap a server with only the new key, which accepts no plaintext, serves every kind.
//   - kubectl prints the same for a snapshot under "etcdshift serve" as for the API server that
//     wrote it, except for the lines that justified lists; informers of client-go have the same
//     objects.
//   - An exported namespace can be applied to an empty API server in one run; a second run changes
//     nothing.
//   - The page of "etcdshift report" opens in Chromium without a message or a request, on a
//     desktop, a phone and paper, light and dark; hostile names stay text. The pictures are in
//     bin/pictures.
//   - If "etcdshift rehearse" passes, the restore works: every kind is listed and changed, nothing
//     is collected, the old version of a definition can be dropped. If it reports failures, the
//     same servers fail. The files are written by "etcdshift save".
//   - "etcdshift delete" and a restore leave the same objects as "kubectl delete" on a server, and
//     the garbage collector acts as reported. "etcdshift patch" gives the same fields as "kubectl
//     patch". Both are tested with more than 40 kinds; differences are listed with reasons.
//   - After the live migration, the same collector deletes the same objects as in the recording.
//     recorded.
package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigrated checks that a migrated cluster is fully served, and the garbage collector changes
// nothing.
func TestMigrated(t *testing.T) {
	t.Parallel() // servers mostly wait
	for _, tc := range []struct {
		name     string
		snapshot func(t testing.TB) string
		flags    []string
		fresh    bool // expect new UIDs
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

// TestLiveMigration is the control: after Calico's own controller the same collector, observed in
// the same way, deletes the recorded objects. If it deleted nothing, TestMigrated could not fail.
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
