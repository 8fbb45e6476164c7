package doctor

import (
	"iter"

	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// About aggregated API servers.
var (
	codeAPIServiceGone        = finding.Lookup("apiservice-service-gone")
	codeAPIServiceEndpoints   = finding.Lookup("apiservice-no-endpoints")
	codeAPIServiceUnavailable = finding.Lookup("apiservice-unavailable")
)

// decodeAs decodes a value into a typed object; it drops fields that the type does not have.
func decodeAs[T any](e *inspect.Entry) (T, error) { return native.As[T](e.ParseValue()) }

// get returns the entry of an object, nil if the file does not have it.
func (d *doctor) get(prefix, resource, namespace, name string) (*inspect.Entry, error) {
	key := keys.Key{Prefix: prefix, Resource: gvr.GroupResource{Resource: resource}, Namespace: namespace, Name: name}
	return d.reader.Get(d.ctx, keys.Kubernetes{Prefix: prefix}.Format(key))
}

// within yields the objects of a resource in a namespace, "" for all.
func (d *doctor) within(prefix string, gr gvr.GroupResource, namespace string) iter.Seq2[*inspect.Entry, error] {
	dir := keys.Kubernetes{Prefix: prefix}.Dir(gr)
	if namespace != "" {
		dir = append(dir, namespace+"/"...)
	}
	return d.reader.Live(d.ctx, dir)
}

// storage is what lies below a storage prefix.
func (d *doctor) storage(prefix string) machines.Storage {
	return machines.Storage{Source: d.reader, Prefix: prefix}
}

// apiService is an APIService (apiregistration.k8s.io).
type apiService struct {
	stored
	machines.APIService
}

// serve keeps an APIService. A server has one for each version of a group that it serves.
func (d *doctor) serve(o stored) {
	fields, err := decodeAs[machines.APIService](o.entry)
	if err != nil {
		d.raise(o.entry.Key, finding.Undecodable, "no APIService: a field is of the wrong type")
		return
	}
	gv := gvr.GroupVersion{Group: fields.Spec.Group, Version: fields.Spec.Version}
	if fields.Spec.Service == nil {
		d.local[gv] = true
	} else {
		d.aggregated[gv] = true
	}
	d.apiServices = append(d.apiServices, apiService{o, fields})
}

// silent is an APIService whose API server does not answer.
type silent struct {
	apiService
	machines.Silence
}

// silentServers are the APIServices that do not answer, which stop the deletion of namespaces.
func silentServers(d *doctor) (all []silent, err error) {
	for _, s := range d.apiServices {
		silence, err := d.storage(s.Prefix).Silent(d.ctx, &s.APIService)
		if err != nil {
			return nil, err
		}
		if silence.State != machines.Answering {
			all = append(all, silent{s, silence})
		}
	}
	return all, nil
}

// checkAPIServices reports silent aggregated API servers.
func checkAPIServices(d *doctor) error {
	silent, err := silentServers(d)
	if err != nil {
		return err
	}
	for _, s := range silent {
		name, hint := s.Spec.Service.Namespace+"/"+s.Spec.Service.Name, ""
		if s.Name == calicoAPIService {
			if hint, err = calicoMoves(d, s.Prefix); err != nil {
				return err
			}
		}
		switch s.State {
		case machines.Gone:
			d.raise(s.entry.Key, codeAPIServiceGone, "its Service %s is not there%s", name, hint)
		case machines.Idle:
			d.raise(s.entry.Key, codeAPIServiceEndpoints, "its Service %s has no ready endpoint%s", name, hint)
		case machines.Unavailable:
			d.raise(s.entry.Key, codeAPIServiceUnavailable, "its condition Available was False: %s%s", s.Reason, hint)
		}
	}
	return nil
}
