package calico

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

// bareRecords returns records with only the fields required by a server, so that all defaults are
// filled in, and some records with fields of old releases.
func bareRecords() []v1 {
	specs := []v1{
		{kind: "Tier"},
		{kind: "FelixConfiguration"},
		{kind: "BGPConfiguration", spec: `{"nodeMeshPassword":{"secretKeyRef":{"key":"k"}}}`},
		{kind: "KubeControllersConfiguration", spec: `{"controllers":{"loadBalancer":{},"migration":{}}}`},
		{kind: "IPPool", spec: `{"cidr":"10.9.0.0/24"}`},
		{kind: "IPReservation"},
		{kind: "BGPPeer", spec: `{"peerIP":"10.0.0.1","asNumber":64512,"password":{"secretKeyRef":{"key":"k"}}}`},
		{kind: "BGPFilter"},
		{kind: "GlobalNetworkPolicy", name: "default.bare"},
		{kind: "NetworkPolicy", namespace: "team-a"},
		{kind: "StagedGlobalNetworkPolicy"},
		{kind: "StagedNetworkPolicy", namespace: "team-a", meta: `"labels":{"projectcalico.org/tier":"stale"},`},
		{kind: "StagedKubernetesNetworkPolicy", namespace: "team-a", spec: `{"egress":[{}]}`},
		{kind: "HostEndpoint", spec: `{"node":"node-a","interfaceName":"eth0"}`},
		{kind: "GlobalNetworkSet",
			meta: `"generateName":"x-","finalizers":["a/b"],"deletionTimestamp":"2026-02-02T00:00:00Z",` +
				`"deletionGracePeriodSeconds":0,`,
			inner: `{"creationTimestamp":"2025-01-01T00:00:00Z","annotations":{"a":"b"}}`},
		{kind: "NetworkSet", namespace: "team-a", meta: `"generateName":"x-",`},
		{kind: "NetworkSet", namespace: "team-a", name: "inner",
			inner: `{"generateName":"y-","finalizers":["a/b"],"deletionTimestamp":"2026-02-02T00:00:00Z",` +
				`"deletionGracePeriodSeconds":0}`},
		{kind: "IPAMConfig"},
		{kind: "BlockAffinity", spec: `{"cidr":"10.9.0.0/26","node":"n","state":"confirmed"}`},
		{kind: "IPAMBlock", name: "10-9-0-0-32", spec: `{"cidr":"10.9.0.0/32","allocations":[null]}`},
		{kind: "IPAMBlock", name: "10-9-0-1-31", spec: `{"cidr":"10.9.0.3/31","allocations":[null,null]}`},
		{kind: "IPAMHandle", name: "h", spec: `{"handleID":"H"}`},
		{kind: "CalicoNodeStatus", spec: `{"node":"n","classes":["BGP"],"updatePeriodSeconds":10}`},
		{kind: "ClusterInformation"},
	}
	for i := range specs {
		r := &specs[i]
		r.uid = fmt.Sprintf("bbbbbb%02d-0000-4000-8000-000000000000", i)
		if r.name == "" {
			r.name = "bare"
		}
		if r.inner == "" {
			r.inner = "{}"
		}
	}
	return specs
}

// documentedChanges reads the tables of the page about differences between v1 and v3 records. Each
// row is a "kind path", with kind "all" for rows about every kind.
func documentedChanges(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "calico-v3-records.md"))
	require.NoError(t, err)
	out := map[string]bool{}
	names := regexp.MustCompile("`[^`]+`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") {
			continue
		}
		for kind := range strings.SplitSeq(cells[1], ",") {
			for _, at := range names.FindAllString(cells[2], -1) {
				out[strings.TrimSpace(kind)+" "+strings.Trim(at, "`")] = true
			}
		}
	}
	return out
}

// changesOf lists the differences between the v3 records of a run and their v1 records as "kind
// path", without those reported as unknown-field.
func changesOf(t *testing.T, r result) []string {
	t.Helper()
	byUID := map[string]string{}
	for key, value := range r.in {
		if strings.HasPrefix(key, recordsV1) {
			byUID[at(exactJSON(t, value).(map[string]any), "metadata", "uid").(string)] = key
		}
	}
	var out []string
	for _, u := range r.UIDs {
		before := byUID[u.Stored]
		k := kinds()[slices.IndexFunc(kinds(), func(k *kind) bool { return k.Kind == u.Kind })]
		after := strings.TrimSuffix(recordsV3+k.Plural+"/"+u.Namespace, "/") + "/" + u.Name
		require.Contains(t, r.in, before)
		require.Contains(t, r.out, after)
		for _, path := range diffJSON(t, r.in[before], r.out[after]) {
			if fields := strings.SplitN(path, ".", 3); fields[0] == "metadata" {
				path = strings.Split(fields[0]+"."+fields[1], "[")[0]
			}
			if !r.pruned(before, path) {
				out = append(out, u.Kind+" "+path)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r result) pruned(key, path string) bool {
	return slices.ContainsFunc(r.Problems, func(p finding.Finding) bool {
		return p.Key == key && p.Code.Name == codePrunedField.Name && strings.Contains(p.Reason, path)
	})
}

// TestChangesDocumented: the documentation lists exactly the differences between v1 and v3 records,
// by kind.
func TestChangesDocumented(t *testing.T) {
	got := planOn(t, recorded(t, "before.db"), New(Options{}))
	require.NoError(t, got.err, "%v", got.Problems)
	bare := migrateRecords(t, Options{}, bareRecords()...)
	require.NoError(t, bare.err, "%v", bare.Problems)
	table := documentedChanges(t)
	unused := map[string]bool{}
	for row := range table {
		unused[row] = true
	}
	for _, change := range append(changesOf(t, got), changesOf(t, bare)...) {
		_, path, _ := strings.Cut(change, " ")
		assert.True(t, table[change] || table["all "+path], "not in docs/reference/calico-v3-records.md: %s", change)
		delete(unused, change)
		delete(unused, "all "+path)
	}
	require.Empty(t, unused, "documented, and seen in no record")
}
