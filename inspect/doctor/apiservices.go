package doctor

import (
	"context"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
)

// apiService is the part of an APIService (apiregistration.k8s.io) that is checked.
type apiService struct {
	Spec struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Reason string `json:"reason"`
		} `json:"conditions"`
	} `json:"status"`
}

func readAPIService(e *inspect.Entry) (out apiService, err error) {
	return out, decodeInto(e, &out)
}

// concludeAPIServices reports the aggregated API servers that do not answer. The namespace
// controller completes no deletion of a namespace until all of them do.
func (d *doctor) concludeAPIServices(ctx context.Context) error {
	for _, s := range d.kept["apiservices.apiregistration.k8s.io"] {
		is, err := readAPIService(s.entry)
		if err != nil {
			d.raise(s.entry.Key, codeUndecodable.Because("no APIService: a field is of the wrong type"))
			continue
		}
		found, err := d.checkAPIService(ctx, s.key.Prefix, &is)
		if err != nil {
			return err
		}
		if found != nil {
			d.raise(s.entry.Key, found)
			d.dead = append(d.dead, s.key.Name)
		}
	}
	return nil
}

func (d *doctor) checkAPIService(ctx context.Context, prefix string, is *apiService) (*finding.Finding, error) {
	ref := is.Spec.Service
	if ref == nil { // kube-apiserver's own
		return nil, nil
	}
	name := ref.Namespace + "/" + ref.Name
	svc, err := d.service(ctx, prefix, ref.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	idle, err := d.idle(ctx, prefix, svc)
	switch {
	case err != nil:
		return nil, err
	case svc == nil:
		return codeAPIServiceGone.Because("its Service %s is not there", name), nil
	case idle:
		return codeAPIServiceEndpoints.Because("its Service %s has no ready endpoint", name), nil
	}
	for _, c := range is.Status.Conditions {
		if c.Type == "Available" && c.Status == "False" {
			return codeAPIServiceUnavailable.Because("its condition Available was False: %s", c.Reason), nil
		}
	}
	return nil, nil
}
