package doctor

import "context"

// apiService is what is judged of an APIService (apiregistration.k8s.io).
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
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

func readAPIService(value []byte) (out apiService, err error) {
	return out, decodeInto(value, &out)
}

// concludeAPIServices reports the aggregated API servers that nobody answers for. While one does not answer, the namespace
// controller does not end the deletion of any namespace.
func (d *doctor) concludeAPIServices(ctx context.Context) error {
	for _, s := range d.services {
		is, err := readAPIService(s.entry.Value)
		if err != nil {
			d.raise(s.entry.Key, codeUndecodable.Because("no APIService: a field is of the wrong type"))
			continue
		}
		if is.Spec.Service == nil {
			continue
		}
		name := is.Spec.Service.Namespace + "/" + is.Spec.Service.Name
		svc, err := d.service(ctx, s.key.Prefix, is.Spec.Service.Namespace, is.Spec.Service.Name)
		if err != nil {
			return err
		}
		if svc == nil {
			d.raise(s.entry.Key, codeAPIServiceGone.Because("its Service %s is not there", name))
			d.dead = append(d.dead, s.key.Name)
			continue
		}
		idle, err := d.idle(ctx, s.key.Prefix, svc)
		if err != nil {
			return err
		}
		if idle {
			d.raise(s.entry.Key, codeAPIServiceEndpoints.Because("its Service %s has no ready endpoint", name))
			d.dead = append(d.dead, s.key.Name)
			continue
		}
		for _, c := range is.Status.Conditions {
			if c.Type == "Available" && c.Status == "False" {
				d.raise(s.entry.Key, codeAPIServiceUnavailable.Because("its condition Available was False: %s", c.Reason))
				d.dead = append(d.dead, s.key.Name)
			}
		}
	}
	return nil
}
