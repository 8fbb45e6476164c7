package rehearse

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
)

const (
	firstPage = 20  // objects of the first page, before their size is known
	largePage = 500 // maximum objects of a page, as in kubectl
	manyNames = 100 // objects read individually before the first try
)

// page is one answer to a list.
type page struct {
	Metadata struct {
		Continue           string
		RemainingItemCount int
	}
	Items []json.RawMessage
}

// try lists a kind at all its versions, and tries writes at one of them.
func (r *runner) try(ctx context.Context, k *kind) error {
	if k.NotChecked == "" && len(k.served) == 0 {
		k.NotChecked = "no version is served"
	}
	if k.NotChecked != "" {
		return nil
	}
	group, within := errgroup.WithContext(ctx)
	for _, version := range k.served {
		group.Go(func() error { return r.list(within, k, version) })
	}
	err := group.Wait()
	slices.Sort(k.Listed)
	return err
}

// list lists a kind at one version.
func (r *runner) list(ctx context.Context, k *kind, version string) error {
	objects, sample := 0, &sample{most: r.Sample}
	err := r.pages(ctx, k, version, func(p page) error {
		objects += len(p.Items)
		sample.total = objects + p.Metadata.RemainingItemCount
		return r.writeSome(ctx, k, version, p.Items, sample)
	})
	if refusal := refusalOf(err); refusal != nil {
		return r.readEach(ctx, k, version, objects, sample, refusal)
	}
	k.listed(version, objects, err == nil)
	return err
}

// pages reads a list page by page. Pages shrink while objects are large.
func (r *runner) pages(ctx context.Context, k *kind, version string, each func(page) error) error {
	limit, next := firstPage, ""
	for {
		request := r.get(k, version, objectName{}).Param("limit", strconv.Itoa(limit))
		if next != "" {
			request.Param("continue", next)
		}
		body, err := r.do(ctx, request)
		switch refusal := refusalOf(err); {
		case refusal == nil && err != nil:
			return err
		case apierrors.IsNotFound(err) && k.defined && time.Now().Before(r.until):
			time.Sleep(appears / 50)
			continue
		case apierrors.IsResourceExpired(err) && next != "" && refusal.ErrStatus.Continue != "" &&
			refusal.ErrStatus.Continue != next:
			next = refusal.ErrStatus.Continue // after a compaction, the rest is read at the current revision
			continue
		case err != nil:
			return err
		}
		var p page
		if err := json.Unmarshal(body, &p); err != nil {
			return err
		}
		if err := each(p); err != nil || p.Metadata.Continue == "" {
			return err
		}
		if next = p.Metadata.Continue; len(body) < pageBytes {
			limit = min(2*limit, largePage)
		} else {
			limit = max(limit/2, 1)
		}
	}
}

// readEach reads the objects of a failing list individually, from a position on, and tries the
// readable ones.
func (r *runner) readEach(
	ctx context.Context, k *kind, version string, from int, sample *sample, why *apierrors.StatusError,
) error {
	if !r.aboutObject(k, why) && version != k.version || r.Names == nil {
		k.listed(version, from, false)
		r.record(k, codeList, objectName{}, version, "list", why)
		return nil
	}
	names, err := r.Names(ctx, k.resource)
	if err != nil {
		return err
	}
	objects, failed := from, 0
	sample.total = len(names)
	for some := range slices.Chunk(names[min(from, len(names)):], manyNames) {
		items, refused, err := r.readSome(ctx, k, version, some)
		if err == nil {
			err = r.writeSome(ctx, k, version, items, sample)
		}
		if err != nil {
			return err
		}
		objects, failed = objects+len(items), failed+refused
	}
	if k.listed(version, objects, false); failed == 0 {
		r.record(k, codeList, objectName{}, version, "list", why)
	}
	return nil
}

// readSome reads objects by name, and returns the readable ones and the number of the others.
func (r *runner) readSome(
	ctx context.Context, k *kind, version string, names []objectName,
) (items []json.RawMessage, refused int, err error) {
	all, refusals := make([]json.RawMessage, len(names)), make([]*apierrors.StatusError, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.Workers)
	for i, name := range names {
		group.Go(func() (err error) {
			if err = name.check(); err == nil {
				all[i], err = r.do(ctx, r.get(k, version, name))
			}
			if refusals[i] = refusalOf(err); refusals[i] != nil {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	for i, refusal := range refusals {
		switch {
		case refusal == nil:
			items = append(items, all[i])
		case !apierrors.IsNotFound(refusal): // otherwise the object was deleted in the meantime
			r.record(k, codeList, names[i], version, "get", refusal)
			refused++
		}
	}
	return items, refused, nil
}

// get returns a request for an object, or for all objects if the name is empty.
func (r *runner) get(k *kind, version string, name objectName) *rest.Request {
	return r.client.Get().AbsPath(k.path(version, name)...).SetHeader("Accept", "application/json")
}

// path returns the URL path of an object, or of all objects.
func (k *kind) path(version string, name objectName) []string {
	path := []string{"/apis", k.resource.Group, version}
	if k.resource.Group == "" {
		path = []string{"/api", version}
	}
	if name.Namespace != "" {
		path = append(path, "namespaces", name.Namespace)
	}
	if path = append(path, k.resource.Resource); name.Name != "" {
		path = append(path, name.Name)
	}
	return path
}

// attempts bounds the updates of an object with concurrent changes.
const attempts = 3

// sample spreads the tried objects evenly over the list. If an object cannot be tried, the next one
// takes its place.
type sample struct{ most, total, seen, taken int }

// due counts one more object, and reports whether to try it.
func (s *sample) due() bool {
	s.seen++
	return s.taken < s.most && (s.total <= s.most || s.taken*s.total < s.seen*s.most)
}

// writeSome tries the due objects, at the version for writes.
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

// isMisplaced reports whether a listed object is in tryOptions.Misplaced.
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
		case apierrors.IsNotFound(err) && try.verb == "update": // deleted in the meantime; an apply would create it
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

// check refuses a name that would change the path: no server creates such names.
func (n objectName) check() error {
	if wrong := slices.Concat(path.IsValidPathSegmentName(n.Namespace),
		path.IsValidPathSegmentName(n.Name)); len(wrong) > 0 {
		return apierrors.NewBadRequest("no request can name it: it " + strings.Join(wrong, ", "))
	}
	return nil
}

// update writes an object back unchanged.
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

// apply makes a server-side apply without fields and without force.
func (r *runner) apply(ctx context.Context, k *kind, name objectName) error {
	identity := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	identity.SetGroupVersionKind(k.at(k.version).GroupVersion().WithKind(k.name))
	body, _ := json.Marshal(identity) // only strings
	_, err := r.do(ctx, dryRun(r.client.Patch(types.ApplyYAMLPatchType), k, name).Body(body))
	return err
}

// dryRun completes a write. The answer is only metadata, which costs less.
func dryRun(request *rest.Request, k *kind, name objectName) *rest.Request {
	return request.AbsPath(k.path(k.version, name)...).Param("dryRun", "All").Param("fieldManager", manager).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json")
}

// keysAtOnce is the number of keys in one request to etcd.
const keysAtOnce = 10_000

// storedNames reads the names of objects from the keys in etcd, in order, for tryOptions.Names. The
// prefix has no slash at its end.
func storedNames(
	client *clientv3.Client, prefix string,
) func(context.Context, schema.GroupResource) ([]objectName, error) {
	layout := keys.Kubernetes{Prefix: prefix}
	return func(ctx context.Context, of schema.GroupResource) (names []objectName, err error) {
		from := string(layout.Dir(of))
		end := clientv3.GetPrefixRangeEnd(from)
		for {
			answer, err := client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(),
				clientv3.WithLimit(keysAtOnce))
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
