package rehearse

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/keys"
)

// keysAtOnce is how many keys are asked of etcd at a time.
const keysAtOnce = 10_000

// storedNames reads the names of objects from the keys in etcd, in their order, for
// tryOptions.Names. The prefix has no slash at its end.
func storedNames(client *clientv3.Client, prefix string) func(context.Context, schema.GroupResource) ([]objectName, error) {
	layout := keys.Kubernetes{Prefix: prefix}
	return func(ctx context.Context, of schema.GroupResource) (names []objectName, err error) {
		from := string(layout.Dir(of))
		end := clientv3.GetPrefixRangeEnd(from)
		for {
			answer, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(keysAtOnce))
			if err != nil {
				return nil, err
			}
			for _, record := range answer.Kvs {
				if key, err := layout.Parse(record.Key); err == nil {
					names = append(names, objectName{key.Namespace, key.Name})
				}
				from = string(record.Key) + "\x00"
			}
			if !answer.More {
				return names, nil
			}
		}
	}
}
