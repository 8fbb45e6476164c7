package calico

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

const (
	migrationUID  = "9387484f-78ef-4304-95a0-5349c48164fb"
	lockV1        = recordsV1 + "clusterinformations/default"
	lockV3        = recordsV3 + "clusterinformations/default"
	apiServiceKey = "/registry/apiregistration.k8s.io/apiservices/v3.projectcalico.org"
	blockKey      = "ipamblocks/192-168-174-128-26"
)

func abortOf(t *testing.T, path string, allow ...string) result {
	t.Helper()
	return planOn(t, path, New(Options{Abort: true, SetAPIGroup: true}), allow...)
}

// completed returns after.db: the live migration is complete, and the clean-up has not begun.
func completed(t *testing.T) *input { return &input{t: t, from: recorded(t, "after.db")} }

// objectOf parses a stored JSON object.
func objectOf(t *testing.T, value string) (obj map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(value), &obj))
	return obj
}

// TestAbort aborts the real controller's finished migration and compares each record with the state
// before the migration.
func TestAbort(t *testing.T) {
	got := abortOf(t, recorded(t, "after.db"))
	require.NoError(t, got.err, "%v", got.Problems)
	require.Empty(t, got.problems())
	before := contents(t, recorded(t, "before.db"))

	var differ []string
	for key, value := range before {
		if got.out[key] != value {
			differ = append(differ, key)
		}
	}
	for key := range got.out {
		if _, there := before[key]; !there {
			differ = append(differ, "+"+key)
		}
	}
	slices.Sort(differ)
	require.Equal(t, []string{
		"+/registry/daemonsets/calico-system/calico-node", // from the rollout of the recording
		apiServiceKey, // created again, with a new UID and time
		lockV1,        // locked and unlocked: two generations later
		"/registry/leases/kube-system/apiserver-wlv32tlttr4jl3gtroqexyxapa", // the API server's own
		"/registry/masterleases/127.0.0.1",
		"/registry/peerserverleases/apiserver-wlv32tlttr4jl3gtroqexyxapa",
	}, differ)

	service, was := objectOf(t, got.out[apiServiceKey]), objectOf(t, before[apiServiceKey])
	require.Equal(t, was["spec"], service["spec"])
	require.Equal(t, "apiregistration.k8s.io/v1", service["apiVersion"])
	require.NotEmpty(t, at(service, "metadata", "uid"))
	lock, was := objectOf(t, got.out[lockV1]), objectOf(t, before[lockV1])
	require.Equal(t, was["spec"], lock["spec"])
	require.EqualValues(t, 3, at(lock, "metadata", "generation"))
	require.NotContains(t, got.out["/registry/daemonsets/calico-system/calico-node"], apiVersionV3)
	require.Equal(t, transform.Changes{Updated: 3, Deleted: 64}, got.Changes)
	require.Equal(t, 7, got.count("IPAMBlock").Migrated)

	again := abortOf(t, got.Output.Path)
	require.Contains(t, again.reason(t, codeAbortImpossible.Name, ""), "no DatastoreMigration v1-to-v3")
}

// TestAbortIsMigrated: the aborted snapshot can be migrated like the original one.
func TestAbortIsMigrated(t *testing.T) {
	back := abortOf(t, recorded(t, "after.db"))
	require.NoError(t, back.err)
	again := planOn(t, back.Output.Path, New(Options{}))
	require.NoError(t, again.err, "%v", again.Problems)
	fresh := planOn(t, recorded(t, "before.db"), New(Options{}))
	for key, value := range fresh.out {
		if strings.HasPrefix(key, recordsV3) {
			require.Equal(t, value, again.out[key], key)
		}
	}
}

// TestAbortImpossible: during and after the clean-up, the v1 data is incomplete or gone.
func TestAbortImpossible(t *testing.T) {
	got := abortOf(t, recorded(t, "after-cleanup.db"), codeAbortLoses.Name)
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeAbortImpossible.Name, ""), "has deleted")

	in := completed(t)
	in.edit(crdDir+"tiers.crd.projectcalico.org",
		func(obj map[string]any) { set(obj, "metadata.deletionTimestamp", "2026-11-20T19:30:00Z") })
	got = abortOf(t, in.write())
	require.ErrorIs(t, got.err, transform.ErrRefused)
	require.Contains(t, got.reason(t, codeAbortImpossible.Name, crdDir+"tiers.crd.projectcalico.org"), "being deleted")

	in = completed(t)
	in.delPrefix(crdDir)
	got = abortOf(t, in.write())
	require.Contains(t, got.reason(t, codeAbortImpossible.Name, migrationKey), "the v1 data is gone")
}

// TestAbortLoses: a change made on v3 after the copy refuses the abort. If allowed, the report
// keeps the change.
func TestAbortLoses(t *testing.T) {
	in := completed(t)
	made := recordsV3 + "ipamhandles/k8s-pod-network.new"
	in.put(made, []byte(strings.Replace(string(there("IPAMHandle", "k8s-pod-network.new", "", `{}`)), "2026-03-03",
		"2026-12-01", 1)))
	old := recordsV3 + "tiers/old"
	in.put(old, there("Tier", "old", "", `{}`))
	in.edit(recordsV3+blockKey, func(obj map[string]any) { set(obj, "metadata.generation", 2) })
	in.edit(recordsV3+"ippools/lb-pool", func(obj map[string]any) {
		set(obj, "metadata.deletionTimestamp",
			"2026-12-01T00:00:00Z")
	})
	in.del(recordsV3 + "networkpolicies/team-a/allow-web")
	in.del(recordsV1 + "tiers/no-order")
	path := in.write()

	got := abortOf(t, path)
	require.ErrorIs(t, got.err, transform.ErrRefused)
	for key, says := range map[string]string{
		made:                          "made on v3",
		recordsV3 + blockKey:          "generation 2",
		recordsV3 + "ippools/lb-pool": "being deleted on v3",
		recordsV3 + "tiers/no-order":  "v1 record is not there",
		recordsV1 + "networkpolicies/team-a/allow-web": "deleted after the copy",
	} {
		require.Contains(t, got.reason(t, codeAbortLoses.Name, key), says)
	}
	require.True(t, got.has(finding.Warning, codeMigrationLeft.Name, old))

	got = abortOf(t, path, codeAbortLoses.Name)
	require.NoError(t, got.err)
	require.Contains(t, got.Saved, recordsV3+blockKey)
	require.Equal(t, []string{made, old}, slices.Sorted(keysBelow(got.out, recordsV3)))
}

// TestAbortInPhases: abort takes back only the finished actions of the controller.
func TestAbortInPhases(t *testing.T) {
	const when = "2026-11-20T19:28:38Z"
	for name, tc := range map[string]struct {
		status map[string]any
		ready  bool // expected state of the v1 datastore, locked before
	}{
		"not begun": {map[string]any{"phase": "Pending"}, false},
		// the live abort leaves the datastore locked
		"draining":   {map[string]any{"phase": "Pending", "datastoreLockedAt": when}, true},
		"conflicts":  {map[string]any{"phase": "WaitingForConflictResolution", "datastoreLockedAt": when}, true},
		"copying":    {map[string]any{"phase": "Migrating", "datastoreLockedAt": when, "startedAt": when}, true},
		"rolled out": {map[string]any{"phase": "Converged", "startedAt": when}, true},
		"failed":     {map[string]any{"phase": "Failed", "startedAt": when}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.put(migrationKey, migrationObject(t, "v1-to-v3", tc.status))
			in.edit(lockV1, func(obj map[string]any) { set(obj, "spec.datastoreReady", false) })
			got := abortOf(t, in.write(), codeAbortLoses.Name)
			require.NoError(t, got.err, "%v", got.Problems)
			require.Equal(t, tc.ready, at(objectOf(t, got.out[lockV1]), "spec", "datastoreReady"))
			require.NotContains(t, got.out, migrationKey)
			require.Equal(t, got.in[apiServiceKey], got.out[apiServiceKey], "it was not removed yet")
		})
	}
}

// TestAbortOfOldMarks: Calico 3.32.0 marked its objects with the migration's name.
func TestAbortOfOldMarks(t *testing.T) {
	in := completed(t)
	in.edit(recordsV3+"tiers/security", func(obj map[string]any) {
		obj["metadata"].(map[string]any)["annotations"].(map[string]any)[migratedByAnnotation] = migrationName
	})
	other := recordsV3 + "tiers/no-order"
	in.edit(other, func(obj map[string]any) {
		obj["metadata"].(map[string]any)["annotations"].(map[string]any)[migratedByAnnotation] = thereUID
		set(obj, "metadata.creationTimestamp", "2026-11-01T00:00:00Z")
	})
	got := abortOf(t, in.write())
	require.NoError(t, got.err, "%v", got.Problems)
	require.NotContains(t, got.out, recordsV3+"tiers/security")
	require.Contains(t, got.out, other, "another migration made it")
	require.True(t, got.has(finding.Warning, codeMigrationLeft.Name, other))
}

// TestAbortReleases: a v3 ClusterInformation from before the migration becomes ready.
func TestAbortReleases(t *testing.T) {
	in := completed(t)
	in.put(lockV3, there("ClusterInformation", "default", `"annotations":{"`+lockedByAnnotation+`":"`+migrationUID+
		`"},`, `{"datastoreReady":false}`))
	got := abortOf(t, in.write())
	require.NoError(t, got.err, "%v", got.Problems)
	lock := got.written(t, lockV3)
	require.Equal(t, true, at(lock, "spec", "datastoreReady"))
	require.Empty(t, at(lock, "metadata", "annotations"))
	require.EqualValues(t, 5, at(lock, "metadata", "generation"))
}

// TestAbortAPIService: an APIService without a readable saved copy is a manual step.
func TestAbortAPIService(t *testing.T) {
	for saved, says := range map[string]string{
		"-": "",
		"{": finding.Undecodable.Name,
		`{"metadata":{"name":"v1.apps"},"spec":{"service":{"name":"evil"}}}`: finding.Undecodable.Name,
	} {
		in := completed(t)
		in.edit(migrationKey, func(obj map[string]any) {
			annotations := obj["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations[savedAPIService] = saved; saved == "-" {
				delete(annotations, savedAPIService)
			}
		})
		got := abortOf(t, in.write(), finding.Undecodable.Name)
		require.NoError(t, got.err, "%v", got.Problems)
		require.Equal(t, got.in[apiServiceKey], got.out[apiServiceKey])
		require.Contains(t, strings.Join(got.Steps, "\n"), "apply APIService v3.projectcalico.org")
		require.Equal(t, says != "", got.has(finding.Error, says, migrationKey) ||
			got.has(finding.Warning, says, migrationKey))
	}
}

// TestAbortOwners: an object made on v3 names its owner by the UID seen by v1 clients.
func TestAbortOwners(t *testing.T) {
	in := completed(t)
	after := contents(t, in.from)
	uid := uidOfJSON(t, after[recordsV3+"globalnetworkpolicies/allow-dns"])
	key := recordsV3 + "globalnetworksets/mine"
	in.put(key, there("GlobalNetworkSet", "mine", `"ownerReferences":[`+ref(apiVersionV3, "GlobalNetworkPolicy",
		"allow-dns", uid)+`],`, `{}`))
	got := abortOf(t, in.write())
	require.NoError(t, got.err, "%v", got.Problems)
	raw := uidOfJSON(t, after[recordsV1+"globalnetworkpolicies/allow-dns"])
	seen, err := ConvertUID(raw)
	require.NoError(t, err)
	require.Equal(t, seen, at(got.written(t, key), "metadata", "ownerReferences").([]any)[0].(map[string]any)["uid"])
	require.Len(t, got.References, 1)
}

// keysBelow yields the keys with the given prefix.
func keysBelow(records map[string]string, prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range records {
			if strings.HasPrefix(key, prefix) && !yield(key) {
				return
			}
		}
	}
}
