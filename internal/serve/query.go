package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
)

// query holds the parameters of a list or watch.
type query struct {
	*store
	folder     *folder
	prefix     []byte // of the keys to read
	first, end int    // numbers of the records to read
	limit      int64
	labels     labels.Selector
	fields     fields.Selector
}

// page is the answer to a query.
type page struct {
	*query
	records   []uint32 // record numbers
	next      string   // continue token
	remaining *int64

	unreadable int // number of missing objects
	reasons    []string
}

func (s *store) newQuery(ctx context.Context, opts *metainternalversion.ListOptions) (q *query, err error) {
	q = &query{store: s, labels: labels.Everything(), fields: fields.Everything()}
	if opts == nil {
		opts = &metainternalversion.ListOptions{}
	}
	q.limit = opts.Limit
	if opts.LabelSelector != nil {
		q.labels = opts.LabelSelector
	}
	if opts.FieldSelector != nil {
		q.fields = opts.FieldSelector
	}
	if q.folder, err = s.resource.folder(); err != nil {
		return nil, err
	}
	namespace := request.NamespaceValue(ctx)
	q.prefix = s.key(q.folder, namespace, "")
	if q.first, q.end, err = q.folder.between(q.prefix); err != nil {
		return nil, err
	}
	if err := q.narrow(namespace); err != nil {
		return nil, err
	}
	if opts.Continue != "" {
		return q, q.resume(opts.Continue)
	}
	return q, s.checkRevision(opts)
}

// narrow restricts the query to one object if a field selector names it.
func (q *query) narrow(namespace string) error {
	name, one := q.fields.RequiresExactMatch("metadata.name")
	if !one || q.Namespaced && namespace == "" || q.first == q.end {
		return nil
	}
	at, err := q.folder.records.Search(append(slices.Clone(q.prefix), name...))
	if err != nil {
		return err
	}
	q.first, q.end = min(at, q.end), min(at+1, q.end)
	return nil
}

// resume continues after the page of the token.
func (q *query) resume(token string) error {
	key, revision, err := storage.DecodeContinue(token, string(q.prefix))
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	if revision != q.source.revision {
		return apierrors.NewResourceExpired(fmt.Sprintf("the continue token is of revision %d, and the server is at %d",
			revision, q.source.revision))
	}
	if q.first == q.end {
		return nil
	}
	at, err := q.folder.records.Search([]byte(key))
	q.first = min(max(q.first, at), q.end)
	return err
}

// checkRevision refuses a list at a revision other than that of the snapshot.
func (s *store) checkRevision(opts *metainternalversion.ListOptions) error {
	asked, err := parseRevision(opts.ResourceVersion)
	if err != nil {
		return err
	}
	exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact || opts.ResourceVersionMatch == "" &&
		opts.Limit > 0 // like a server
	switch revision := uint64(s.source.revision); {
	case asked > revision:
		return storage.NewTooLargeResourceVersionError(asked, revision, 1)
	case asked > 0 && asked != revision && exact:
		return apierrors.NewResourceExpired(fmt.Sprintf("revision %d was asked for, and the server is at %d",
			asked, revision))
	}
	return nil
}

// parseRevision parses a resource version; "" gives 0.
func parseRevision(text string) (uint64, error) {
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(text)
	if err != nil {
		return 0, apierrors.NewBadRequest("invalid resource version: " + err.Error())
	}
	return revision, nil
}

// mostWarnings bounds the objects named in the warnings of one answer.
const mostWarnings = 10

// page finds the records of the query, up to its limit, and keeps their numbers only. Unreadable
// objects are added to the warnings.
func (q *query) page(ctx context.Context) (*page, error) {
	p := &page{query: q}
	var last []byte
	for i := q.first; i < q.end; i++ {
		if i%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if q.limit > 0 && int64(len(p.records)) == q.limit {
			if err := p.endBefore(last, i); err != nil {
				return nil, err
			}
			break
		}
		e, err := q.entry(ctx, i)
		if err != nil {
			return nil, err
		}
		last = e.Key
		selected, err := q.selects(e)
		if u, is := err.(*unreadable); is {
			p.addUnreadable(u)
		} else if err != nil {
			return nil, err
		}
		if selected {
			p.records = append(p.records, uint32(i))
		}
	}
	p.warn(ctx)
	return p, nil
}

// addUnreadable records an object missing in the page.
func (p *page) addUnreadable(u *unreadable) {
	p.source.report(u)
	if p.unreadable++; len(p.reasons) < mostWarnings {
		p.reasons = append(p.reasons, u.Error())
	}
}

// warn adds warnings about missing objects to the answer's headers.
func (p *page) warn(ctx context.Context) {
	if p.unreadable > 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf("objects that the list lacks, since they cannot be served: %d",
			p.unreadable))
	}
	for _, reason := range p.reasons {
		warning.AddWarning(ctx, "", strings.Map(printable, reason))
	}
}

// printable drops characters not allowed in a header.
func printable(r rune) rune {
	if unicode.IsPrint(r) && r != utf8.RuneError {
		return r
	}
	return -1
}

// endBefore ends the page before record i, after the key last.
func (p *page) endBefore(last []byte, i int) (err error) {
	if p.labels.Empty() && p.fields.Empty() {
		p.remaining = new(int64(p.query.end - i))
	}
	p.next, err = storage.EncodeContinue(string(last)+"\x00", string(p.prefix), p.source.revision)
	return err
}

// entry reads record i.
func (q *query) entry(ctx context.Context, i int) (*inspect.Entry, error) {
	rec, err := q.folder.records.At(i)
	if err != nil {
		return nil, err
	}
	return q.source.reader.Entry(ctx, rec)
}

// selects reports whether the query selects an object. An unreadable object is an error.
func (q *query) selects(e *inspect.Entry) (bool, error) {
	key, err := e.ParseKey()
	switch {
	case err != nil:
		return false, &unreadable{string(e.Key), err}
	case key.Resource != q.stored.Resource:
		return false, nil
	}
	if err := q.check(e, q.version); err != nil {
		return false, err
	}
	if !q.labels.Empty() {
		m, err := encoding.ReadMeta(e.Value)
		if err != nil {
			return false, &unreadable{string(e.Key), err}
		}
		if !q.labels.Matches(labels.Set(m.Labels)) {
			return false, nil
		}
	}
	if q.fields.Empty() {
		return true, nil
	}
	obj, err := q.read(e, q.version)
	if err != nil {
		return false, err
	}
	return q.fields.Matches(objects.FieldValues(q.fields, obj.Object)), nil
}
