package doctor

import gvr "k8s.io/apimachinery/pkg/runtime/schema"

// apiService is an APIService (apiregistration.k8s.io).
type apiService struct {
	stored
	apiServiceFields
}

type apiServiceFields struct {
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

// serve keeps an APIService. A server has one for each version of a group that it serves.
func (d *doctor) serve(o stored) {
	fields, err := decodeAs[apiServiceFields](o.entry)
	if err != nil {
		d.raise(o.entry.Key, codeUndecodable, "no APIService: a field is of the wrong type")
		return
	}
	d.apiServices = append(d.apiServices, apiService{o, fields})
	served := d.local
	if fields.Spec.Service != nil {
		served = d.aggregated
	}
	served[gvr.GroupVersion{Group: fields.Spec.Group, Version: fields.Spec.Version}] = true
}

// checkAPIServices reports aggregated API servers that do not answer. While one does not, the
// namespace controller deletes no namespace.
func (d *doctor) checkAPIServices() {
	for _, s := range d.apiServices {
		ref := s.Spec.Service
		if ref == nil {
			continue
		}
		name := ref.Namespace + "/" + ref.Name
		switch svc := d.service(s.Prefix, ref.Namespace, ref.Name); {
		case svc == nil:
			d.raise(s.entry.Key, codeAPIServiceGone, "its Service %s is not there", name)
			d.dead = append(d.dead, s.Name)
		case d.idle(s.Prefix, svc):
			d.raise(s.entry.Key, codeAPIServiceEndpoints, "its Service %s has no ready endpoint", name)
			d.dead = append(d.dead, s.Name)
		default:
			for _, c := range s.Status.Conditions {
				if c.Type == "Available" && c.Status == "False" {
					d.raise(s.entry.Key, codeAPIServiceUnavailable, "its condition Available was False: %s", c.Reason)
					d.dead = append(d.dead, s.Name)
				}
			}
		}
	}
}
