package rehearse

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/finding"
)

// tryOptions say what is tried. The zero value tries up to 1,000 custom resources of each kind.
type tryOptions struct {
	Sample  int  // objects of each kind that are written; 0 means 1,000
	Native  bool // all resources of the server, not custom resources and their definitions alone
	Workers int  // requests at a time; 0 means two for each CPU

	// StandIn is in each message of a conversion webhook that stands in for the real one, which is
	// not asked: objects that need a conversion are not checked. "" if there is none.
	StandIn string
	// Names yields the stored objects of a resource whose list fails, so that those that cannot be
	// read are named, and the others tried: storedNames. nil: the failure names the resource.
	Names func(context.Context, schema.GroupResource) ([]objectName, error)
	// Misplaced has the objects that are stored under the key of another name: a request by the
	// name in them is about another object, or none. They are not written.
	Misplaced map[misplacedObject]bool
}

// misplacedObject is an object under the key of another name.
type misplacedObject struct {
	Resource        string     // such as "widgets.example.com"
	Name            objectName // in the object
	ResourceVersion string
}

// objectName is the name of an object in etcd. Namespace is "" if the resource has none.
type objectName struct{ Namespace, Name string }

// tried is what the API server said.
type tried struct {
	Kinds    []*kind               // by resource
	Failures []refused             // by resource, namespace, name, version and verb; up to finding.MaxListed of each code
	Counts   map[*finding.Code]int // failures of each code, including those beyond Failures
}

const (
	defaultSample = 1000
	appears       = 5 * time.Second // for definitions that the server has only begun to serve
	startTime     = time.Minute     // for its admission policies
)

// runner asks one API server.
type runner struct {
	tryOptions
	client   rest.Interface
	slots    chan struct{} // one for each request under way
	failures failures
	until    time.Time // a resource that is not served by then is not served
	started  time.Time // what is refused until then, because the server starts, is tried again
}

// tryAll tries the objects of an API server. It fails when the server does not answer at all: what
// the server says of objects is in the result.
func tryAll(ctx context.Context, config *rest.Config, o tryOptions) (tried, error) {
	if o.Sample == 0 {
		o.Sample = defaultSample
	}
	if o.Workers == 0 {
		o.Workers = 2 * runtime.GOMAXPROCS(0)
	}
	client, err := newClient(config)
	if err != nil {
		return tried{}, err
	}
	r := &runner{tryOptions: o, client: client, slots: make(chan struct{}, o.Workers), until: time.Now().Add(appears), started: time.Now().Add(startTime)}
	kinds, err := r.kinds(ctx, discovery.NewDiscoveryClient(client))
	if err != nil {
		return tried{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Workers)
	for _, k := range kinds {
		group.Go(func() error { return r.try(ctx, k) })
	}
	err = group.Wait()
	return r.result(kinds), err
}

func (r *runner) result(kinds []*kind) tried {
	slices.SortFunc(kinds, func(a, b *kind) int { return strings.Compare(a.Resource, b.Resource) })
	failures, counts := r.failures.all()
	return tried{kinds, failures, counts}
}
