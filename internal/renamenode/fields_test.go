package renamenode_test

// fields are objects before and, where it differs, after node-a is edge-1; with the end of their
// keys.
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
