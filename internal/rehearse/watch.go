package rehearse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

func configMaps() schema.GroupResource { return schema.GroupResource{Resource: "configmaps"} }

// errIdle is the error of a collector that does nothing.
var errIdle = errors.New("the garbage collector does not delete an object whose owner does not exist")

// watch reads what happens in etcd until done.
func (c *collector) watch(ctx context.Context, done func() bool) error {
	for !done() {
		if _, err := c.next(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// next reads the next changes, and returns the revision up to which it has read. It returns 0 when
// the timer fires.
func (c *collector) next(ctx context.Context, timer <-chan time.Time) (int64, error) {
	select {
	case answer, open := <-c.events:
		switch err := answer.Err(); {
		case ctx.Err() != nil:
			return 0, c.late(ctx)
		case err != nil:
			return 0, fmt.Errorf("watching etcd: %w", err)
		case !open:
			return 0, errors.New("watching etcd: it ended")
		}
		for _, event := range answer.Events {
			c.see(event)
		}
		return answer.Header.Revision, nil
	case <-c.process.Done():
		return 0, fmt.Errorf("kube-controller-manager ended: %w", c.process.Err())
	case <-timer:
		return 0, nil
	case <-ctx.Done():
		return 0, c.late(ctx)
	}
}

// late is the error of a context that ended.
func (c *collector) late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("after %[2]s: %[1]w", errIdle, cmp.Or(c.Timeout, defaultTimeout))
	}
	return ctx.Err()
}

// watchCalm watches for a while, then reads on to the revision that etcd has then.
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

// see keeps what a collector does to an object: it deletes it, marks it for deletion, or removes
// owners. Nothing else takes owners from an object here.
func (c *collector) see(event *clientv3.Event) {
	key := string(event.Kv.Key)
	if c.canary[key] {
		c.gone[key] = event.Type == clientv3.EventTypeDelete
		return
	}
	if event.PrevKv == nil {
		return // it was created
	}
	before, err := c.read(event.PrevKv.Key, event.PrevKv.Value)
	if event.Type == clientv3.EventTypeDelete {
		if err != nil || len(before.OwnerReferences) > 0 {
			c.keep(key, before, deleted, err)
		}
		return
	}
	if err != nil {
		return // a write of a value that cannot be read
	}
	after, err := c.read(event.Kv.Key, event.Kv.Value)
	switch {
	case err != nil || len(before.OwnerReferences) == 0:
	case before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero():
		c.keep(key, before, marked, nil)
	case len(after.OwnerReferences) < len(before.OwnerReferences):
		c.keep(key, before, released, nil)
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

// keep keeps the last deed of an object.
func (c *collector) keep(at string, meta encoding.Meta, did deed, unread error) {
	key, err := c.layout.Parse([]byte(at))
	if err != nil {
		return // none of an API server
	}
	o := touched{Resource: key.Resource.String(), objectName: objectName{key.Namespace, key.Name}, Did: did, Owners: meta.OwnerReferences}
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
