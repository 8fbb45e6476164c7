package calico

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// groupOperator is the group of the operator's Installation, which owns the operator's objects.
const groupOperator = "operator.tigera.io"

// namespaceOperated is where the operator puts Calico.
const namespaceOperated = "calico-system"

// component is a workload of Calico in the snapshot.
type component struct {
	key             []byte
	kind            string // DaemonSet or Deployment
	namespace, name string
	value           []byte // as stored
	meta            encoding.Meta
	pod             map[string]any // spec of the pod template
	unreadable      error          // the value could not be read, and meta and pod are empty
}

func (c component) String() string { return c.kind + " " + c.namespace + "/" + c.name }

// read decodes the metadata and the pods of the workload.
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

// installation is how Calico is installed. Lists are in the order of keys.
type installation struct {
	components []component // workloads that use Calico's records
	operators  []component // tigera-operator
	apiServers []component // the aggregated API server
	declared   bool        // there is an Installation for the operator
}

// role tells a workload by the name that every manifest, chart and operator gives it.
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

// findInstallation looks for Calico's workloads in every namespace.
func (m *run) findInstallation() *installation {
	found := &installation{}
	for kind, plural := range map[string]string{"DaemonSet": "daemonsets", "Deployment": "deployments"} {
		for key, entry := range m.Objects(schema.GroupResource{Group: "apps", Resource: plural}) {
			if role := found.role(kind, key.Name); role != nil {
				c := component{key: entry.Key, kind: kind, namespace: key.Namespace, name: key.Name, value: entry.Value}
				c.unreadable = c.read(key)
				*role = append(*role, c)
			}
		}
	}
	for _, list := range [][]component{found.components, found.operators, found.apiServers} {
		slices.SortFunc(list, func(a, b component) int { return cmp.Compare(string(a.key), string(b.key)) })
	}
	for range m.Live(m.Keys.Dir(schema.GroupResource{Group: groupOperator, Resource: "installations"})) {
		found.declared = true
		break
	}
	return found
}

// operated says whether there is or was an operator.
func (i *installation) operated() bool { return i.declared || len(i.operators) > 0 }

// managed says whether the operator made a workload and would undo changes of it.
func (i *installation) managed(c component) bool {
	return c.namespace == namespaceOperated && i.operated() || ownedByOperator(c.meta)
}

func ownedByOperator(meta encoding.Meta) bool {
	return slices.ContainsFunc(meta.OwnerReferences, func(ref encoding.OwnerReference) bool {
		return strings.HasPrefix(ref.APIVersion, groupOperator+"/")
	})
}
