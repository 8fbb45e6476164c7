package tries

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

// Options say what is tried. The zero value tries up to 1,000 custom resources of each kind.
type Options struct {
	Sample  int  // objects of each kind that are written; 0 means 1,000
	Native  bool // all resources of the server, not custom resources and their definitions alone
	Workers int  // requests at a time; 0 means two for each CPU

	// StandIn is in each message of a conversion webhook that stands in for the real one, which is
	// not asked: objects that need a conversion are not checked. "" if there is none.
	StandIn string
	// Skip returns why a resource is not checked, "" if it is; nil checks all.
	Skip func(schema.GroupVersionResource) string
	// Names yields the stored objects of a resource whose list fails, so that those that cannot be
	// read are named, and the others tried; see Stored. Without it, the failure names the resource.
	Names func(context.Context, schema.GroupResource) ([]Name, error)
	// Misplaced has the objects that are stored under the key of another name: a request by the
	// name in them is about another object, or none. They are not written.
	Misplaced map[Misplaced]bool
}

// Misplaced is an object under the key of another name.
type Misplaced struct {
	Resource        string // such as "widgets.example.com"
	Name            Name   // in the object
	ResourceVersion string
}

// Name is the name of an object in etcd. Namespace is "" if the resource has none.
type Name struct{ Namespace, Name string }

// Result is what the API server said.
type Result struct {
	Kinds    []Kind                // by resource
	Failures []Failure             // by resource, namespace, name, version and verb; up to finding.MaxListed of each code
	Counts   map[*finding.Code]int // failures of each code, including those beyond Failures
}

// Kind is what was tried of one resource.
type Kind struct {
	Resource    string   // such as "widgets.example.com"
	Namespaced  bool     // its objects are in namespaces
	Objects     int      // in the list; those that could be read, if it fails
	Listed      []string // versions at which all objects were listed
	Version     string   // at which writes were tried: the storage version if it is served; "" for none
	Tried       int      // objects that were written, in a dry run
	Terminating int      // objects that were not tried because they are being deleted
	Unchecked   int      // lists and writes that were not checked
	NotChecked  string   // why, of the first; "" if all were checked
	Unread      int      // lists that failed, or objects that could not be read where these are known
	Updates     int      // objects with a refused update
	Applies     int      // objects with a refused apply
}

const (
	defaultSample = 1000
	patience      = 5 * time.Second // for definitions that the server has only begun to serve
	startTime     = time.Minute     // for its admission policies
)

// runner asks one API server.
type runner struct {
	Options
	client   rest.Interface
	slots    chan struct{} // one for each request under way
	failures failures
	until    time.Time // a resource that is not served by then is not served
	started  time.Time // what is refused until then, because the server starts, is tried again
}

// Run tries the objects of an API server. It fails when the server does not answer at all: what the
// server says of objects is in the result.
func Run(ctx context.Context, config *rest.Config, o Options) (Result, error) {
	if o.Sample == 0 {
		o.Sample = defaultSample
	}
	if o.Workers == 0 {
		o.Workers = 2 * runtime.GOMAXPROCS(0)
	}
	client, err := NewClient(config)
	if err != nil {
		return Result{}, err
	}
	r := &runner{Options: o, client: client, slots: make(chan struct{}, o.Workers), until: time.Now().Add(patience), started: time.Now().Add(startTime)}
	kinds, err := r.kinds(ctx, discovery.NewDiscoveryClient(client))
	if err != nil {
		return Result{}, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Workers)
	for _, k := range kinds {
		group.Go(func() error { return r.try(ctx, k) })
	}
	err = group.Wait()
	return r.result(kinds), err
}

func (r *runner) result(kinds []*kind) Result {
	result := Result{Kinds: make([]Kind, len(kinds))}
	for i, k := range kinds {
		result.Kinds[i] = k.Kind
	}
	slices.SortFunc(result.Kinds, func(a, b Kind) int { return strings.Compare(a.Resource, b.Resource) })
	result.Failures, result.Counts = r.failures.all()
	return result
}
