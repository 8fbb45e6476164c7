package renamenode_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/renamenode"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

const recorded = "../../testdata/calico/before.db.gz"

// renaming returns the transform for pairs OLD=NEW.
func renaming(t *testing.T, pairs ...string) transform.Transform {
	t.Helper()
	to, err := renamenode.Spec.New(t.Context(), &transform.Args{Rest: pairs})
	require.NoError(t, err)
	return to
}

// seeded creates objects, "KEY: OBJECT" in YAML, and plans another transform.
type seeded struct {
	objects string
	then    transform.Transform
}

func (s seeded) Plan(ctx context.Context, v *transform.View) error {
	objects := decoded(s.objects)
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		value, err := json.Marshal(objects[key])
		if err != nil {
			return err
		}
		if err := v.Create(ctx, []byte("/registry/"+key), value, 0); err != nil {
			return err
		}
	}
	return s.then.Plan(ctx, v)
}

func decoded(objects string) map[string]any {
	var out map[string]any
	if err := yaml.Unmarshal([]byte(objects), &out); err != nil {
		panic(err)
	}
	return out
}

// run runs a transform and returns the records of its output, without generations.
func run(t *testing.T, in string, to transform.Transform, allow ...string) (*transform.Report, map[string]any, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "after.db")
	report, err := transform.Run(t.Context(), transform.Options{Command: "test", In: in, Out: out, Allow: allow}, to)
	if err != nil {
		require.ErrorIs(t, err, transform.ErrRefused)
		return report, nil, ""
	}
	return report, records(t, out), out
}

func records(t *testing.T, path string) map[string]any {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	all := map[string]any{}
	for rec, err := range s.Live(t.Context(), []byte("/registry/")) {
		require.NoError(t, err)
		content, err := native.Decode(rec.Value)
		if err != nil {
			all[string(rec.Key)] = string(rec.Value)
			continue
		}
		if metadata, is := content["metadata"].(map[string]any); is {
			delete(metadata, "generation")
		}
		all[string(rec.Key)] = content
	}
	return all
}

// problems returns errors and warnings about old names of a report, as "code key".
func problems(r *transform.Report) (out []string) {
	for _, p := range r.Problems {
		if p.Level == finding.Error || p.Code.Name == "old-node-name" || p.Code.Name == "attachment-name" {
			out = append(out, p.Code.Name+" "+p.Key+": "+p.Reason)
		}
	}
	return out
}

// TestThereAndBack checks that a rename and its inverse, and a swap done twice, restore every
// record.
func TestThereAndBack(t *testing.T) {
	before := records(t, unpacked(t))
	for _, pairs := range [][2][]string{
		{{"node-a=edge-1", "node-b=edge-2"}, {"edge-2=node-b", "edge-1=node-a"}},
		{{"node-a=node-b", "node-b=node-a"}, {"node-a=node-b", "node-b=node-a"}},
		{{"node-a=node-b", "node-b=node-c"}, {"node-b=node-a", "node-c=node-b"}},
	} {
		there, changed, out := run(t, recorded, renaming(t, pairs[0]...))
		require.Equal(t, transform.Written, there.Outcome, "%v", there.Problems)
		require.NotEqual(t, before, changed)
		back, again, _ := run(t, out, renaming(t, pairs[1]...))
		require.Equal(t, transform.Written, back.Outcome)
		require.Equal(t, before, again)
	}
}

// unpacked returns the recorded snapshot, rewritten by a run without changes.
func unpacked(t *testing.T) string {
	t.Helper()
	_, _, out := run(t, recorded, seeded{then: nothing{}})
	return out
}

type nothing struct{}

func (nothing) Plan(context.Context, *transform.View) error { return nil }

func TestAgain(t *testing.T) {
	_, _, out := run(t, recorded, renaming(t, "node-a=edge-1"))
	report, _, _ := run(t, out, renaming(t, "node-a=edge-1"))
	require.Contains(t, strings.Join(problems(report), "\n"), "no-such-node /registry/minions/node-a")
}

func TestTaken(t *testing.T) {
	report, _, _ := run(t, recorded, renaming(t, "node-a=node-b"))
	require.Equal(t, transform.Refused, report.Outcome)
	require.Contains(t, strings.Join(problems(report), "\n"), "name-taken /registry/minions/node-a")
	require.NotContains(t, strings.Join(problems(report), "\n"), "old-node-name /registry/minions/node-a",
		"the name itself")
}

func TestUsage(t *testing.T) {
	for _, words := range [][]string{{"a"}, {"a="}, {"=b"}, {"a=a"}, {"a=b", "a=c"}, {"a=c", "b=c"}, {"A=b"},
		{"a=b_"}, nil} {
		_, err := renamenode.Spec.New(t.Context(), &transform.Args{Rest: words})
		require.ErrorAs(t, err, new(*transform.UsageError), "%q", words)
	}
}

// TestFields renames a node in one object of each kind; unchanged names are reported.
func TestFields(t *testing.T) {
	var before, after string
	for pair := range strings.SplitSeq(fields, "---\n") {
		was, is, changes := strings.Cut(pair, "# after\n")
		if before += was; !changes {
			is = was
		}
		after += is
	}
	report, all, _ := run(t, recorded, seeded{before, renaming(t, "node-a=edge-1")})
	require.Equal(t, transform.Written, report.Outcome, "%v", report.Problems)
	want := decoded(after)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		text, err := json.Marshal(want[key])
		require.NoError(t, err)
		object, err := native.Decode(text)
		require.NoError(t, err)
		require.Equal(t, object, all["/registry/"+key], key)
	}
	for key := range decoded(before) {
		if want[key] == nil {
			require.NotContains(t, all, "/registry/"+key)
		}
	}
	var named []string
	for _, line := range problems(report) {
		if strings.Contains(line, "/seeded") {
			named = append(named, line)
		}
	}
	require.Equal(t, []string{
		"attachment-name /registry/volumeattachments/seeded: it is not the name of a volume on the node node-a",
		"old-node-name /registry/configmaps/kube-system/seeded: data.nodeName",
		"old-node-name /registry/pods/kube-system/seeded: metadata.annotations.note, spec.containers[0].args[0]",
	}, named)
}

// fields are objects before and, if different, after the rename of node-a to edge-1, each with the
// end of its key.
const fields = `
csinodes/node-a: {apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: node-a, ownerReferences: [{apiVersion: v1, kind: Node, name: node-a, uid: u}]},
  spec: {drivers: [{name: d, nodeID: id, topologyKeys: [d/host, d/zone]}]}}
# after
csinodes/edge-1: {apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: edge-1, ownerReferences: [{apiVersion: v1, kind: Node, name: edge-1, uid: u}]},
  spec: {drivers: [{name: d, nodeID: id, topologyKeys: [d/host, d/zone]}]}}
---
leases/kube-node-lease/node-a: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: node-a, namespace: kube-node-lease}, spec: {holderIdentity: node-a}}
# after
leases/kube-node-lease/edge-1: {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: edge-1, namespace: kube-node-lease}, spec: {holderIdentity: edge-1}}
---
pods/kube-system/etcd-node-a: {apiVersion: v1, kind: Pod, metadata: {name: etcd-node-a, namespace: kube-system, annotations: {kubernetes.io/config.mirror: h},
  ownerReferences: [{apiVersion: v1, kind: Node, name: node-a, uid: u}]}, spec: {nodeName: node-a}}
# after
pods/kube-system/etcd-edge-1: {apiVersion: v1, kind: Pod, metadata: {name: etcd-edge-1, namespace: kube-system, annotations: {kubernetes.io/config.mirror: h},
  ownerReferences: [{apiVersion: v1, kind: Node, name: edge-1, uid: u}]}, spec: {nodeName: edge-1}}
---
pods/kube-system/seeded: {apiVersion: v1, kind: Pod, metadata: {name: seeded, namespace: kube-system, annotations: {note: on node-a}}, spec: {nodeName: node-a,
  nodeSelector: {kubernetes.io/hostname: node-a}, containers: [{name: c, args: [--name=node-a, --name=node-ab]}],
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-a]}]}]}}}}}
# after
pods/kube-system/seeded: {apiVersion: v1, kind: Pod, metadata: {name: seeded, namespace: kube-system, annotations: {note: on node-a}}, spec: {nodeName: edge-1,
  nodeSelector: {kubernetes.io/hostname: edge-1}, containers: [{name: c, args: [--name=node-a, --name=node-ab]}],
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [edge-1]}]}]}}}}}
---
controllerrevisions/default/c: {apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: c, namespace: default}, revision: 1,
  data: {spec: {template: {$patch: replace, spec: {nodeSelector: {kubernetes.io/hostname: node-a}}}}}}
# after
controllerrevisions/default/c: {apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: c, namespace: default}, revision: 1,
  data: {spec: {template: {$patch: replace, spec: {nodeSelector: {kubernetes.io/hostname: edge-1}}}}}}
---
persistentvolumes/local: {apiVersion: v1, kind: PersistentVolume, metadata: {name: local}, spec: {nodeAffinity: {required: {nodeSelectorTerms: [
  {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node-a, node-ab]}, {key: d/zone, operator: In, values: [node-ab]}]}]}}}}
# after
persistentvolumes/local: {apiVersion: v1, kind: PersistentVolume, metadata: {name: local}, spec: {nodeAffinity: {required: {nodeSelectorTerms: [
  {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [edge-1, node-ab]}, {key: d/zone, operator: In, values: [node-ab]}]}]}}}}
---
persistentvolumes/pv: {apiVersion: v1, kind: PersistentVolume, metadata: {name: pv}, spec: {csi: {driver: d, volumeHandle: vol}}}
---
persistentvolumeclaims/default/c: {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: default,
  annotations: {volume.kubernetes.io/selected-node: node-a}}, spec: {}}
# after
persistentvolumeclaims/default/c: {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: default,
  annotations: {volume.kubernetes.io/selected-node: edge-1}}, spec: {}}
---
volumeattachments/csi-3ae0233b35fd59e5e439076c1880c0b2b37278f5857f7fa33ad6ffb68ed3fb2b: {apiVersion: storage.k8s.io/v1, kind: VolumeAttachment,
  metadata: {name: csi-3ae0233b35fd59e5e439076c1880c0b2b37278f5857f7fa33ad6ffb68ed3fb2b}, spec: {attacher: d, nodeName: node-a, source: {persistentVolumeName: pv}}}
# after
volumeattachments/csi-f12f31f75507026ec2a480f1c12d2a08ebb02bc11d545ae10fe7b81585f9b33b: {apiVersion: storage.k8s.io/v1, kind: VolumeAttachment,
  metadata: {name: csi-f12f31f75507026ec2a480f1c12d2a08ebb02bc11d545ae10fe7b81585f9b33b}, spec: {attacher: d, nodeName: edge-1, source: {persistentVolumeName: pv}}}
---
volumeattachments/seeded: {apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: seeded}, spec: {attacher: d, nodeName: node-a, source: {persistentVolumeName: pv}}}
# after
volumeattachments/seeded: {apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: seeded}, spec: {attacher: d, nodeName: edge-1, source: {persistentVolumeName: pv}}}
---
endpointslices/kube-system/e: {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e, namespace: kube-system}, addressType: IPv4, endpoints: [
  {addresses: [10.0.0.1], nodeName: node-a, hints: {forNodes: [{name: node-a}]}, targetRef: {kind: Pod, namespace: kube-system, name: etcd-node-a}}]}
# after
endpointslices/kube-system/e: {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: e, namespace: kube-system}, addressType: IPv4, endpoints: [
  {addresses: [10.0.0.1], nodeName: edge-1, hints: {forNodes: [{name: edge-1}]}, targetRef: {kind: Pod, namespace: kube-system, name: etcd-edge-1}}]}
---
resourceslices/node-a-d-x: {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: node-a-d-x}, spec: {driver: d, nodeName: node-a, pool: {name: node-a}}}
# after
resourceslices/node-a-d-x: {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: node-a-d-x}, spec: {driver: d, nodeName: edge-1, pool: {name: edge-1}}}
---
resourceclaims/default/r: {apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: r, namespace: default}, spec: {},
  status: {allocation: {devices: {results: [{driver: d, pool: node-a, device: x, request: r}]}}}}
# after
resourceclaims/default/r: {apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: r, namespace: default}, spec: {},
  status: {allocation: {devices: {results: [{driver: d, pool: edge-1, device: x, request: r}]}}}}
---
csistoragecapacities/default/s: {apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: s, namespace: default}, storageClassName: c,
  nodeTopology: {matchLabels: {kubernetes.io/hostname: node-a}}}
# after
csistoragecapacities/default/s: {apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: s, namespace: default}, storageClassName: c,
  nodeTopology: {matchLabels: {kubernetes.io/hostname: edge-1}}}
---
clusterrolebindings/kubelets: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: kubelets},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: x}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:node-a"}]}
# after
clusterrolebindings/kubelets: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: kubelets},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: x}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:edge-1"}]}
---
configmaps/kube-system/seeded: {apiVersion: v1, kind: ConfigMap, metadata: {name: seeded, namespace: kube-system}, data: {nodeName: node-a, other: node-ab}}
---
events/default/seeded: {apiVersion: v1, kind: Event, metadata: {name: seeded, namespace: default}, involvedObject: {kind: Node, name: node-a}, source: {host: node-a}}
---
cilium.io/ciliumnodes/node-a: {apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: node-a, labels: {kubernetes.io/hostname: node-a},
  ownerReferences: [{apiVersion: v1, kind: Node, name: node-a, uid: u}]}, spec: {addresses: []}}
# after
cilium.io/ciliumnodes/edge-1: {apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: edge-1, labels: {kubernetes.io/hostname: edge-1},
  ownerReferences: [{apiVersion: v1, kind: Node, name: edge-1, uid: u}]}, spec: {addresses: []}}
`
