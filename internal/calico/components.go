package calico

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// envAPIGroup is the environment variable that sets the group of every Calico component. Without it
// components ask the API server for its groups.
const envAPIGroup = "CALICO_API_GROUP"

// cniConfigKey is the entry of a manifest install's ConfigMap with the CNI configuration of each
// node.
const cniConfigKey = "cni_network_config"

// setComponents makes the components of a manifest install work on v3 records from the first start:
// it sets CALICO_API_GROUP on every container of the workloads (the changed pod template rolls the
// pods), and corrects a CNI configuration that pins another group. An operator would undo changes
// of its workloads. Without set, or if a change is impossible, the change becomes a manual step.
func (i *installation) setComponents(set bool) error {
	i.operatorSteps()
	for _, c := range i.components {
		if i.managed(c) {
			continue
		}
		edit := func(container map[string]any) bool { return setEnv(container, envAPIGroup, apiVersionV3) }
		staged, err := i.editWorkload(c, set, edit, fmt.Sprintf("before its pods start, set %s=%s on every container "+
			"and initContainer of %s", envAPIGroup, apiVersionV3, c))
		if err != nil {
			return err
		}
		if staged {
			i.step("wait until %s has rolled out with %s=%s (kubectl -n %s rollout status %s)",
				c, envAPIGroup, apiVersionV3, transform.ShellWord(c.namespace),
				transform.ShellWord(strings.ToLower(c.kind)+"/"+c.name))
		}
	}
	if len(i.components) == 0 {
		i.step("no workload of Calico is in the snapshot: set %s=%s on the external workload of Calico before it "+
			"starts",
			envAPIGroup, apiVersionV3)
	}
	err := i.objects(schema.GroupResource{Resource: "configmaps"}, func(key keys.Key, entry *transform.Entry) error {
		if key.Name == "calico-config" || key.Name == "canal-config" {
			return i.setCNIConfig(entry, key, set)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return i.apiServerSteps()
}

// editWorkload changes the containers of one workload if set is true. Otherwise, and for an
// unreadable workload, it adds the manual step.
func (i *installation) editWorkload(
	c component, set bool, edit func(container map[string]any) bool, byHand string,
) (staged bool, err error) {
	value, changed, bad := c.value, []string(nil), c.unreadable
	if bad == nil {
		value, changed, bad = editContainers(c.value, edit)
	}
	switch {
	case bad != nil:
		i.Raise(string(c.key), transform.Unreadable(bad))
	case len(changed) == 0:
		return false, nil
	case set:
		return true, i.put(c.key, value)
	}
	i.step("%s", byHand)
	return false, nil
}

// setCNIConfig corrects the CNI configuration of a manifest install that pins another group.
func (i *installation) setCNIConfig(entry *transform.Entry, key keys.Key, set bool) error {
	name := key.Namespace + "/" + key.Name
	meta, err := encoding.ReadMeta(entry.Value)
	if err == nil && ownedByOperator(meta) {
		return nil
	}
	if err == nil {
		err = transform.CheckValue(key, entry.Value)
	}
	var config any
	if err == nil {
		config, err = encoding.Get(entry.Value, "data", cniConfigKey)
	}
	if err != nil {
		i.Raise(string(entry.Key), transform.Unreadable(err))
		i.step("check that %s of ConfigMap %s pins no other %s than %s", cniConfigKey, name,
			apiGroupField, apiVersionV3)
		return nil
	}
	pinned, _ := config.(string)
	unpinned, replaced := unpinAPIGroup(pinned)
	switch {
	case len(replaced) == 0:
		return nil
	case !set:
		i.step("before the pods of calico-node start, set %s to %s in %s of ConfigMap %s (it says %q)",
			apiGroupField, apiVersionV3, cniConfigKey, name, replaced[0])
		return nil
	}
	value, err := encoding.Set(entry.Value, unpinned, "data", cniConfigKey)
	if err != nil {
		i.Raise(string(entry.Key), transform.Unreadable(err))
		return nil
	}
	return i.put(entry.Key, value)
}

// templateGeneration is the annotation with a DaemonSet's template generation, in all groups but
// extensions/v1beta1. A server always writes it (k8s.io/kubernetes pkg/apis/apps/v1,
// Convert_apps_DaemonSet_To_v1_DaemonSet).
const templateGeneration = "deprecated.daemonset.template.generation"

var errGeneration = errors.New("not a number that can be raised by one")

// editContainers changes the containers of a workload, like an API server's update:
// metadata.generation rises by one. A DaemonSet's template generation rises too; otherwise a
// DaemonSet controller does not roll the pods (k8s.io/kubernetes pkg/controller/daemon/util,
// IsPodUpdated). changed lists the changed containers, init containers first. If no container
// changed, out is value.
func editContainers(value []byte, edit func(container map[string]any) bool) (out []byte, changed []string, err error) {
	found, err := encoding.Get(value, podSpec()...)
	if err != nil {
		return nil, nil, err
	}
	pod, _ := found.(map[string]any)
	for _, container := range containers(pod) {
		if edit(container) {
			changed = append(changed, text(container, "name"))
		}
	}
	if len(changed) == 0 {
		return value, nil, nil
	}
	if out, err = encoding.Set(value, pod, podSpec()...); err == nil {
		out, err = raiseGenerations(out)
	}
	return out, changed, err
}

// podSpec returns the path of the pod template's spec.
func podSpec() []string { return []string{"spec", "template", "spec"} }

// containers returns the containers of a pod, init containers first.
func containers(pod map[string]any) (all []map[string]any) {
	for _, name := range []string{"initContainers", "containers"} {
		list, _ := pod[name].([]any)
		for _, element := range list {
			if container, ok := element.(map[string]any); ok {
				all = append(all, container)
			}
		}
	}
	return all
}

// setEnv sets a variable to a literal value in one container. A variable with another value or a
// valueFrom is replaced in place; a missing one is appended.
func setEnv(container map[string]any, name, to string) (changed bool) {
	env, _ := container["env"].([]any)
	named := func(element any) bool { v, _ := element.(map[string]any); return text(v, "name") == name }
	if !slices.ContainsFunc(env, named) {
		container["env"] = append(env, map[string]any{"name": name, "value": to})
		return true
	}
	for _, element := range env {
		v, _ := element.(map[string]any)
		if !named(v) || text(v, "value") == to && v["valueFrom"] == nil {
			continue
		}
		v["value"], changed = to, true
		delete(v, "valueFrom")
	}
	return changed
}

// unsetEnv removes a variable with the given value from one container.
func unsetEnv(container map[string]any, name, is string) (changed bool) {
	env, _ := container["env"].([]any)
	kept := slices.DeleteFunc(slices.Clone(env), func(element any) bool {
		v, _ := element.(map[string]any)
		return text(v, "name") == name && text(v, "value") == is
	})
	if len(kept) == len(env) {
		return false
	}
	if container["env"] = kept; len(kept) == 0 {
		delete(container, "env")
	}
	return true
}

// raiseGenerations increments the generations after a change of the pod template.
func raiseGenerations(value []byte) ([]byte, error) {
	meta, err := encoding.ReadMeta(value)
	if err != nil {
		return nil, err
	}
	if meta.Generation == math.MaxInt64 {
		return nil, fmt.Errorf("metadata.generation: %w", errGeneration)
	}
	out, err := encoding.Set(value, meta.Generation+1, "metadata", "generation")
	switch {
	case err != nil || meta.Kind != "DaemonSet":
		return out, err
	case strings.HasPrefix(meta.APIVersion, "extensions/"):
		is, err := encoding.Get(value, "spec", "templateGeneration")
		if n, _ := is.(int64); err == nil && n < math.MaxInt64 {
			return encoding.Set(out, n+1, "spec", "templateGeneration")
		}
		return nil, fmt.Errorf("spec.templateGeneration: %w", errGeneration)
	}
	counted, found := meta.Annotations[templateGeneration]
	n, err := strconv.ParseInt(counted, 10, 64)
	if !found { // counts as 0, like on a server
		n, err = 0, nil
	}
	if err != nil || n == math.MaxInt64 {
		return nil, fmt.Errorf("metadata.annotations[%s]: %w", templateGeneration, errGeneration)
	}
	return encoding.Set(out, strconv.FormatInt(n+1, 10), "metadata", "annotations", templateGeneration)
}

// apiGroupField is the field of a CNI network configuration that pins the group of the CNI plugin.
// An absent or empty field is set from CALICO_API_GROUP during the plugin's installation on a node.
const apiGroupField = "calico_api_group"

// jsonString matches a JSON string, and the string value that follows a field name.
var jsonString = pattern.New(`(?s)"((?:[^"\\]|\\.)*)"(?:\s*:\s*"((?:[^"\\]|\\.)*)")?`)

// unpinAPIGroup sets every calico_api_group of a CNI network configuration that names another group
// to projectcalico.org/v3, and returns the replaced values. The text is a template (with
// placeholders such as "mtu": __CNI_MTU__), so only its JSON strings are parsed; everything else
// stays. An empty value and a placeholder pin nothing.
func unpinAPIGroup(text string) (out string, replaced []string) {
	var b strings.Builder
	done := 0
	for _, at := range jsonString().FindAllStringSubmatchIndex(text, -1) {
		if text[at[2]:at[3]] != apiGroupField || at[4] < 0 {
			continue
		}
		value := text[at[4]:at[5]]
		if placeholder := strings.HasPrefix(value, "__") && strings.HasSuffix(value, "__"); value == "" ||
			value == apiVersionV3 || placeholder {
			continue
		}
		b.WriteString(text[done:at[4]])
		b.WriteString(apiVersionV3)
		done = at[5]
		replaced = append(replaced, value)
	}
	return b.String() + text[done:], replaced
}
