package rehearse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/sandbox"
)

// collect lets the garbage collector have its first look.
func (r *rehearsal) collect(ctx context.Context) (string, error) {
	manager, err := r.releaseOf(ctx, r.ControllerManager)
	if err != nil {
		return "", err
	}
	r.Versions.ControllerManager = manager
	return r.firstLook(ctx)
}

// releaseOf is the release of a binary of Kubernetes, as it tells of itself.
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
			r.notChecked("what owns "+subject(o.Resource, o.objectName), "an aggregated API has the owner; without it, as here, it is "+string(o.Did))
			unsure++
			continue
		}
		r.Found.Add(o.Finding)
	}
	if more := result.Count - len(result.Objects); more > 0 {
		r.notChecked(fmt.Sprintf("%d more objects", more), "the garbage collector touches them too; the first are listed")
	}
	return fmt.Sprintf("%d objects are deleted or released, %d more not checked", result.Count-unsure, unsure), nil
}

// isAggregated is whether an API that was taken away to be asked by nobody has the owner.
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
