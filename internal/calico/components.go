package calico

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// envAPIGroup is the environment variable by which every Calico component chooses its group.
// Without it components ask the API server for its groups.
const envAPIGroup = "CALICO_API_GROUP"

// cniConfigKey is the entry of a manifest install's ConfigMap that becomes the CNI configuration of
// each node.
const cniConfigKey = "cni_network_config"

// setComponents has the components of a manifest install work on v3 records from their first start.
// It sets CALICO_API_GROUP on every container of their workloads, which roll for the changed pod
// template, and corrects a CNI configuration that pins another group. An operator would undo
// changes of its workloads. All that is not done, as everything without Options.SetAPIGroup,
// becomes a step by hand.
func (m *run) setComponents() {
	found := m.findInstallation()
	m.operatorSteps(found)
	for _, c := range found.components {
		if !found.managed(c) {
			m.setWorkload(c)
		}
	}
	if len(found.components) == 0 {
		m.Step("no workload of Calico is in the snapshot: set %s=%s on whatever runs it, before it starts", envAPIGroup, apiVersionV3)
	}
	m.setCNIConfigs()
	m.apiServerSteps(found)
}

// setWorkload sets the variable on all containers of one workload.
func (m *run) setWorkload(c component) {
	byHand := func() {
		m.Step("before its pods start, set %s=%s on every container and initContainer of %s", envAPIGroup, apiVersionV3, c)
	}
	value, changed, err := c.value, []string(nil), c.unreadable
	if err == nil {
		value, changed, err = setPodEnv(c.value, envAPIGroup, apiVersionV3)
	}
	if err != nil {
		m.Raise(string(c.key), transform.Unreadable(err))
		byHand()
		return
	}
	switch {
	case len(changed) == 0:
		return
	case !m.opts.SetAPIGroup:
		byHand()
		return
	}
	m.Step("wait until %s has rolled out with %s=%s (kubectl -n %s rollout status %s)",
		c, envAPIGroup, apiVersionV3, transform.ShellWord(c.namespace), transform.ShellWord(strings.ToLower(c.kind)+"/"+c.name))
	m.Put(c.key, value)
}

// setCNIConfigs corrects the CNI configurations of manifest installs that pin another group.
func (m *run) setCNIConfigs() {
	for key, entry := range m.Objects(schema.GroupResource{Resource: "configmaps"}) {
		if key.Name == "calico-config" || key.Name == "canal-config" {
			m.setCNIConfig(entry, key)
		}
	}
}

func (m *run) setCNIConfig(entry *transform.Entry, key keys.Key) {
	name := key.Namespace + "/" + key.Name
	meta, err := encoding.ReadMeta(entry.Value)
	if err == nil && ownedByOperator(meta) {
		return
	}
	if err == nil {
		err = transform.CheckValue(key, entry.Value)
	}
	var config any
	if err == nil {
		config, err = encoding.Get(entry.Value, "data", cniConfigKey)
	}
	if err != nil {
		m.Raise(string(entry.Key), transform.Unreadable(err))
		m.Step("check that %s of ConfigMap %s pins no other %s than %s", cniConfigKey, name, apiGroupField, apiVersionV3)
		return
	}
	pinned, _ := config.(string)
	unpinned, replaced := unpinAPIGroup(pinned)
	if len(replaced) == 0 {
		return
	}
	if !m.opts.SetAPIGroup {
		m.Step("before the pods of calico-node start, set %s to %s in %s of ConfigMap %s (it says %q)",
			apiGroupField, apiVersionV3, cniConfigKey, name, replaced[0])
		return
	}
	value, err := encoding.Set(entry.Value, unpinned, "data", cniConfigKey)
	if err != nil {
		m.Raise(string(entry.Key), transform.Unreadable(err))
		return
	}
	m.Put(entry.Key, value)
}

// operatorSteps adds the steps for an operator, which chooses the group when it starts.
func (m *run) operatorSteps(found *installation) {
	if !slices.ContainsFunc(found.components, found.managed) && !found.operated() {
		return
	}
	operator, restart := "the operator", "restart it"
	if len(found.operators) > 0 {
		c := found.operators[0]
		operator = c.String()
		restart = fmt.Sprintf("kubectl -n %s set env %s %s=%s",
			transform.ShellWord(c.namespace), transform.ShellWord("deployment/"+c.name), envAPIGroup, apiVersionV3)
	}
	m.Step("after the restore, restart %s first, in v3 mode (%s): as it runs now it re-creates the aggregated APIService v3.%s and goes on with %s",
		operator, restart, groupV3, groupV1)
	m.Step("then check that APIService v3.%s names no service (kubectl get apiservice v3.%s); delete it if it does, after the operator was restarted",
		groupV3, groupV3)
	m.Step("wait until the operator has rolled out Calico with %s=%s; it removes its API server by itself", envAPIGroup, apiVersionV3)
}

// apiServerSteps adds steps that remove the aggregated API server: the group it reads is gone.
func (m *run) apiServerSteps(found *installation) {
	drop := func(namespace, name string) {
		key := m.Keys.Format(keys.Key{Resource: schema.GroupResource{Resource: "services"}, Namespace: namespace, Name: name})
		if m.Get(key) != nil {
			m.Step("after the restore, delete the old API server's Service %s/%s", namespace, name)
		}
	}
	for _, c := range found.apiServers {
		if found.managed(c) {
			continue
		}
		m.Step("after the restore, delete Calico's old API server, %s", c)
		drop(c.namespace, "calico-api")
	}
	if len(found.apiServers) > 0 && found.managed(found.apiServers[0]) {
		return
	}
	obj, _ := m.Read(m.apiServiceKey(groupV3, "v3"))
	if service := objectAt(objectAt(obj, "spec"), "service"); text(service, "name") != "" {
		drop(text(service, "namespace"), text(service, "name"))
	}
}
