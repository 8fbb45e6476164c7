package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// source is the snapshot of a server. It is safe for concurrent use.
type source struct {
	Config
	ctx      context.Context // of the server, for data shared by all requests
	reader   *inspect.Reader
	layouts  keys.Layouts
	revision int64

	reading sync.WaitGroup // requests and watches
	ahead   chan struct{}  // semaphore for requests with read-ahead

	mu    sync.Mutex
	ended bool            // no more reads are allowed
	named map[string]bool // reported keys
}

// enter reports whether a request may read. The request must call reading.Done at its end.
func (s *source) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.reading.Add(1)
	}
	return !s.ended
}

// end refuses further reads and waits for current ones.
func (s *source) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.reading.Wait()
}

// MostReported bounds the individually reported objects. One more report says that there are more.
const MostReported = 1000

func newSource(ctx context.Context, r *inspect.Reader, cfg Config) (s *source, err error) {
	s = &source{Config: cfg, ctx: ctx, reader: r, named: map[string]bool{}, ahead: make(chan struct{}, mostAhead)}
	if s.layouts, err = r.Layouts(ctx); err != nil {
		return nil, err
	}
	s.revision, err = r.Revision(ctx)
	return s, err
}

// report tells the operator about an unservable object, once for each key.
func (s *source) report(err *unreadable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named[err.key] || len(s.named) > MostReported {
		return
	}
	s.named[err.key] = true
	if len(s.named) > MostReported {
		s.Report(fmt.Sprintf("more than %d objects cannot be served; clients are told of each", MostReported))
		return
	}
	s.Report(err.Error())
}

// unreadable is an error about one object.
type unreadable struct {
	key string
	err error
}

func (u *unreadable) Error() string { return fmt.Sprintf("%q cannot be served: %v", u.key, u.err) }
func (u *unreadable) Unwrap() error { return u.err }

// folder holds the records of a resource by key.
type folder struct {
	dir     []byte // with a trailing slash
	records *snapshot.Sorted
}

// open finds the folder of a resource: in the first storage with objects, because servers of one
// file never share a resource.
func (s *source) open(t *inspect.Type) (*folder, error) {
	f := &folder{}
	for _, dir := range s.layouts.Dirs(t.Resource) {
		if f.records != nil && f.records.Len() > 0 {
			break
		}
		records, err := inspect.Sorted(s.ctx, s.reader, dir)
		if err != nil {
			return nil, err
		}
		f.dir, f.records = dir, records
	}
	return f, nil
}

// between returns the range of the records with a key prefix.
func (f *folder) between(prefix []byte) (first, end int, err error) {
	if f.records == nil { // no storage
		return 0, 0, nil
	}
	if first, err = f.records.Search(prefix); err != nil {
		return 0, 0, err
	}
	behind := bytes.Clone(prefix)
	behind[len(behind)-1]++ // the prefix ends with a slash
	end, err = f.records.Search(behind)
	return first, end, err
}

// find returns the record of a key, nil for none.
func (f *folder) find(key []byte) (*snapshot.Record, error) {
	if f.records == nil {
		return nil, nil
	}
	i, err := f.records.Search(key)
	if err != nil || i == f.records.Len() {
		return nil, err
	}
	rec, err := f.records.At(i)
	if err != nil || !bytes.Equal(rec.Key, key) {
		return nil, err
	}
	return rec, nil
}

// read decodes an entry at a version of the API. An error about the object is unreadable.
func (r *resource) read(e *inspect.Entry, version string) (*unstructured.Unstructured, error) {
	o := inspect.NewObject(r.stored, e)
	err := o.Err
	if err == nil {
		err = o.CheckServed()
	}
	if err == nil {
		o.AsServed()
		err = r.convert(o.Content, version)
	}
	if err != nil {
		return nil, &unreadable{string(e.Key), err}
	}
	hide, err := r.source.hide()
	if err != nil {
		return nil, err
	}
	if hide != nil && hide.Object(e.Key, o.Content) {
		encodeRedacted(o.Content)
	}
	return &unstructured.Unstructured{Object: o.Content}, nil
}

// hide returns the redactor of objects; nil if secrets are shown.
func (s *source) hide() (*redact.Shared, error) {
	if s.Secrets {
		return nil, nil
	}
	return s.reader.Secrets(s.ctx)
}

// check returns the error that read would return. For most objects the stored bytes suffice.
func (r *resource) check(e *inspect.Entry, version string) error {
	sure := false
	if key, err := e.ParseKey(); err == nil && r.CRD != nil {
		told, ok := r.CRD.Tell(e.Value, key.Namespace, key.Name)
		sure = ok && (version == told.Version || version == r.CRD.StorageVersion())
	} else if v, err := e.ParseValue(); err == nil {
		sure = v.GVK.Group == r.Resource.Group && v.GVK.Version == version && e.Check() == nil
	}
	if sure {
		return nil
	}
	_, err := r.read(e, version)
	return err
}

// Storage returns the storage of the kube-apiserver in a snapshot. An OpenShift API server may have
// another storage. The error is ErrKCP or ErrStorages, or reports that there is no storage.
func Storage(layouts keys.Layouts) (keys.Storage, error) {
	var found keys.Storage
	var plain []string
	for _, storage := range layouts.Storages() {
		if storage.Flavour != keys.FlavourOpenShift {
			found, plain = storage, append(plain, storage.Prefix)
		}
	}
	switch {
	case layouts.Flavour().KCP():
		return found, ErrKCP
	case len(layouts.Storages()) == 0:
		return found, errors.New("no storage prefix found; name it with --prefix")
	case len(plain) > 1:
		return found, fmt.Errorf("%w: %q", ErrStorages, plain)
	}
	return found, nil
}

// ErrKCP is returned for a snapshot of kcp.
var ErrKCP = errors.New("kcp serves each logical cluster by itself, which this server does not: use get --cluster")

// ErrStorages is returned for a snapshot with the storages of several clusters.
var ErrStorages = errors.New("the snapshot has several storages; name one with --prefix")
