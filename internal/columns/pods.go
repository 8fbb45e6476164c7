package columns

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func podCells(p *corev1.Pod) []any {
	s := podState(p)
	restarts := func(now time.Time) string {
		if s.restarts == 0 || s.lastRestart.IsZero() {
			return fmt.Sprint(s.restarts)
		}
		return fmt.Sprintf("%d (%s ago)", s.restarts, age(s.lastRestart, now))
	}
	gates, met := none, 0
	for _, gate := range p.Spec.ReadinessGates {
		if isTrue(p, gate.ConditionType) {
			met++
		}
		gates = fmt.Sprintf("%d/%d", met, len(p.Spec.ReadinessGates))
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

// podState takes the reason from the first init container that is not done, or otherwise from the
// last ordinary container that waits or ended. Restarts of these containers and of sidecars count.
func podState(p *corev1.Pod) state {
	s := state{containers: len(p.Spec.Containers), reason: cmp.Or(p.Status.Reason, string(p.Status.Phase))}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if orElse(c.RestartPolicy, nil) == corev1.ContainerRestartPolicyAlways {
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

// initialize adds the init containers and reports whether one of them keeps the pod from running.
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
		case sidecars[c.Name] && orElse(c.Started, false) == true:
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
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}
