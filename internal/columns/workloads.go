package columns

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

func deploymentRow(o *appsv1.Deployment) []any {
	names, images := containers(o.Spec.Template.Spec)
	return []any{
		fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 1)), o.Status.UpdatedReplicas, o.Status.AvailableReplicas, names, images, selector(o.Spec.Selector),
	}
}

// selector returns a selector as text.
func selector(s *metav1.LabelSelector) string { return metav1.FormatLabelSelector(s) }

func replicaSetRow(o *appsv1.ReplicaSet) []any {
	names, images := containers(o.Spec.Template.Spec)
	return []any{
		ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ReadyReplicas,
		names, images, selector(o.Spec.Selector),
	}
}

func replicationControllerRow(o *corev1.ReplicationController) []any {
	names, images := "", ""
	if o.Spec.Template != nil {
		names, images = containers(o.Spec.Template.Spec)
	}
	return []any{
		ptr.Deref(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ReadyReplicas,
		names, images, labels.FormatLabels(o.Spec.Selector),
	}
}

func daemonSetRow(o *appsv1.DaemonSet) []any {
	names, images := containers(o.Spec.Template.Spec)
	st := o.Status
	return []any{
		st.DesiredNumberScheduled, st.CurrentNumberScheduled, st.NumberReady, st.UpdatedNumberScheduled, st.NumberAvailable,
		labels.FormatLabels(o.Spec.Template.Spec.NodeSelector), names, images, selector(o.Spec.Selector),
	}
}

func statefulSetRow(o *appsv1.StatefulSet) []any {
	names, images := containers(o.Spec.Template.Spec)
	return []any{fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, ptr.Deref(o.Spec.Replicas, 1)), names, images}
}

func controllerRevisionRow(o *appsv1.ControllerRevision) []any {
	owner := none
	if c := metav1.GetControllerOf(o); c != nil {
		gv, err := schema.ParseGroupVersion(c.APIVersion)
		if err == nil {
			owner = gv.WithKind(c.Kind).GroupKind().String()
			owner = strings.ToLower(owner[:len(c.Kind)]) + owner[len(c.Kind):] + "/" + c.Name
		}
	}
	return []any{owner, o.Revision}
}

func jobRow(o *batchv1.Job, now time.Time) []any {
	names, images := containers(o.Spec.Template.Spec)
	return []any{
		jobStatus(o), jobCompletions(o), jobDuration(o, now), names, images, selector(o.Spec.Selector),
	}
}

func jobStatus(o *batchv1.Job) string {
	is := map[batchv1.JobConditionType]bool{}
	for _, c := range o.Status.Conditions {
		is[c.Type] = c.Status == corev1.ConditionTrue
	}
	switch {
	case is[batchv1.JobComplete]:
		return "Complete"
	case is[batchv1.JobFailed]:
		return "Failed"
	case o.DeletionTimestamp != nil:
		return "Terminating"
	case is[batchv1.JobSuspended]:
		return "Suspended"
	case is[batchv1.JobFailureTarget]:
		return "FailureTarget"
	case is[batchv1.JobSuccessCriteriaMet]:
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func jobCompletions(o *batchv1.Job) string {
	of := "1"
	if o.Spec.Completions != nil {
		of = fmt.Sprint(*o.Spec.Completions)
	} else if p := ptr.Deref(o.Spec.Parallelism, 0); p > 1 {
		of = fmt.Sprintf("1 of %d", p)
	}
	return fmt.Sprintf("%d/%s", o.Status.Succeeded, of)
}

func jobDuration(o *batchv1.Job, now time.Time) string {
	switch {
	case o.Status.StartTime == nil:
		return ""
	case o.Status.CompletionTime == nil:
		return age(*o.Status.StartTime, now)
	}
	return duration.HumanDuration(o.Status.CompletionTime.Sub(o.Status.StartTime.Time))
}

func cronJobRow(o *batchv1.CronJob, now time.Time) []any {
	names, images := containers(o.Spec.JobTemplate.Spec.Template.Spec)
	last := none
	if o.Status.LastScheduleTime != nil {
		last = age(*o.Status.LastScheduleTime, now)
	}
	suspend := unset
	if o.Spec.Suspend != nil {
		suspend = map[bool]string{true: "True", false: "False"}[*o.Spec.Suspend]
	}
	return []any{
		o.Spec.Schedule, cmp.Or(ptr.Deref(o.Spec.TimeZone, ""), none), suspend, len(o.Status.Active), last,
		names, images, selector(o.Spec.JobTemplate.Spec.Selector),
	}
}

func podDisruptionBudgetRow(o *policyv1.PodDisruptionBudget) []any {
	least, most := "N/A", "N/A"
	if o.Spec.MinAvailable != nil {
		least = o.Spec.MinAvailable.String()
	}
	if o.Spec.MaxUnavailable != nil {
		most = o.Spec.MaxUnavailable.String()
	}
	return []any{least, most, o.Status.DisruptionsAllowed}
}

func autoscalerRow(o *autoscalingv2.HorizontalPodAutoscaler) []any {
	least := unset
	if o.Spec.MinReplicas != nil {
		least = fmt.Sprint(*o.Spec.MinReplicas)
	}
	return []any{
		o.Spec.ScaleTargetRef.Kind + "/" + o.Spec.ScaleTargetRef.Name, autoscalerTargets(o), least, o.Spec.MaxReplicas,
		o.Status.CurrentReplicas,
	}
}

// autoscalerTargets returns the current and the wanted value of the first two metrics.
func autoscalerTargets(o *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(o.Spec.Metrics) == 0 {
		return none
	}
	const most = 2
	var texts []string
	for i, m := range o.Spec.Metrics {
		var current *autoscalingv2.MetricStatus
		if i < len(o.Status.CurrentMetrics) {
			current = &o.Status.CurrentMetrics[i]
		}
		texts = append(texts, metricText(m, current))
	}
	text := strings.Join(texts[:min(len(texts), most)], ", ")
	if more := len(texts) - most; more > 0 {
		text += fmt.Sprintf(" + %d more...", more)
	}
	return text
}

func metricText(m autoscalingv2.MetricSpec, st *autoscalingv2.MetricStatus) string {
	if st == nil {
		st = &autoscalingv2.MetricStatus{}
	}
	switch {
	case m.Resource != nil:
		have := ptr.Deref(st.Resource, autoscalingv2.ResourceMetricStatus{}).Current
		return string(m.Resource.Name) + ": " + targetText(m.Resource.Target, have)
	case m.ContainerResource != nil:
		have := ptr.Deref(st.ContainerResource, autoscalingv2.ContainerResourceMetricStatus{}).Current
		return string(m.ContainerResource.Name) + ": " + targetText(m.ContainerResource.Target, have)
	case m.Pods != nil:
		return targetText(m.Pods.Target, ptr.Deref(st.Pods, autoscalingv2.PodsMetricStatus{}).Current)
	case m.Object != nil:
		return averageText(m.Object.Target, ptr.Deref(st.Object, autoscalingv2.ObjectMetricStatus{}).Current)
	case m.External != nil:
		return averageText(m.External.Target, ptr.Deref(st.External, autoscalingv2.ExternalMetricStatus{}).Current)
	}
	return "<unknown type>"
}

// targetText returns the current and the wanted value of a metric counted per pod.
func targetText(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	have := unknown
	if target.AverageValue != nil {
		if current.AverageValue != nil {
			have = current.AverageValue.String()
		}
		return have + "/" + target.AverageValue.String()
	}
	want := "<auto>"
	if target.AverageUtilization != nil {
		want = fmt.Sprintf("%d%%", *target.AverageUtilization)
	}
	if current.AverageUtilization != nil {
		have = fmt.Sprintf("%d%%", *current.AverageUtilization)
	}
	return have + "/" + want
}

// averageText is targetText for a metric that may be counted as a whole.
func averageText(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return targetText(target, current) + " (avg)"
	}
	have, want := unknown, none
	if current.Value != nil {
		have = current.Value.String()
	}
	if target.Value != nil {
		want = target.Value.String()
	}
	return have + "/" + want
}
