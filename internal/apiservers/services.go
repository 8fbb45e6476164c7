package apiservers

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// ServiceRange is the --service-cluster-ip-range of the servers that wrote a store, "" if it does
// not tell. A kube-apiserver refuses Services of an IP family that it has no range of.
func ServiceRange(ctx context.Context, store *clientv3.Client, prefix string, t *encryption.Transformers) string {
	read := func(gr schema.GroupResource, name string, field ...string) []string {
		key := keys.Kubernetes{Prefix: prefix}.Format(keys.Key{Prefix: prefix, Resource: gr, Name: name})
		got, err := store.Get(ctx, string(key))
		if err != nil || len(got.Kvs) == 0 {
			return nil
		}
		plain, _, err := t.Decrypt(ctx, gr, key, got.Kvs[0].Value)
		if err != nil {
			return nil
		}
		object, err := native.Decode(plain)
		if err != nil {
			return nil
		}
		if one, ok, _ := unstructured.NestedString(object, field...); ok && one != "" {
			return []string{one}
		}
		many, _, _ := unstructured.NestedStringSlice(object, field...)
		return many
	}
	ranges := read(schema.GroupResource{Group: "networking.k8s.io", Resource: "servicecidrs"}, "kubernetes", "spec", "cidrs")
	if len(ranges) == 0 { // before Kubernetes 1.33
		allocations := schema.GroupResource{Resource: "ranges"}
		ranges = append(read(allocations, "serviceips", "range"), read(allocations, "secondaryserviceips", "range")...)
	}
	return strings.Join(ranges, ",")
}
