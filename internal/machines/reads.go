package machines

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
)

// reads decode kinds of which a cluster has many: not the fields that tie nothing to a
// machine.
type reads struct {
	pod       func(*inspect.Entry) (*corev1.Pod, error)
	secret    func(*inspect.Entry) (*corev1.Secret, error)
	service   func(*inspect.Entry) (*corev1.Service, error)
	volume    func(*inspect.Entry) (*corev1.PersistentVolume, error)
	workloads map[string]func(*inspect.Entry) *corev1.PodSpec // by resource; nil of one that starts no Pods
}

// newReads returns reads that may leave out fields that used does not list of its structs.
func newReads(used map[reflect.Type][]string) reads {
	return reads{
		partly[corev1.Pod](used), partly[corev1.Secret](used), partly[corev1.Service](used), partly[corev1.PersistentVolume](used),
		map[string]func(*inspect.Entry) *corev1.PodSpec{
			"deployments.apps":  template(used, func(o *appsv1.Deployment) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"statefulsets.apps": template(used, func(o *appsv1.StatefulSet) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"daemonsets.apps":   template(used, func(o *appsv1.DaemonSet) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"jobs.batch":        template(used, func(o *batchv1.Job) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"replicasets.apps": template(used, func(o *appsv1.ReplicaSet) *corev1.PodSpec {
				return ownTemplate(o.OwnerReferences, &o.Spec.Template.Spec)
			}),
			"podtemplates": template(used, func(o *corev1.PodTemplate) *corev1.PodSpec { return &o.Template.Spec }),
			"replicationcontrollers": template(used, func(o *corev1.ReplicationController) *corev1.PodSpec {
				if o.Spec.Template == nil {
					return nil
				}
				return ownTemplate(o.OwnerReferences, &o.Spec.Template.Spec)
			}),
			"cronjobs.batch": template(used, func(o *batchv1.CronJob) *corev1.PodSpec { return &o.Spec.JobTemplate.Spec.Template.Spec }),
		},
	}
}

// partly returns a native.As that may leave out fields.
func partly[T any](used map[reflect.Type][]string) func(*inspect.Entry) (*T, error) {
	direct := native.NewDirect(new(T), used)
	return func(e *inspect.Entry) (*T, error) {
		out := new(T)
		if v, err := e.ParseValue(); err == nil && direct.Decode(v, out) {
			return out, nil
		}
		all, err := native.As[T](e.ParseValue())
		return &all, err
	}
}

// template returns what reads the template of Pods in an object.
func template[T any](used map[reflect.Type][]string, of func(*T) *corev1.PodSpec) func(*inspect.Entry) *corev1.PodSpec {
	read := partly[T](used)
	return func(e *inspect.Entry) *corev1.PodSpec {
		o, err := read(e)
		if err != nil {
			return nil // others report what does not decode
		}
		return of(o)
	}
}

// tied lists the fields of large structs that tie an object to a machine.
func tied() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[metav1.ObjectMeta]():  {"Annotations", "OwnerReferences"},
		reflect.TypeFor[corev1.PodSpec]():     {"NodeName", "NodeSelector", "Affinity"},
		reflect.TypeFor[corev1.PodStatus]():   {"Phase"},
		reflect.TypeFor[corev1.Secret]():      {"Type", "Data"},
		reflect.TypeFor[corev1.ServiceSpec](): {"Type", "ExternalIPs", "Ports"},
	}
}

// ownTemplate is the template of a workload that no other one makes, which counts itself.
func ownTemplate(owners []metav1.OwnerReference, spec *corev1.PodSpec) *corev1.PodSpec {
	for _, o := range owners {
		if o.Controller != nil && *o.Controller {
			return nil
		}
	}
	return spec
}
