package calico

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// automanagedLabel is on the APIServices that kube-apiserver makes itself, for what it serves and
// for CRDs.
const automanagedLabel = "kube-aggregator.kubernetes.io/automanaged"

// apiServiceKey is the key of the APIService of a group's version.
func (m *run) apiServiceKey(group, version string) []byte {
	return m.Keys.Format(keys.Key{
		Resource: schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"},
		Name:     version + "." + group,
	})
}

// removeAggregatedAPIService deletes the APIService that sends projectcalico.org/v3 to Calico's own
// API server, since the CRDs are not served beside it, and keeps it in the report. kube-apiserver
// makes one of its own when it starts; one that it made already stays.
func (m *run) removeAggregatedAPIService() {
	key := m.apiServiceKey(groupV3, "v3")
	entry := m.Get(key)
	if entry == nil {
		return
	}
	obj, _, err := encoding.DecodeObject(entry.Value)
	switch {
	case err != nil:
		m.Raise(string(key), transform.Unreadable(err))
		m.Step("after the restore, delete APIService v3.%s if it names a service: while it is there, the CRDs are not served", groupV3)
		return
	case automanaged(obj):
		return
	}
	if m.Failed(m.View.Save(m.Ctx, key, obj)) {
		return
	}
	m.Delete(key)
}

// reportAggregatedAPIService is for a snapshot without the v1 group. It reports an APIService that
// still sends projectcalico.org/v3 to Calico's own API server, which may have its data elsewhere.
func (m *run) reportAggregatedAPIService() {
	key := m.apiServiceKey(groupV3, "v3")
	entry := m.Get(key)
	if entry == nil {
		return
	}
	obj, _, err := encoding.DecodeObject(entry.Value)
	if err != nil && entry.Undecryptable != nil {
		m.Raise(string(key), codeAPIServiceLeft.Because("it cannot be read: %v", err))
	}
	if err != nil || automanaged(obj) { // eachOther reports one that is not encrypted
		return
	}
	service := objectAt(objectAt(obj, "spec"), "service")
	sends := fmt.Sprintf("it sends %s to Service %s/%s", apiVersionV3, text(service, "namespace"), text(service, "name"))
	if len(m.crds.versions) == 0 {
		m.Raise(string(key), codeAPIServiceLeft.Because("%s, and the snapshot has no CRD of that group: Calico keeps its data elsewhere", sends))
		return
	}
	m.Raise(string(key), codeAPIServiceLeft.Because("%s instead of the CRDs of that group", sends))
	found := m.findInstallation()
	m.operatorSteps(found)
	m.Step("after the restore, delete APIService v3.%s (kubectl delete apiservice v3.%s): kube-apiserver then serves the CRDs of %s",
		groupV3, groupV3, groupV3)
	m.apiServerSteps(found)
}

// automanaged says whether kube-apiserver made the APIService: then it carries the label and names
// no service.
func automanaged(apiService map[string]any) bool {
	labels := objectAt(objectAt(apiService, "metadata"), "labels")
	return text(labels, automanagedLabel) != "" && objectAt(apiService, "spec")["service"] == nil
}
