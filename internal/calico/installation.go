package calico

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// groupOperator is the group of the operator's Installation, the owner of the operator's objects.
const groupOperator = "operator.tigera.io"

// namespaceOperated is the namespace of an operator's Calico.
const namespaceOperated = "calico-system"

// component is a workload of Calico in the snapshot.
type component struct {
	key             []byte
	kind            string // DaemonSet or Deployment
	namespace, name string
	value           []byte // as stored
	meta            encoding.Meta
	pod             map[string]any // spec of the pod template
	unreadable      error          // read error of the value; then meta and pod are empty
}

func (c component) String() string { return c.kind + " " + c.namespace + "/" + c.name }

// read decodes the metadata and the pod template of the workload.
func (c *component) read(key keys.Key) error {
	if err := transform.CheckValue(key, c.value); err != nil {
		return err
	}
	pod, err := encoding.Get(c.value, podSpec()...)
	if err == nil {
		c.pod, _ = pod.(map[string]any)
		c.meta, err = encoding.ReadMeta(c.value)
	}
	return err
}

// installation describes how Calico is installed. Lists are ordered by key.
type installation struct {
	*store
	components []component // workloads that use Calico's records
	operators  []component // tigera-operator
	apiServers []component // the aggregated API server
	declared   bool        // the operator's Installation exists
}

// role returns the list for a workload by its name, equal in every manifest, chart and operator.
func (i *installation) role(kind, name string) *[]component {
	switch kind + " " + name {
	case "DaemonSet calico-node", "DaemonSet calico-node-windows", "DaemonSet canal",
		"Deployment calico-typha", "Deployment calico-kube-controllers":
		return &i.components
	case "Deployment tigera-operator":
		return &i.operators
	case "Deployment calico-apiserver":
		return &i.apiServers
	}
	return nil
}

// findInstallation finds Calico's workloads in all namespaces.
func findInstallation(s *store) (*installation, error) {
	found := &installation{store: s}
	for kind, plural := range map[string]string{"DaemonSet": "daemonsets", "Deployment": "deployments"} {
		err := s.objects(schema.GroupResource{Group: "apps", Resource: plural},
			func(key keys.Key, entry *transform.Entry) error {
				if role := found.role(kind, key.Name); role != nil {
					c := component{key: entry.Key, kind: kind, namespace: key.Namespace, name: key.Name,
						value: entry.Value}
					c.unreadable = c.read(key)
					*role = append(*role, c)
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	for _, list := range [][]component{found.components, found.operators, found.apiServers} {
		slices.SortFunc(list, func(a, b component) int { return cmp.Compare(string(a.key), string(b.key)) })
	}
	err := s.each(s.keys.Dir(schema.GroupResource{Group: groupOperator, Resource: "installations"}),
		func(*transform.Entry) error {
			found.declared = true
			return nil
		})
	return found, err
}

// operated reports whether an operator exists or existed.
func (i *installation) operated() bool { return i.declared || len(i.operators) > 0 }

// managed reports whether the operator made a workload and would undo changes of it.
func (i *installation) managed(c component) bool {
	return c.namespace == namespaceOperated && i.operated() || ownedByOperator(c.meta)
}

func ownedByOperator(meta encoding.Meta) bool {
	return slices.ContainsFunc(meta.OwnerReferences, func(ref encoding.OwnerReference) bool {
		return strings.HasPrefix(ref.APIVersion, groupOperator+"/")
	})
}

// operatorSteps adds the steps for an operator, which chooses the group when it starts.
func (i *installation) operatorSteps() {
	if !slices.ContainsFunc(i.components, i.managed) && !i.operated() {
		return
	}
	operator, restart := "the operator", "restart it"
	if len(i.operators) > 0 {
		c := i.operators[0]
		operator = c.String()
		restart = fmt.Sprintf("kubectl -n %s set env %s %s=%s",
			transform.ShellWord(c.namespace), transform.ShellWord("deployment/"+c.name), envAPIGroup, apiVersionV3)
	}
	i.step("after the restore, restart %s first, in v3 mode (%s): as it runs now it re-creates the aggregated "+
		"APIService v3.%s and goes on with %s",
		operator, restart, groupV3, groupV1)
	i.step("then check that APIService v3.%s names no service (kubectl get apiservice v3.%s); delete it if it does, "+
		"after the operator was restarted",
		groupV3, groupV3)
	i.step("wait until the operator has rolled out Calico with %s=%s; it removes its API server by itself",
		envAPIGroup, apiVersionV3)
}

// apiServerSteps adds steps that remove the aggregated API server: its group is gone.
func (i *installation) apiServerSteps() error {
	drop := func(namespace, name string) error {
		entry, err := i.get(i.serviceKey(namespace, name))
		if entry != nil {
			i.step("after the restore, delete the old API server's Service %s/%s", namespace, name)
		}
		return err
	}
	for _, c := range i.apiServers {
		if i.managed(c) {
			continue
		}
		i.step("after the restore, delete Calico's old API server, %s", c)
		if err := drop(c.namespace, "calico-api"); err != nil {
			return err
		}
	}
	if len(i.apiServers) > 0 && i.managed(i.apiServers[0]) {
		return nil
	}
	obj, _, err := i.read(i.apiServiceKey(groupV3, "v3"))
	if service := objectAt(objectAt(obj, "spec"), "service"); text(service, "name") != "" {
		return drop(text(service, "namespace"), text(service, "name"))
	}
	return err
}

func (s *store) serviceKey(namespace, name string) []byte {
	return s.key(schema.GroupResource{Resource: "services"}, namespace, name)
}

// automanagedLabel marks the APIServices made by kube-apiserver, for its own groups and for CRDs.
const automanagedLabel = "kube-aggregator.kubernetes.io/automanaged"

// apiServiceKey returns the key of the APIService of a group's version.
func (s *store) apiServiceKey(group, version string) []byte {
	return s.key(schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}, "", version+"."+group)
}

// removeAggregatedAPIService deletes the APIService that sends projectcalico.org/v3 to Calico's own
// API server, since this APIService prevents the serving of the CRDs. The report keeps the
// APIService. kube-apiserver creates a local APIService when it starts; an existing local
// APIService stays.
func (s *store) removeAggregatedAPIService() error {
	key := s.apiServiceKey(groupV3, "v3")
	entry, err := s.get(key)
	if entry == nil || err != nil {
		return err
	}
	obj, _, err := encoding.DecodeObject(entry.Value)
	switch {
	case err != nil:
		s.Raise(string(key), transform.Unreadable(err))
		s.step("after the restore, delete APIService v3.%s if it names a service: while it is there, the CRDs "+
			"are not served", groupV3)
		return nil
	case automanaged(obj):
		return nil
	}
	if err := s.Save(s.ctx, key, obj); err != nil {
		return err
	}
	return s.Delete(s.ctx, key)
}

// reportAggregatedAPIService is for a snapshot without the v1 group. It reports an APIService that
// still sends projectcalico.org/v3 to Calico's own API server: the data may be elsewhere.
func (s *store) reportAggregatedAPIService(hasCRDs bool) error {
	key := s.apiServiceKey(groupV3, "v3")
	entry, err := s.get(key)
	if entry == nil || err != nil {
		return err
	}
	obj, _, err := encoding.DecodeObject(entry.Value)
	if err != nil && entry.Undecryptable != nil {
		s.Raise(string(key), codeAPIServiceLeft.Because("it cannot be read: %v", err))
	}
	if err != nil || automanaged(obj) { // eachReferrer reports an undecodable one
		return nil
	}
	service := objectAt(objectAt(obj, "spec"), "service")
	sends := fmt.Sprintf("it sends %s to Service %s/%s", apiVersionV3, text(service, "namespace"),
		text(service, "name"))
	if !hasCRDs {
		s.Raise(string(key), codeAPIServiceLeft.Because("%s, and the snapshot has no CRD of that group: Calico keeps "+
			"its data elsewhere", sends))
		return nil
	}
	s.Raise(string(key), codeAPIServiceLeft.Because("%s instead of the CRDs of that group", sends))
	found, err := findInstallation(s)
	if err != nil {
		return err
	}
	found.operatorSteps()
	s.step("after the restore, delete APIService v3.%s (kubectl delete apiservice v3.%s): kube-apiserver then serves "+
		"the CRDs of %s",
		groupV3, groupV3, groupV3)
	return found.apiServerSteps()
}

// automanaged reports whether kube-apiserver made the APIService: it has the label and no service.
func automanaged(apiService map[string]any) bool {
	labels := objectAt(objectAt(apiService, "metadata"), "labels")
	return text(labels, automanagedLabel) != "" && objectAt(apiService, "spec")["service"] == nil
}
