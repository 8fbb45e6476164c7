package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// try lists and writes the objects as clients do.
func (r *rehearsal) try(ctx context.Context) (string, error) {
	all, err := inspect.Survey(ctx, r.reader)
	if err != nil {
		return "", err
	}
	misplaced, err := r.addRecords(ctx, all)
	if err != nil {
		return "", err
	}
	result, err := tryAll(ctx, r.server.Config, tryOptions{
		Sample: r.Sample, Native: r.APIServer != "", StandIn: apiservers.NotChecked,
		Names:     storedNames(r.cluster.Client(), r.storage.Prefix),
		Misplaced: misplaced,
	})
	if err != nil {
		if err = r.explain(err); errors.As(err, new(*sandbox.Died)) {
			return "", codeServer.Because("%s", err)
		}
		return "", err
	}
	for _, f := range result.Failures {
		found := f.At(r.keyOf(f))
		found.Reason = strings.TrimPrefix(found.Reason, subject(f.Resource, f.objectName)+": ") // the key names it
		r.Found.Add(found)
	}
	for code, n := range result.Counts {
		r.Found.Counts[code] = n
	}
	r.addUnserved(all, result.Kinds)
	objects, lists, tried := 0, 0, 0
	for _, k := range result.Kinds {
		k.Listed = append([]string{}, k.Listed...) // encode an empty list, not null
		r.Kinds = append(r.Kinds, k.Kind)
		objects, lists, tried = objects+k.Objects, lists+len(k.Listed), tried+k.Tried
	}
	return fmt.Sprintf("%d objects of %d kinds listed at %d versions, writes of %d tried", objects, len(result.Kinds),
		lists, tried), nil
}

// addRecords adds findings that no list shows: undecodable values of orphans, and objects under
// keys of other names, which it also returns. An API server finds an object by its key, and shows
// it under its own name.
func (r *rehearsal) addRecords(ctx context.Context, all *inspect.Catalogue) (map[misplacedObject]bool, error) {
	found, orphans := map[misplacedObject]bool{}, map[string]bool{}
	for _, of := range all.Resources {
		orphans[of.Resource] = orphans[of.Resource] || of.Orphans && of.Prefix == r.storage.Prefix
	}
	return found, r.reader.Snapshot().Guard(func() error {
		return stream.Each(r.reader.Live(ctx, []byte(r.storage.Prefix+"/")), func(e *inspect.Entry) error {
			key, err := e.ParseKey()
			if err != nil || e.Undecryptable != nil {
				return nil
			}
			if err := e.Check(); err != nil && orphans[key.Resource.String()] {
				r.Found.Add(finding.Undecodable.Because("%v", err).At(string(e.Key)))
			}
			meta, err := encoding.ReadMeta(e.Value)
			if err != nil {
				return nil // lists report it
			}
			if why := inspect.Misplaced(key, meta.Name, meta.Namespace); why != "" {
				r.Found.Add(codeMisplaced.Because("%s", why).At(string(e.Key)))
				name := objectName{meta.Namespace, meta.Name}
				found[misplacedObject{Resource: key.Resource.String(), Name: name,
					ResourceVersion: strconv.FormatInt(e.ModRevision, 10)}] = true
			}
			return nil
		})
	})
}

// addUnserved reports records not served by the API server.
func (r *rehearsal) addUnserved(all *inspect.Catalogue, kinds []*kind) {
	for _, s := range all.Prefixes {
		if s.Prefix != r.storage.Prefix {
			r.notChecked("keys below "+s.Prefix, "the API server reads those below "+r.storage.Prefix)
		}
	}
	for _, of := range all.Resources {
		served := slices.ContainsFunc(kinds, func(k *kind) bool { return k.Resource == of.Resource })
		if of.Prefix == r.storage.Prefix && !served && (of.Orphans || r.APIServer != "") {
			r.notChecked(of.Resource, fmt.Sprintf("the API server does not serve the kind; %d are stored", of.Objects))
		}
	}
	if all.Other > 0 {
		r.notChecked("keys of no kind", fmt.Sprintf("no API server reads them; %d are stored", all.Other))
	}
}

// keyOf returns the key in etcd of a request's object, or the folder of a whole kind.
func (r *rehearsal) keyOf(f refused) string {
	gr, layout := schema.ParseGroupResource(f.Resource), keys.Kubernetes{Prefix: r.storage.Prefix}
	if f.Name == "" {
		return string(layout.Dir(gr))
	}
	return string(layout.Format(keys.Key{Prefix: r.storage.Prefix, Resource: gr, Namespace: f.Namespace, Name: f.Name}))
}

// tryOptions configures the tries. The zero value tries up to 1,000 custom resources of each kind.
type tryOptions struct {
	Sample  int  // written objects of each kind; 0 means 1,000
	Native  bool // all resources of the server, not only custom resources and their definitions
	Workers int  // requests at a time; 0 means two for each CPU

	// StandIn is in each message of a stand-in conversion webhook: objects that need a conversion
	// by the real webhook are not checked. "" if there is no stand-in.
	StandIn string
	// Names yields the stored objects of a resource with a failing list, to name the unreadable
	// objects and try the others: storedNames. If nil, the failure names the resource.
	Names func(context.Context, schema.GroupResource) ([]objectName, error)
	// Misplaced has the objects stored under the key of another name: a request by the name in the
	// object would reach another object, or none. They are not written.
	Misplaced map[misplacedObject]bool
}

// misplacedObject is an object under the key of another name.
type misplacedObject struct {
	Resource        string     // such as "widgets.example.com"
	Name            objectName // in the object
	ResourceVersion string
}

// objectName is the name of an object in etcd. Namespace is "" for cluster-scoped resources.
type objectName struct{ Namespace, Name string }

// tried holds the answers of the API server.
type tried struct {
	Kinds []*kind // by resource
	// by resource, namespace, name, version and verb; up to finding.MaxListed of each code
	Failures []refused
	Counts   map[*finding.Code]int // failures of each code, including those beyond Failures
}

const (
	defaultSample = 1000
	appears       = 5 * time.Second // for newly served definitions
	startTime     = time.Minute     // for the server's admission policies
)

// runner sends requests to one API server.
type runner struct {
	tryOptions
	client   rest.Interface
	slots    chan struct{} // one for each active request
	failures failures
	until    time.Time // deadline for a resource to be served
	started  time.Time // deadline for retries of refusals by a starting server
}

// tryAll tries the objects of an API server. It fails if the server does not answer at all;
// refusals about objects are in the result.
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
	r := &runner{tryOptions: o, client: client, slots: make(chan struct{}, o.Workers), until: time.Now().Add(appears),
		started: time.Now().Add(startTime)}
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

// kind is a resource to try.
type kind struct {
	Kind
	resource   schema.GroupResource
	version    string   // for writes: the storage version if it is served; "" for none
	sync.Mutex          // for Kind, during concurrent lists
	name       string   // such as "Widget"
	served     []string // versions
	verbs      []string // "list", "update", "patch"
	defined    bool     // by a CustomResourceDefinition
	webhook    bool     // converts its objects
	expressive bool     // its definition creates messages by CEL, with any field
	status     string   // of the definition, if it is not served; otherwise ""
}

func (k *kind) at(version string) schema.GroupVersionResource { return k.resource.WithVersion(version) }

// can reports whether the server offers a verb for the resource.
func (k *kind) can(verb string) bool { return slices.Contains(k.verbs, verb) }

// definition holds the needed fields of a CustomResourceDefinition.
type definition struct {
	Metadata struct{ DeletionTimestamp *metav1.Time }
	Spec     struct {
		Group      string
		Names      struct{ Plural, Kind string }
		Conversion struct{ Strategy string }
		Versions   []struct {
			Name            string
			Served, Storage bool
		}
	}
	Status struct {
		Conditions []metav1.Condition
	}
}

// definitions returns the resource of CustomResourceDefinitions.
func definitions() *kind {
	at := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	return &kind{Kind: Kind{Resource: at.String()}, version: "v1", resource: at, name: "CustomResourceDefinition",
		served: []string{"v1"}, verbs: []string{"list", "update", "patch"}}
}

// kinds returns the resources to try.
func (r *runner) kinds(ctx context.Context, native discovery.DiscoveryInterface) ([]*kind, error) {
	kinds := []*kind{definitions()}
	err := r.pages(ctx, kinds[0], "v1", func(p page) error {
		for _, item := range p.Items {
			var d definition
			if err := json.Unmarshal(item, &d); err != nil {
				return err
			}
			k := d.kind()
			k.expressive = bytes.Contains(item, []byte(`"messageExpression"`))
			kinds = append(kinds, k)
		}
		return nil
	})
	if err != nil && refusalOf(err) == nil { // try reports a refusal again
		return nil, err
	}
	if r.Native {
		return r.addNative(kinds, native)
	}
	return kinds, nil
}

// kind returns the resource of the definition.
func (d *definition) kind() *kind {
	at := schema.GroupResource{Group: d.Spec.Group, Resource: d.Spec.Names.Plural}
	k := &kind{resource: at, name: d.Spec.Names.Kind, verbs: []string{"list", "update", "patch"}, defined: true}
	k.webhook = d.Spec.Conversion.Strategy == "Webhook"
	k.Resource = at.String()
	for _, v := range d.Spec.Versions {
		if v.Served {
			k.served = append(k.served, v.Name)
		}
		if v.Served && v.Storage {
			k.version = v.Name
		}
	}
	if k.version == "" && len(k.served) > 0 {
		k.version = newest(k.served)
	}
	if d.Metadata.DeletionTimestamp != nil {
		k.NotChecked = "the definition is being deleted, and the API server deletes all objects"
	}
	var refused []string
	for _, c := range d.Status.Conditions {
		if (c.Type == "NamesAccepted" || c.Type == "Established") && c.Status != metav1.ConditionTrue {
			refused = append(refused, c.Type+": "+c.Message)
		}
	}
	k.status = strings.Join(refused, "; ")
	return k
}

// newest returns the version preferred by servers.
func newest(versions []string) string {
	return slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
}

// addNative adds the server's resources without a definition. A group that cannot be discovered is
// not checked.
func (r *runner) addNative(kinds []*kind, from discovery.DiscoveryInterface) ([]*kind, error) {
	known := map[schema.GroupResource]*kind{}
	for _, k := range kinds {
		known[k.resource] = k
	}
	_, lists, err := from.ServerGroupsAndResources()
	var failed *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range list.APIResources {
			at := schema.GroupResource{Group: gv.Group, Resource: resource.Name}
			k := known[at]
			switch {
			case strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "list"):
				continue
			case k == nil:
				k = &kind{resource: at, name: resource.Kind, verbs: resource.Verbs}
				k.Resource = at.String()
				known[at], kinds = k, append(kinds, k)
			case k.defined || slices.Contains(k.served, gv.Version):
				continue
			}
			k.served = append(k.served, gv.Version)
			k.version = newest(k.served)
		}
	}
	if failed != nil {
		for gv, err := range failed.Groups {
			kinds = append(kinds, &kind{Kind: Kind{Resource: "*." + gv.String(), NotChecked: err.Error()}})
		}
	}
	return kinds, nil
}
