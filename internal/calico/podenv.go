package calico

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
)

// templateGeneration is the annotation with a DaemonSet's template generation, in all groups but
// extensions/v1beta1. A server always writes it (k8s.io/kubernetes pkg/apis/apps/v1,
// Convert_apps_DaemonSet_To_v1_DaemonSet).
const templateGeneration = "deprecated.daemonset.template.generation"

var errGeneration = errors.New("not a number that can be raised by one")

// setPodEnv sets an environment variable to a literal value in every container and init container
// of a workload, as an API server's update would: metadata.generation rises by one. For a DaemonSet
// its template generation rises too, else a DaemonSet controller does not roll the pods
// (k8s.io/kubernetes pkg/controller/daemon/util, IsPodUpdated).
//
// A variable of that name with another value, or with a valueFrom, is replaced in its position;
// else it is added at the end. changed names the changed containers, init containers first; for
// none out is value.
func setPodEnv(value []byte, name, to string) (out []byte, changed []string, err error) {
	return editContainers(value, func(container map[string]any) bool { return setEnv(container, name, to) })
}

// unsetPodEnv removes an environment variable from the containers that have it with that value.
func unsetPodEnv(value []byte, name, is string) (out []byte, changed []string, err error) {
	return editContainers(value, func(container map[string]any) bool {
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
	})
}

// editContainers changes the containers of a workload. changed names those for which edit says so.
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

// podSpec is the path of the pod template's spec.
func podSpec() []string { return []string{"spec", "template", "spec"} }

// containers are those of a pod, init containers first.
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

// setEnv sets the variable in one container.
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

// raiseGenerations counts a change of the pod template.
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
	if !found { // counts as 0, as on a server
		n, err = 0, nil
	}
	if err != nil || n == math.MaxInt64 {
		return nil, fmt.Errorf("metadata.annotations[%s]: %w", templateGeneration, errGeneration)
	}
	return encoding.Set(out, strconv.FormatInt(n+1, 10), "metadata", "annotations", templateGeneration)
}
