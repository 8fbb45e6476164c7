package encryption

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// storedBare reports whether kube-apiserver stores the records of gr in plaintext under any
// configuration, even "*.*". Their storage uses the plain StorageFactory, without transformers
// (k8s.io/apiserver pkg/server/options/etcd.go), and no configuration may name them
// (nonRESTAPIResourceErr). The names come from etcd paths; these are no resources of the API.
//
// CRDs, APIServices and, since Kubernetes 1.26, custom resources are encrypted.
func storedBare(gr schema.GroupResource) bool {
	return gr.Group == "" && slices.Contains([]string{
		"masterleases",     // k8s.io/kubernetes pkg/controlplane/instance.go
		"peerserverleases", // pkg/controlplane/apiserver/peer.go
		"ranges",           // IPs and node ports: pkg/registry/core/rest/storage_core.go
		"",                 // compact_rev_key: k8s.io/apiserver pkg/storage/etcd3/compact.go
	}, gr.Resource)
}

// storageResource returns the resource by which the server chooses a transformer. It differs from
// gr where two groups serve one place in etcd: k8s.io/kubernetes
// pkg/kubeapiserver/default_storage_factory_builder.go, AddCohabitatingResources. Without this, a
// rule for "events" would miss events.k8s.io.
func storageResource(gr schema.GroupResource) schema.GroupResource {
	group := gr.Group
	switch gr.String() {
	case "events.events.k8s.io", "replicationcontrollers.extensions":
		group = ""
	case "deployments.extensions", "daemonsets.extensions", "replicasets.extensions":
		group = "apps"
	case "networkpolicies.extensions", "ingresses.extensions":
		group = "networking.k8s.io"
	case "podsecuritypolicies.extensions":
		group = "policy"
	}
	return schema.GroupResource{Group: group, Resource: gr.Resource}
}
