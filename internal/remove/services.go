package remove

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// deleteAddresses deletes what an API server deletes together with a Service: the Endpoints
// of its name, and the IPAddress objects of its cluster IPs.
func (r *run) deleteAddresses() error {
	for _, service := range r.services {
		gone, err := machines.Storage{Source: r.view, Prefix: service.Parsed.Prefix}.IPAddresses(r.ctx, service.Parsed, service.Content)
		if err != nil {
			return err
		}
		of := service.Parsed
		of.Resource = schema.GroupResource{Resource: "endpoints"}
		endpoints, err := r.view.Get(r.ctx, keys.Kubernetes{Prefix: of.Prefix}.Format(of))
		if err != nil {
			return err
		}
		if endpoints != nil {
			gone = append([]*transform.Entry{endpoints}, gone...)
		}
		for _, e := range gone {
			key, err := e.ParseKey()
			if err != nil {
				return err
			}
			if err := r.deleteOne(e, key, false); err != nil {
				return err
			}
		}
	}
	return nil
}
