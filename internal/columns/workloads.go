package columns

import (
	"cmp"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// containers returns the names and the images of a pod's containers, and the cells after them.
func containers(spec corev1.PodSpec, after ...any) []any {
	names := stream.Mapped(spec.Containers, func(c corev1.Container) string { return c.Name })
	images := stream.Mapped(spec.Containers, func(c corev1.Container) string { return c.Image })
	return append([]any{strings.Join(names, ","), strings.Join(images, ",")}, after...)
}

func controllerRevisionCells(o *appsv1.ControllerRevision) []any {
	owner := none
	if c := metav1.GetControllerOf(o); c != nil {
		if gv, err := schema.ParseGroupVersion(c.APIVersion); err == nil {
			owner = schema.GroupKind{Group: gv.Group, Kind: strings.ToLower(c.Kind)}.String() + "/" + c.Name
		}
	}
	return []any{owner, o.Revision}
}

func jobCells(o *batchv1.Job) []any {
	completions := orElse(o.Spec.Completions, "1")
	if p := o.Spec.Parallelism; o.Spec.Completions == nil && p != nil && *p > 1 {
		completions = fmt.Sprintf("1 of %d", *p)
	}
	var took any = ""
	switch start, end := o.Status.StartTime, o.Status.CompletionTime; {
	case start != nil && end != nil:
		took = duration.HumanDuration(end.Sub(start.Time))
	case start != nil:
		took = *start
	}
	return append([]any{jobStatus(o), fmt.Sprintf("%d/%v", o.Status.Succeeded, completions), took},
		containers(o.Spec.Template.Spec, metav1.FormatLabelSelector(o.Spec.Selector))...)
}

func jobStatus(o *batchv1.Job) batchv1.JobConditionType {
	const terminating = "Terminating"
	is := map[batchv1.JobConditionType]bool{}
	for _, c := range o.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	is[terminating] = o.DeletionTimestamp != nil
	for _, status := range []batchv1.JobConditionType{
		batchv1.JobComplete, batchv1.JobFailed, terminating, batchv1.JobSuspended, batchv1.JobFailureTarget,
		batchv1.JobSuccessCriteriaMet,
	} {
		if is[status] {
			return status
		}
	}
	return "Running"
}

func cronJobCells(o *batchv1.CronJob) []any {
	suspend := unset
	if s := o.Spec.Suspend; s != nil {
		suspend = map[bool]string{true: "True", false: "False"}[*s]
	}
	return append([]any{
		o.Spec.Schedule, cmp.Or(ptr.Deref(o.Spec.TimeZone, ""), none), suspend, len(o.Status.Active),
		orElse(o.Status.LastScheduleTime, none),
	}, containers(o.Spec.JobTemplate.Spec.Template.Spec,
		metav1.FormatLabelSelector(o.Spec.JobTemplate.Spec.Selector))...)
}

func autoscalerCells(o *autoscalingv2.HorizontalPodAutoscaler) []any {
	return []any{o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name, autoscalerTargets(o),
		orElse(o.Spec.MinReplicas, unset), o.Spec.MaxReplicas, o.Status.CurrentReplicas}
}

// autoscalerTargets returns the current and target values of the first two metrics.
func autoscalerTargets(o *autoscalingv2.HorizontalPodAutoscaler) string {
	var texts []string
	for i, m := range o.Spec.Metrics {
		var current autoscalingv2.MetricStatus
		if i < len(o.Status.CurrentMetrics) {
			current = o.Status.CurrentMetrics[i]
		}
		texts = append(texts, metricText(m, current))
	}
	return cmp.Or(first(2, texts, ", "), none)
}

func metricText(m autoscalingv2.MetricSpec, st autoscalingv2.MetricStatus) string {
	switch {
	case m.Resource != nil:
		current := ptr.Deref(st.Resource, autoscalingv2.ResourceMetricStatus{}).Current
		return string(m.Resource.Name) + ": " + targetText(m.Resource.Target, current)
	case m.ContainerResource != nil:
		current := ptr.Deref(st.ContainerResource, autoscalingv2.ContainerResourceMetricStatus{}).Current
		return string(m.ContainerResource.Name) + ": " + targetText(m.ContainerResource.Target, current)
	case m.Pods != nil:
		return targetText(m.Pods.Target, ptr.Deref(st.Pods, autoscalingv2.PodsMetricStatus{}).Current)
	case m.Object != nil:
		return averageText(m.Object.Target, ptr.Deref(st.Object, autoscalingv2.ObjectMetricStatus{}).Current)
	case m.External != nil:
		return averageText(m.External.Target, ptr.Deref(st.External, autoscalingv2.ExternalMetricStatus{}).Current)
	}
	return "<unknown type>"
}

// targetText shows a metric counted for each pod: the current value and the target.
func targetText(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return textOr(current.AverageValue, unknown) + "/" + textOr(target.AverageValue, "")
	}
	percent := func(n *int32, instead string) string {
		if n == nil {
			return instead
		}
		return fmt.Sprintf("%d%%", *n)
	}
	return percent(current.AverageUtilization, unknown) + "/" + percent(target.AverageUtilization, "<auto>")
}

// averageText shows a metric counted for each pod or in total.
func averageText(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return targetText(target, current) + " (avg)"
	}
	return textOr(current.Value, unknown) + "/" + textOr(target.Value, none)
}

// textOr returns the text of a non-nil pointer, or instead.
func textOr[P interface {
	comparable
	fmt.Stringer
}](p P, instead string) string {
	if p == *new(P) {
		return instead
	}
	return p.String()
}
