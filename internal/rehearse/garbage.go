package rehearse

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/keys"
)

// collect waits for the first look of the garbage collector.
func (r *rehearsal) collect(ctx context.Context) (string, error) {
	manager, err := r.releaseOf(ctx, r.ControllerManager)
	if err != nil {
		return "", err
	}
	r.Versions.ControllerManager = manager
	return r.firstLook(ctx)
}

// releaseOf returns the release printed by a Kubernetes binary.
func (r *rehearsal) releaseOf(ctx context.Context, binary string) (string, error) {
	p, err := r.box.Command(ctx, "version", binary, "--version")
	if err == nil {
		err = p.Wait(ctx)
	}
	if errors.As(err, new(*sandbox.Died)) {
		return "", codeServer.Because("%s", err)
	} else if err != nil {
		return "", err
	}
	said, err := os.ReadFile(p.Log())
	return strings.TrimPrefix(strings.TrimSpace(string(said)), "Kubernetes v"), err
}

// firstLook runs the garbage collector until it has looked at everything.
func (r *rehearsal) firstLook(ctx context.Context) (string, error) {
	var manager *sandbox.Process
	result, err := collectGarbage(ctx, collectOptions{
		Etcd: r.cluster.Client(), Prefix: r.storage.Prefix, Config: r.server.Config, Decrypt: r.decrypt,
		Start: func(ctx context.Context) (process, error) {
			var err error
			manager, err = r.server.Collect(ctx, r.box, r.ControllerManager)
			return manager, err
		},
	})
	if manager != nil {
		manager.Stop(ctx)
	}
	if errors.As(err, new(*sandbox.Died)) {
		return "", codeServer.Because("%s", err)
	} else if err != nil {
		return "", err
	}
	unsure := 0
	for _, o := range result.Objects {
		if slices.ContainsFunc(o.Owners, r.isAggregated) {
			r.notChecked("what owns "+subject(o.Resource, o.objectName),
				"an aggregated API has the owner; without it, as here, it is "+string(o.Did))
			unsure++
			continue
		}
		r.Found.Add(o.Finding)
	}
	if more := result.Count - len(result.Objects); more > 0 {
		r.notChecked(fmt.Sprintf("%d more objects", more),
			"the garbage collector touches them too; the first are listed")
	}
	return fmt.Sprintf("%d objects are deleted or released, %d more not checked", result.Count-unsure, unsure), nil
}

// isAggregated reports whether the owner's API was removed to isolate the server.
func (r *rehearsal) isAggregated(owner encoding.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && slices.Contains(r.aggregated, gv.Version+"."+gv.Group)
}

// decrypt decrypts a value of etcd.
func (r *rehearsal) decrypt(key, value []byte) ([]byte, error) {
	resource, err := r.reader.Resource(context.Background(), key)
	if err != nil {
		resource = schema.GroupResource{}
	}
	plain, _, err := r.Transformers.Decrypt(context.Background(), resource, key, value)
	return plain, err
}

// collectOptions configures collectGarbage. Etcd, Prefix, Config and Start are required.
type collectOptions struct {
	Etcd   *clientv3.Client
	Prefix string       // of the keys, without a slash at its end
	Config *rest.Config // of the API server on Etcd; it may create ConfigMaps in the namespace default

	// Start starts a kube-controller-manager with only the garbage collector.
	Start func(context.Context) (process, error)
	// Decrypt decrypts a value of etcd; nil if no value is encrypted.
	Decrypt func(key, value []byte) ([]byte, error)
	Calm    time.Duration // time to watch after the proofs; 0 means ten seconds
	Timeout time.Duration // 0 means five minutes
}

// process is a running program, such as a *sandbox.Process.
type process interface {
	Done() <-chan struct{} // closed at its end
	Err() error            // error of its end
}

// collected is the result of the collector.
type collected struct {
	Objects []touched // by resource, namespace and name; up to finding.MaxListed
	Count   int       // objects, including those beyond Objects
}

// touched is an object changed or deleted by the collector.
type touched struct {
	*finding.Finding // the key, and a reason that names the object and its owners

	Resource string
	objectName
	Did    deed
	Owners []encoding.OwnerReference // before the change
}

// deed is an action of the collector on an object.
type deed string

// The deeds.
const (
	deleted  deed = "deleted"
	marked   deed = "marked for deletion" // finalizers block the deletion
	released deed = "released"            // missing owners were removed from its list
)

const (
	defaultCalm    = 10 * time.Second // for the queues of the collector
	defaultTimeout = 5 * time.Minute
	canarySpace    = "default"
)

// collector watches a store during garbage collection.
type collector struct {
	collectOptions
	layout  keys.Kubernetes
	events  clientv3.WatchChan
	process process
	gone    map[string]bool // deleted canaries, by key
	canary  map[string]bool // all canaries, by key
	objects map[string]touched
}

// collectGarbage starts the collector and watches it until the end of its first work. It really
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
	c.events = o.Etcd.Watch(ctx, o.Prefix+"/", clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithFragment(),
		clientv3.WithRev(now.Header.Revision+1))
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

// makeCanary creates an object with a missing owner, and returns its key.
func (c *collector) makeCanary(ctx context.Context) (string, error) {
	canary := v1.PartialObjectMetadata{
		TypeMeta: v1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: v1.ObjectMeta{GenerateName: "etcdshift-rehearsal-", Namespace: canarySpace,
			OwnerReferences: []v1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "etcdshift-rehearsal-gone",
				UID: "00000000-0000-4000-8000-000000000000",
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
	made, err := client.Post().AbsPath("/api/v1/namespaces", canarySpace, "configmaps").SetHeader("Content-Type",
		"application/json").Body(body).Do(ctx).Raw()
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

// result returns the sorted objects.
func (c *collector) result() collected {
	result := collected{Count: len(c.objects)}
	for _, object := range c.objects {
		result.Objects = append(result.Objects, object)
	}
	slices.SortFunc(result.Objects, func(a, b touched) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	result.Objects = result.Objects[:min(len(result.Objects), finding.MaxListed)]
	return result
}

func configMaps() schema.GroupResource { return schema.GroupResource{Resource: "configmaps"} }

// errIdle is the error of a collector that does nothing.
var errIdle = errors.New("the garbage collector does not delete an object whose owner does not exist")

// watch reads events of etcd until done.
func (c *collector) watch(ctx context.Context, done func() bool) error {
	for !done() {
		if _, err := c.next(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// next reads the next changes, and returns the revision read so far, or 0 when the timer fires.
func (c *collector) next(ctx context.Context, timer <-chan time.Time) (int64, error) {
	select {
	case answer, open := <-c.events:
		switch err := answer.Err(); {
		case ctx.Err() != nil:
			return 0, c.contextError(ctx)
		case err != nil:
			return 0, fmt.Errorf("watching etcd: %w", err)
		case !open:
			return 0, errors.New("watching etcd: it ended")
		}
		for _, event := range answer.Events {
			c.observe(event)
		}
		return answer.Header.Revision, nil
	case <-c.process.Done():
		return 0, fmt.Errorf("kube-controller-manager ended: %w", c.process.Err())
	case <-timer:
		return 0, nil
	case <-ctx.Done():
		return 0, c.contextError(ctx)
	}
}

// contextError returns the error of an ended context.
func (c *collector) contextError(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("after %[2]s: %[1]w", errIdle, cmp.Or(c.Timeout, defaultTimeout))
	}
	return ctx.Err()
}

// watchCalm watches for a while, then reads on to the current revision of etcd.
func (c *collector) watchCalm(ctx context.Context) error {
	timer := time.After(cmp.Or(c.Calm, defaultCalm))
	for {
		revision, err := c.next(ctx, timer)
		if err != nil {
			return err
		}
		if revision == 0 {
			break
		}
	}
	now, err := c.Etcd.Get(ctx, c.Prefix+"/", clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	for seen := int64(0); seen < now.Header.Revision; {
		if err := c.Etcd.RequestProgress(ctx); err != nil {
			return err
		}
		if seen, err = c.next(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// observe records an action of a collector on an object: a deletion, a mark for deletion, or the
// removal of owners. Nothing else removes owners in this store.
func (c *collector) observe(event *clientv3.Event) {
	key := string(event.Kv.Key)
	if c.canary[key] {
		c.gone[key] = event.Type == clientv3.EventTypeDelete
		return
	}
	if event.PrevKv == nil {
		return // the event is a creation
	}
	before, err := c.read(event.PrevKv.Key, event.PrevKv.Value)
	if event.Type == clientv3.EventTypeDelete {
		if err != nil || len(before.OwnerReferences) > 0 {
			c.recordDeed(key, before, deleted, err)
		}
		return
	}
	if err != nil {
		return // a write of an unreadable value
	}
	after, err := c.read(event.Kv.Key, event.Kv.Value)
	switch {
	case err != nil || len(before.OwnerReferences) == 0:
	case before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero():
		c.recordDeed(key, before, marked, nil)
	case len(after.OwnerReferences) < len(before.OwnerReferences):
		c.recordDeed(key, before, released, nil)
	}
}

// read reads the metadata of a value.
func (c *collector) read(key, value []byte) (encoding.Meta, error) {
	if c.Decrypt != nil {
		plain, err := c.Decrypt(key, value)
		if err != nil {
			return encoding.Meta{}, err
		}
		value = plain
	}
	return encoding.ReadMeta(value)
}

// recordDeed records the last action on an object.
func (c *collector) recordDeed(at string, meta encoding.Meta, did deed, unread error) {
	key, err := c.layout.Parse([]byte(at))
	if err != nil {
		return // no key of an API server
	}
	o := touched{Resource: key.Resource.String(), objectName: objectName{key.Namespace, key.Name}, Did: did,
		Owners: meta.OwnerReferences}
	why := "its owners are " + owners(meta)
	if unread != nil {
		why = fmt.Sprintf("its owners cannot be read: %v", unread)
	}
	o.Finding = codeCollected.Because("%s; %s", did, why).At(at)
	c.objects[at] = o
}

// owners lists the owners of an object.
func owners(meta encoding.Meta) string {
	var list []string
	for _, owner := range meta.OwnerReferences {
		list = append(list, fmt.Sprintf("%s %s %s (%s)", owner.APIVersion, owner.Kind, owner.Name, owner.UID))
	}
	return strings.Join(list, ", ")
}
