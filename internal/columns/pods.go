package columns

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func podRow(p *corev1.Pod, now time.Time) []any {
	s := podState(p)
	restarts := fmt.Sprint(s.restarts)
	if s.restarts > 0 && !s.lastRestart.IsZero() {
		restarts += fmt.Sprintf(" (%s ago)", age(s.lastRestart, now))
	}
	gates := none
	if n := len(p.Spec.ReadinessGates); n > 0 {
		met := 0
		for _, gate := range p.Spec.ReadinessGates {
			for _, c := range p.Status.Conditions {
				if c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue {
					met++
				}
			}
		}
		gates = fmt.Sprintf("%d/%d", met, n)
	}
	ip := p.Status.PodIP
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return []any{
		fmt.Sprintf("%d/%d", s.ready, s.containers), s.reason, restarts,
		cmp.Or(ip, none), cmp.Or(p.Spec.NodeName, none), cmp.Or(p.Status.NominatedNodeName, none), gates,
	}
}

// state sums up the containers of a pod.
type state struct {
	containers, ready int
	restarts          int32
	lastRestart       metav1.Time
	reason            string
}

// podState takes the reason from the first init container that is not done, else from the last container that waits or
// ended. Restarts are counted of those containers, and of sidecars.
func podState(p *corev1.Pod) state {
	s := state{containers: len(p.Spec.Containers), reason: cmp.Or(p.Status.Reason, string(p.Status.Phase))}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.containers++
		}
	}
	beside := state{} // restarts of sidecars
	initializing := s.initialize(p, sidecars, &beside)
	if !initializing || isTrue(p, corev1.PodInitialized) {
		s.restarts, s.lastRestart = beside.restarts, beside.lastRestart
		s.run(p)
	}
	switch {
	case p.DeletionTimestamp == nil:
	case p.Status.Reason == "NodeLost":
		s.reason = "Unknown"
	case p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded:
		s.reason = "Terminating"
	}
	return s
}

// initialize reads the init containers, and reports whether one keeps the pod from running.
func (s *state) initialize(p *corev1.Pod, sidecars map[string]bool, beside *state) bool {
	for i, c := range p.Status.InitContainerStatuses {
		s.restarted(c)
		if sidecars[c.Name] {
			beside.restarted(c)
		}
		ended, waiting := c.State.Terminated, c.State.Waiting
		switch {
		case ended != nil && ended.ExitCode == 0:
			continue
		case sidecars[c.Name] && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case ended != nil:
			s.reason = "Init:" + endedReason(ended)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			s.reason = "Init:" + waiting.Reason
		default:
			s.reason = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return true
	}
	return false
}

func (s *state) run(p *corev1.Pod) {
	running := false
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := p.Status.ContainerStatuses[i]
		s.restarted(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = endedReason(c.State.Terminated)
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason == "Completed" && running { // one of several ended
		s.reason = "NotReady"
		if isTrue(p, corev1.PodReady) {
			s.reason = "Running"
		}
	}
}

func (s *state) restarted(c corev1.ContainerStatus) {
	s.restarts += c.RestartCount
	if last := c.LastTerminationState.Terminated; last != nil && s.lastRestart.Before(&last.FinishedAt) {
		s.lastRestart = last.FinishedAt
	}
}

func endedReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

func isTrue(p *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// containers returns the names and images of a pod template.
func containers(spec corev1.PodSpec) (names, images string) {
	var n, i []string
	for _, c := range spec.Containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

func podTemplateRow(o *corev1.PodTemplate) []any {
	names, images := containers(o.Template.Spec)
	return []any{names, images, labels.FormatLabels(o.Template.Labels)}
}
