package rehearse

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
)

// collectOptions say where the collector works. Etcd, Prefix, Config and Start are required.
type collectOptions struct {
	Etcd   *clientv3.Client
	Prefix string       // of the keys, without a slash at its end
	Config *rest.Config // of the API server on it; it may create ConfigMaps in the namespace default

	// Start starts a kube-controller-manager with nothing but the garbage collector.
	Start func(context.Context) (process, error)
	// Decrypt decrypts a value of etcd; nil if no value is encrypted.
	Decrypt func(key, value []byte) ([]byte, error)
	Calm    time.Duration // how long to watch after the collector has proved that it works; 0 means ten seconds
	Timeout time.Duration // 0 means five minutes
}

// process is a running program, such as a *sandbox.Process.
type process interface {
	Done() <-chan struct{} // closed when it has ended
	Err() error            // how it ended
}

// collected is what the collector did.
type collected struct {
	Objects []touched // by resource, namespace and name; up to finding.MaxListed
	Count   int       // objects, including those beyond Objects
}

// touched is an object that the collector touched.
type touched struct {
	*finding.Finding // the key, and a reason that names the object and its owners

	Resource string
	objectName
	Did    deed
	Owners []encoding.OwnerReference // before it was touched
}

// deed is what the collector did with an object.
type deed string

// The deeds.
const (
	deleted  deed = "deleted"
	marked   deed = "marked for deletion" // finalizers hold it
	released deed = "released"            // owners that are gone were removed from its list
)

const (
	defaultCalm    = 10 * time.Second // for what the collector still has in its queues
	defaultTimeout = 5 * time.Minute
	canarySpace    = "default"
)

// collector watches a store while the garbage collector works on it.
type collector struct {
	collectOptions
	layout  keys.Kubernetes
	events  clientv3.WatchChan
	process process
	gone    map[string]bool // canaries that were deleted, by key
	canary  map[string]bool // all, by key
	objects map[string]touched
}

// collectGarbage starts the collector and watches it until it has done its first work. It really
// deletes objects from the store.
func collectGarbage(ctx context.Context, o collectOptions) (collected, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, defaultTimeout))
	defer cancel()
	c := &collector{collectOptions: o, layout: keys.Kubernetes{Prefix: o.Prefix},
		gone: map[string]bool{}, canary: map[string]bool{}, objects: map[string]touched{}}
	now, err := o.Etcd.Get(ctx, o.Prefix+"/", clientv3.WithCountOnly())
	if err != nil {
		return collected{}, err
	}
	c.events = o.Etcd.Watch(ctx, o.Prefix+"/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithFragment(), clientv3.WithRev(now.Header.Revision+1))
	first, err := c.makeCanary(ctx)
	if err != nil {
		return collected{}, err
	}
	if c.process, err = o.Start(ctx); err != nil {
		return collected{}, err
	}
	if err := c.watch(ctx, func() bool { return c.gone[first] }); err != nil {
		return collected{}, err
	}
	second, err := c.makeCanary(ctx)
	if err != nil {
		return collected{}, err
	}
	if err := c.watch(ctx, func() bool { return c.gone[second] }); err != nil {
		return collected{}, err
	}
	if err := c.watchCalm(ctx); err != nil {
		return collected{}, err
	}
	return c.result(), nil
}

// makeCanary makes an object whose owner does not exist, and returns its key.
func (c *collector) makeCanary(ctx context.Context) (string, error) {
	canary := v1.PartialObjectMetadata{
		TypeMeta: v1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: v1.ObjectMeta{GenerateName: "etcdshift-rehearsal-", Namespace: canarySpace, OwnerReferences: []v1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "etcdshift-rehearsal-gone", UID: "00000000-0000-4000-8000-000000000000",
		}}},
	}
	body, err := json.Marshal(canary)
	if err != nil {
		return "", err
	}
	client, err := newClient(c.Config)
	if err != nil {
		return "", err
	}
	made, err := client.Post().AbsPath("/api/v1/namespaces", canarySpace, "configmaps").SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("an object to see the garbage collector work: %w", err)
	}
	meta, err := encoding.ReadMeta(made)
	if err != nil {
		return "", err
	}
	key := string(c.layout.Format(keys.Key{Resource: configMaps(), Namespace: canarySpace, Name: meta.Name}))
	c.canary[key] = true
	return key, nil
}

// result sorts the objects.
func (c *collector) result() collected {
	result := collected{Count: len(c.objects)}
	for _, object := range c.objects {
		result.Objects = append(result.Objects, object)
	}
	slices.SortFunc(result.Objects, func(a, b touched) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	result.Objects = result.Objects[:min(len(result.Objects), finding.MaxListed)]
	return result
}
