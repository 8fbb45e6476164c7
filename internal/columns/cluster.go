package columns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func nodeCells(o *corev1.Node) []any {
	address := func(kind corev1.NodeAddressType) string {
		for _, a := range o.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return a.Address
			}
		}
		return none
	}
	info := o.Status.NodeInfo
	kernel := cmp.Or(info.KernelVersion, unknown)
	if info.KernelVersion != "" && info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		nodeStatus(o), nodeRoles(o), info.KubeletVersion, address(corev1.NodeInternalIP),
		address(corev1.NodeExternalIP),
		cmp.Or(info.OSImage, unknown), kernel, cmp.Or(info.ContainerRuntimeVersion, unknown),
	}
}

func nodeStatus(o *corev1.Node) string {
	status := "Unknown"
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if status = "NotReady"; c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if o.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(o *corev1.Node) string {
	var roles []string
	for label, value := range o.Labels {
		if role, is := strings.CutPrefix(label, "node-role.kubernetes.io/"); is {
			roles = append(roles, role)
		}
		if label == "kubernetes.io/role" {
			roles = append(roles, value)
		}
	}
	return cmp.Or(strings.Join(distinct(roles), ","), none)
}

func eventCells(o *corev1.Event) []any {
	first, last, count := o.FirstTimestamp, o.LastTimestamp, cmp.Or(o.Count, 1)
	if first.IsZero() {
		first = metav1.NewTime(o.EventTime.Time)
	}
	switch {
	case o.Series != nil:
		last, count = metav1.NewTime(o.Series.LastObservedTime.Time), o.Series.Count
	case last.IsZero():
		last = first
	}
	source, host := o.Source.Component, o.Source.Host
	if source == "" {
		source, host = o.ReportingController, cmp.Or(host, o.ReportingInstance)
	}
	if host != "" {
		source += ", " + host
	}
	object := strings.ToLower(o.InvolvedObject.Kind)
	if o.InvolvedObject.Name != "" {
		object += "/" + o.InvolvedObject.Name
	}
	return []any{last, o.Type, o.Reason, object, o.InvolvedObject.FieldPath, source, strings.TrimSpace(o.Message),
		first, count}
}

func resourceQuotaCells(o *corev1.ResourceQuota) []any {
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

// bindingCells returns the cells of RoleBindings and ClusterRoleBindings.
func bindingCells(o *rbacv1.ClusterRoleBinding) []any {
	names := map[string][]string{}
	for _, s := range o.Subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			s.Name = s.Namespace + "/" + s.Name
		}
		names[s.Kind] = append(names[s.Kind], s.Name)
	}
	join := func(kind string) string { return strings.Join(names[kind], ", ") }
	return []any{o.RoleRef.Kind + "/" + o.RoleRef.Name, join(rbacv1.UserKind), join(rbacv1.GroupKind),
		join(rbacv1.ServiceAccountKind)}
}

func signingRequestCells(o *certificatesv1.CertificateSigningRequest) []any {
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

func paramRef(r *admissionv1.ParamRef) string {
	if r == nil {
		return unset
	}
	name := r.Name
	if r.Selector != nil {
		name = "*"
	}
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return name
}

// policy has the fields of both kinds of admission policies, at any version.
type policy struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Validations []any                  `json:"validations"`
		Mutations   []any                  `json:"mutations"`
		ParamKind   *admissionv1.ParamKind `json:"paramKind"`
	} `json:"spec"`
}

func policyCells(o *policy) []any {
	kind := unset
	if k := o.Spec.ParamKind; k != nil {
		kind = k.APIVersion + "/" + k.Kind
	}
	return []any{len(o.Spec.Validations) + len(o.Spec.Mutations), kind}
}

func flowSchemaCells(o *flowcontrolv1.FlowSchema) []any {
	var method any = none
	if m := o.Spec.DistinguisherMethod; m != nil {
		method = m.Type
	}
	dangling := flowcontrolv1.ConditionStatus("?")
	for _, c := range o.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			dangling = c.Status
		}
	}
	return []any{o.Spec.PriorityLevelConfiguration.Name, o.Spec.MatchingPrecedence, method, dangling}
}

func priorityLevelCells(o *flowcontrolv1.PriorityLevelConfiguration) []any {
	out := []any{o.Spec.Type, none, none, none, none}
	if l := o.Spec.Limited; l != nil {
		out[1] = orElse(l.NominalConcurrencyShares, none)
		if q := l.LimitResponse.Queuing; q != nil {
			out[2], out[3], out[4] = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return out
}

// apiService has the fields of k8s.io/kube-aggregator's APIService for its columns.
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func apiServiceCells(o *apiService) []any {
	service, available := "Local", "Unknown"
	if s := o.Spec.Service; s != nil {
		service = s.Namespace + "/" + s.Name
	}
	if c := meta.FindStatusCondition(o.Status.Conditions, "Available"); c != nil {
		if available = string(c.Status); c.Status != metav1.ConditionTrue {
			available += " (" + c.Reason + ")"
		}
	}
	return []any{service, available}
}
