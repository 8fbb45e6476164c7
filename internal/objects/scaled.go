package objects

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// workload has the fields of a workload, or of a Pod, that decide which Pods stay.
type workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas    *int64 `json:"replicas"`
		Parallelism *int64 `json:"parallelism"`
		Suspend     bool   `json:"suspend"` // of a Job
		Paused      bool   `json:"paused"`  // of a Deployment
		Template    any    `json:"template"`
		Ordinals    struct {
			Start int64 `json:"start"`
		} `json:"ordinals"`
		Strategy struct {
			Type string `json:"type"`
		} `json:"strategy"` // of a Deployment
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int64 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		Templates []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"volumeClaimTemplates"`
		Retention struct {
			WhenScaled string `json:"whenScaled"`
		} `json:"persistentVolumeClaimRetentionPolicy"`
	} `json:"spec"`
}

// member has the owners of a Pod or a ReplicaSet, and the phase of a Pod.
type member struct {
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// scaled is a workload before and after its change.
type scaled struct {
	key           keys.Key
	before, after workload
}

// scale remembers a changed object whose Pods may be deleted because of the change.
func (f *Freed) scale(e *transform.Entry, key keys.Key, content map[string]any) {
	switch key.Resource.String() {
	case pods, replicaSets, "deployments.apps", "statefulsets.apps", "replicationcontrollers",
		"daemonsets.apps", "jobs.batch":
	default:
		return
	}
	s, of := scaled{key: key}, runtime.DefaultUnstructuredConverter
	before, err := native.Decode(e.Value)
	if err != nil || cmp.Or(of.FromUnstructured(before, &s.before), of.FromUnstructured(content, &s.after)) != nil {
		return // undecodable values are reported elsewhere
	}
	switch {
	case s.before.DeletionTimestamp != nil:
	case key.Resource.String() != pods:
		f.scaled = append(f.scaled, s)
	case s.after.DeletionTimestamp != nil:
		f.goes(e, "is being deleted")
	}
}

// keeps reports whether a workload keeps its Pod. A Job deletes no Pod that has ended.
func (w *workload) keeps(pod *member) bool {
	wanted := int64(1)
	for _, n := range []*int64{w.Spec.Replicas, w.Spec.Parallelism} {
		if n != nil {
			wanted = *n
		}
	}
	switch {
	case w.DeletionTimestamp != nil:
		return false
	case w.Kind == "Job" && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed):
		return true
	case w.Kind == "StatefulSet":
		ordinal := w.ordinal(pod)
		return ordinal < 0 || ordinal >= w.Spec.Ordinals.Start && ordinal < w.Spec.Ordinals.Start+wanted
	}
	return wanted > 0 && !w.Spec.Suspend
}

// ordinal returns the number of a Pod of a StatefulSet, -1 for a name without one.
func (w *workload) ordinal(pod *member) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(pod.Name, w.Name+"-"), 10, 32)
	if err != nil {
		return -1
	}
	return n
}

// replaces reports whether a workload with a changed template ends a Pod before the replacement
// exists. A Deployment with another strategy than Recreate waits: no new Pod starts on a claim in
// deletion.
func (w *workload) replaces(pod *member, before *workload) bool {
	if reflect.DeepEqual(w.Spec.Template, before.Spec.Template) {
		return false
	}
	switch w.Kind {
	case "Deployment":
		return w.Spec.Strategy.Type == "Recreate" && !w.Spec.Paused
	case "DaemonSet":
		return w.Spec.UpdateStrategy.Type != "OnDelete"
	case "StatefulSet":
		update := w.Spec.UpdateStrategy
		return update.Type != "OnDelete" && w.ordinal(pod) >= update.RollingUpdate.Partition
	}
	return false
}

// follow records the Pods that a changed workload no longer wants, and the claims that a
// StatefulSet deletes with them.
func (f *Freed) follow(ctx context.Context, s scaled) error {
	storage, owners := f.storage(s.key.Prefix), map[types.UID]bool{s.before.UID: true}
	owned := func(m *member) bool {
		controller := metav1.GetControllerOfNoCopy(m)
		return controller != nil && owners[controller.UID]
	}
	if s.before.Kind == "Deployment" {
		sets := map[types.UID]bool{}
		err := machines.Each(ctx, storage, replicaSets, s.key.Namespace, func(_ *transform.Entry, set *member) error {
			sets[set.UID] = owned(set)
			return nil
		})
		if err != nil {
			return err
		}
		owners = sets
		owners[s.before.UID] = true
	}
	return machines.Each(ctx, storage, pods, s.key.Namespace, func(e *transform.Entry, pod *member) error {
		if owned(pod) {
			f.followPod(s, e, pod)
		}
		return nil
	})
}

// followPod records a Pod of a changed workload.
func (f *Freed) followPod(s scaled, e *transform.Entry, pod *member) {
	switch {
	case !s.before.keeps(pod):
		return
	case s.after.keeps(pod):
		if s.after.replaces(pod, &s.before) {
			f.goes(e, fmt.Sprintf("is deleted, because %s %s replaces it", s.after.Kind, s.after.Name))
		}
		return
	}
	f.goes(e, fmt.Sprintf("is deleted, because %s %s no longer wants it", s.after.Kind, s.after.Name))
	if s.after.Spec.Retention.WhenScaled != "Delete" || s.after.DeletionTimestamp != nil {
		return
	}
	for _, t := range s.after.Spec.Templates {
		f.note(holding{s.key.Prefix, claims, s.key.Namespace, t.Metadata.Name + "-" + pod.Name},
			held{scaled: s.after.Name})
	}
}
