package native

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// Quota adds up what the objects of a namespace use of a ResourceQuota, as the quota controller of
// the linked release does.
type Quota struct {
	of         *corev1.ResourceQuota
	evaluators map[schema.GroupResource]quota.Evaluator
	used       corev1.ResourceList
}

// NewQuota returns a Quota without usage. At now, a Pod whose grace period is over uses nothing.
func NewQuota(q *corev1.ResourceQuota, now time.Time) *Quota {
	of := q.DeepCopy()
	of.Status.Hard = of.Spec.Hard // the evaluators read the status
	c := &Quota{of: of, evaluators: map[schema.GroupResource]quota.Evaluator{}, used: corev1.ResourceList{}}
	for _, e := range []quota.Evaluator{
		core.NewPodEvaluator(nil, still{moment: moment{now}}), core.NewServiceEvaluator(nil),
		core.NewPersistentVolumeClaimEvaluator(nil), core.NewResourceClaimEvaluator(nil, nil, nil, nil),
	} {
		c.evaluators[e.GroupResource()] = e
	}
	return c
}

// still is a clock that stands still.
type still struct {
	clock.RealClock
	moment
}

// Now returns the moment.
func (s still) Now() time.Time { return s.moment.Now() }

// Since returns the time from t to the moment.
func (s still) Since(t time.Time) time.Duration { return s.moment.Since(t) }

// evaluator returns the evaluator of a type, and whether it only counts the objects.
func (q *Quota) evaluator(of schema.GroupResource) (e quota.Evaluator, counted bool) {
	if e := q.evaluators[of]; e != nil {
		return e, false
	}
	// the names of counts without "count/" (pkg/quota/v1/evaluator/core/registry.go)
	var alias corev1.ResourceName
	if of.Group == "" && slices.Contains([]string{"configmaps", "resourcequotas", "replicationcontrollers", "secrets"},
		of.Resource) {
		alias = corev1.ResourceName(of.Resource)
	}
	return generic.NewObjectCountEvaluator(of, nil, alias), true
}

// Counts reports whether the quota limits objects of a type.
func (q *Quota) Counts(of schema.GroupResource) bool {
	e, _ := q.evaluator(of)
	return len(e.MatchingResources(slices.Collect(maps.Keys(q.of.Spec.Hard)))) > 0
}

// Add adds the usage of an object of a type. Values of types that are only counted are not decoded.
// Errors are those of Decode, or that the value does not fit its kind.
func (q *Quota) Add(of schema.GroupResource, value []byte) (err error) {
	e, counted := q.evaluator(of)
	var obj runtime.Object
	if !counted {
		content, err := Decode(value)
		if err != nil {
			return err
		}
		u := unstructured.Unstructured{Object: content}
		fits := false
		if obj, fits = defaulted(u.GroupVersionKind(), content); !fits {
			return errUnfit
		}
	}
	if matches, err := e.Matches(q.of, obj); err != nil || !matches {
		return err
	}
	used, err := e.Usage(obj)
	q.used = quota.Add(q.used, used)
	return err
}

// Uses reports whether the objects use a resource.
func (q *Quota) Uses(resource string) bool {
	used := q.used[corev1.ResourceName(resource)]
	return used.Sign() > 0
}

// Excess is a resource with its usage, and the lower limit of the quota, as quantities.
type Excess struct{ Resource, Used, Allowed string }

// Exceeded returns the resources whose limit is exceeded, sorted.
func (q *Quota) Exceeded() (all []Excess) {
	_, names := quota.LessThanOrEqual(q.used, q.of.Spec.Hard)
	for _, name := range slices.Sorted(slices.Values(names)) {
		used, hard := q.used[name], q.of.Spec.Hard[name]
		all = append(all, Excess{string(name), used.String(), hard.String()})
	}
	return all
}
