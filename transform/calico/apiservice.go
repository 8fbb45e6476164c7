package calico

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// automanagedLabel is on the APIServices that kube-apiserver makes itself, for what it serves and for CRDs.
const automanagedLabel = "kube-aggregator.kubernetes.io/automanaged"

// apiServiceKey is where the APIService of a group's version lies.
func apiServiceKey(k keys.Kubernetes, group, version string) []byte {
	return k.Format(keys.Key{
		Resource: schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"},
		Name:     version + "." + group,
	})
}

// removeAggregatedAPIService deletes the APIService that sends projectcalico.org/v3 to Calico's own API server, and keeps
// it in the report: while it is there the CRDs are not served. kube-apiserver then makes one of its own when it starts. The
// one it made already stays.
func removeAggregatedAPIService(ctx context.Context, v *transform.View, k keys.Kubernetes) error {
	key := apiServiceKey(k, groupV3, "v3")
	entry, err := v.Get(ctx, key)
	if err != nil || entry == nil {
		return err
	}
	obj, format, err := encoding.DecodeObject(entry.Value)
	switch {
	case err != nil:
		v.RaiseUnreadable(string(key), transform.Unreadable(err))
		v.Report().AddStep("after the restore, delete APIService v3.%s if it names a service: while it is there, the CRDs are not served", groupV3)
		return nil
	case automanaged(obj):
		return nil
	}
	saved := bytes.TrimSpace(entry.Value)
	if format != encoding.FormatJSON {
		if saved, err = encoding.EncodeObject(obj, encoding.FormatJSON); err != nil {
			return err
		}
	}
	v.Report().Save(string(key), json.RawMessage(bytes.Clone(saved)))
	return v.Delete(ctx, key, "it sends "+apiVersionV3+" to Calico's API server instead of the CRDs; kept in the report")
}

// reportAggregatedAPIService is for a snapshot whose v1 group is gone. An APIService that still sends projectcalico.org/v3 to
// Calico's own API server is reported and stays: whether that server has its data elsewhere, the snapshot does not tell.
func reportAggregatedAPIService(ctx context.Context, v *transform.View, k keys.Kubernetes, set *crdSet) error {
	key := apiServiceKey(k, groupV3, "v3")
	entry, err := v.Get(ctx, key)
	if err != nil || entry == nil {
		return err
	}
	obj, _, err := encoding.DecodeObject(entry.Value)
	if err != nil && entry.Sealed != nil {
		v.Raise(string(key), codeAPIServiceLeft.Because("it cannot be read: %v", err))
	}
	if err != nil || automanaged(obj) { // what is not encrypted is reported by checkValues
		return nil
	}
	service := objectAt(objectAt(obj, "spec"), "service")
	sends := fmt.Sprintf("it sends %s to Service %s/%s", apiVersionV3, text(service, "namespace"), text(service, "name"))
	if len(set.versions) == 0 {
		v.Raise(string(key), codeAPIServiceLeft.Because("%s, and the snapshot has no CRD of that group: Calico keeps its data elsewhere", sends))
		return nil
	}
	v.Raise(string(key), codeAPIServiceLeft.Because("%s instead of the CRDs of that group", sends))
	found, err := findInstallation(ctx, v, k)
	if err != nil {
		return err
	}
	operatorSteps(v, found)
	v.Report().AddStep("after the restore, delete APIService v3.%s (kubectl delete apiservice v3.%s): kube-apiserver then serves the CRDs of %s", groupV3, groupV3, groupV3)
	return apiServerSteps(ctx, v, k, found)
}

// automanaged says whether kube-apiserver made the APIService: then it carries the label and names no service.
func automanaged(apiService map[string]any) bool {
	meta, _ := apiService["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	spec, _ := apiService["spec"].(map[string]any)
	return text(labels, automanagedLabel) != "" && spec["service"] == nil
}
