package rehearse

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
)

// attempts is how often an object is updated that something else changes at the same time.
const attempts = 3

// sample spreads the objects that are tried evenly over the list. The next one stands in for an
// object that cannot be tried.
type sample struct{ most, total, seen, taken int }

// due counts one more object, and tells whether it is to be tried.
func (s *sample) due() bool {
	s.seen++
	return s.taken < s.most && (s.total <= s.most || s.taken*s.total < s.seen*s.most)
}

// writeSome tries the objects that are due, at the version for writes.
func (r *runner) writeSome(ctx context.Context, k *kind, version string, items []json.RawMessage, s *sample) error {
	if version != k.version {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.Workers)
	for _, item := range items {
		if !s.due() {
			continue
		}
		meta, err := encoding.ReadMeta(item)
		if err != nil {
			return err
		}
		name := objectName{meta.Namespace, meta.Name}
		switch {
		case r.isMisplaced(k, name, item):
			continue
		case !meta.DeletionTimestamp.IsZero():
			k.Terminating++
			continue
		}
		s.taken++
		k.Tried++
		group.Go(func() error { return r.write(ctx, k, name, item) })
	}
	return group.Wait()
}

// isMisplaced tells whether a listed object is one of tryOptions.Misplaced.
func (r *runner) isMisplaced(k *kind, name objectName, item []byte) bool {
	if len(r.Misplaced) == 0 {
		return false
	}
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	err := json.Unmarshal(item, &o)
	return err == nil && r.Misplaced[misplacedObject{k.Resource, name, o.Metadata.ResourceVersion}]
}

// write tries an update and an apply.
func (r *runner) write(ctx context.Context, k *kind, name objectName, item []byte) error {
	for _, try := range []struct {
		verb string // of discovery
		name string
		code *finding.Code
		send func() error
	}{
		{"update", "update", codeUpdate, func() error { return r.update(ctx, k, name, item) }},
		{"patch", "apply", codeApply, func() error { return r.apply(ctx, k, name) }},
	} {
		if !k.can(try.verb) {
			continue
		}
		err := name.check()
		if err == nil {
			err = try.send()
		}
		switch refusal := refusalOf(err); {
		case apierrors.IsNotFound(err) && try.verb == "update": // something deleted it since; an apply would create it
			k.Lock()
			k.Tried--
			k.Unlock()
			return nil
		case refusal != nil:
			r.record(k, try.code, name, k.version, try.name, refusal)
		case err != nil:
			return err
		}
	}
	return nil
}

// check refuses a name that would lead to another path: no server makes one.
func (n objectName) check() error {
	if wrong := slices.Concat(path.IsValidPathSegmentName(n.Namespace), path.IsValidPathSegmentName(n.Name)); len(wrong) > 0 {
		return apierrors.NewBadRequest("no request can name it: it " + strings.Join(wrong, ", "))
	}
	return nil
}

// update puts an object back as it was read.
func (r *runner) update(ctx context.Context, k *kind, name objectName, item []byte) (err error) {
	for range attempts {
		_, err = r.do(ctx, dryRun(r.client.Put(), k, name).SetHeader("Content-Type", "application/json").Body(item))
		if !apierrors.IsConflict(err) {
			return err
		}
		if item, err = r.do(ctx, r.get(k, k.version, name)); err != nil {
			return err
		}
	}
	return err
}

// apply is a server-side apply that names no field, without force.
func (r *runner) apply(ctx context.Context, k *kind, name objectName) error {
	identity := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	identity.SetGroupVersionKind(k.at(k.version).GroupVersion().WithKind(k.name))
	body, _ := json.Marshal(identity) // strings alone
	_, err := r.do(ctx, dryRun(r.client.Patch(types.ApplyYAMLPatchType), k, name).Body(body))
	return err
}

// dryRun completes a write. The answer is metadata alone, which costs less.
func dryRun(request *rest.Request, k *kind, name objectName) *rest.Request {
	return request.AbsPath(k.path(k.version, name)...).Param("dryRun", "All").Param("fieldManager", manager).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
}
