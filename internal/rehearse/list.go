package rehearse

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

const (
	firstPage = 20  // objects of the first page, before their size is known
	largePage = 500 // objects of a page at most, as kubectl asks for
	manyNames = 100 // objects that are read one by one before any of them is tried
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

// pages gets a list page by page. Pages shrink while objects are large.
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
		case apierrors.IsResourceExpired(err) && next != "" && refusal.ErrStatus.Continue != "" && refusal.ErrStatus.Continue != next:
			next = refusal.ErrStatus.Continue // the store was compacted: the rest of the list is read as it is now
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

// readEach reads the objects of a list that fails one by one, from a position on, and tries those
// that can be read.
func (r *runner) readEach(ctx context.Context, k *kind, version string, from int, sample *sample, why *apierrors.StatusError) error {
	if !r.says(k, why) && version != k.version || r.Names == nil {
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

// readSome reads objects by their names, and returns those that can be read and how many cannot.
func (r *runner) readSome(ctx context.Context, k *kind, version string, names []objectName) (items []json.RawMessage, refused int, err error) {
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
		case !apierrors.IsNotFound(refusal): // else it was deleted in the meantime
			r.record(k, codeList, names[i], version, "get", refusal)
			refused++
		}
	}
	return items, refused, nil
}

// get reads an object, or without a name lists all.
func (r *runner) get(k *kind, version string, name objectName) *rest.Request {
	return r.client.Get().AbsPath(k.path(version, name)...).SetHeader("Accept", "application/json")
}

// path is the URL path of an object, or of all.
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
