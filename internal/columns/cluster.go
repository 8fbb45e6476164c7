package columns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
)

func nodeRow(o *corev1.Node) []any {
	addresses := map[corev1.NodeAddressType]string{}
	for _, a := range o.Status.Addresses {
		if addresses[a.Type] == "" {
			addresses[a.Type] = a.Address
		}
	}
	info := o.Status.NodeInfo
	kernel := cmp.Or(info.KernelVersion, unknown)
	if info.KernelVersion != "" && info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		nodeStatus(o), nodeRoles(o), info.KubeletVersion,
		cmp.Or(addresses[corev1.NodeInternalIP], none), cmp.Or(addresses[corev1.NodeExternalIP], none),
		cmp.Or(info.OSImage, unknown), kernel, cmp.Or(info.ContainerRuntimeVersion, unknown),
	}
}

func nodeStatus(o *corev1.Node) string {
	status := "Unknown"
	for _, c := range o.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			status = "Ready"
		default:
			status = "NotReady"
		}
	}
	if o.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(o *corev1.Node) string {
	roles := map[string]bool{}
	for label, value := range o.Labels {
		if role, is := strings.CutPrefix(label, "node-role.kubernetes.io/"); is && role != "" {
			roles[role] = true
		}
		if label == "kubernetes.io/role" && value != "" {
			roles[value] = true
		}
	}
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(roles)), ","), none)
}

func eventRow(o *corev1.Event, now time.Time) []any {
	first, last := age(o.FirstTimestamp, now), age(o.LastTimestamp, now)
	if o.FirstTimestamp.IsZero() {
		first = age(metav1.NewTime(o.EventTime.Time), now)
	}
	switch {
	case o.Series != nil:
		last = age(metav1.NewTime(o.Series.LastObservedTime.Time), now)
	case o.LastTimestamp.IsZero():
		last = first
	}
	count := o.Count
	if o.Series != nil {
		count = o.Series.Count
	} else if count == 0 {
		count = 1
	}
	object := o.InvolvedObject.Kind
	if o.InvolvedObject.Name != "" {
		object += "/" + o.InvolvedObject.Name
	}
	source := o.Source.Component
	if source == "" {
		source = o.ReportingController
	}
	host := cmp.Or(o.Source.Host, o.ReportingInstance)
	if o.Source.Component != "" {
		host = o.Source.Host
	}
	if host != "" {
		source += ", " + host
	}
	return []any{
		last, o.Type, o.Reason, strings.ToLower(o.InvolvedObject.Kind) + object[len(o.InvolvedObject.Kind):], o.InvolvedObject.FieldPath, source,
		strings.TrimSpace(o.Message), first, int64(count),
	}
}

func resourceQuotaRow(o *corev1.ResourceQuota) []any {
	var requests, limits []string
	for _, name := range slices.Sorted(maps.Keys(o.Status.Hard)) {
		used, hard := o.Status.Used[name], o.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{strings.Join(requests, ", "), strings.Join(limits, ", ")}
}

// bindingRow is for bindings of both scopes.
func bindingRow(o *rbacv1.ClusterRoleBinding) []any {
	var users, groups, accounts []string
	for _, s := range o.Subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	join := func(names []string) string { return strings.Join(names, ", ") }
	return []any{o.RoleRef.Kind + "/" + o.RoleRef.Name, join(users), join(groups), join(accounts)}
}

func signingRequestRow(o *certificatesv1.CertificateSigningRequest) []any {
	wanted := none
	if s := o.Spec.ExpirationSeconds; s != nil {
		wanted = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	is := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range o.Status.Conditions {
		is[c.Type] = true
	}
	status := "Pending"
	switch {
	case is[certificatesv1.CertificateDenied]:
		status = "Denied"
	case is[certificatesv1.CertificateApproved]:
		status = "Approved"
	}
	if is[certificatesv1.CertificateFailed] {
		status += ",Failed"
	}
	if len(o.Status.Certificate) > 0 {
		status += ",Issued"
	}
	return []any{cmp.Or(o.Spec.SignerName, none), o.Spec.Username, wanted, status}
}

func priorityClassRow(o *schedulingv1.PriorityClass) []any {
	return []any{int64(o.Value), strconv.FormatBool(o.GlobalDefault), string(ptr.Deref(o.PreemptionPolicy, corev1.PreemptLowerPriority))}
}
