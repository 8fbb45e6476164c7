package calico

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/transform"
)

const v1Dirs = "/registry/crd.projectcalico.org/"

// withCRDs takes a step of a migration that has loaded the CRDs.
func withCRDs(ctx context.Context, v *transform.View, step func(*crdSet) error) error {
	crds, err := loadCRDs(storeOf(ctx, v), nil)
	if err != nil {
		return err
	}
	return step(crds)
}

func preflighting(ctx context.Context, v *transform.View) error {
	return withCRDs(ctx, v, (*crdSet).preflight)
}

// podTemplate has containers given as name, image, name, image...; those whose name begins with
// "init-" are init containers.
func podTemplate(account string, containers ...string) corev1.PodTemplateSpec {
	spec := corev1.PodSpec{ServiceAccountName: account}
	for i := 0; i < len(containers); i += 2 {
		c := corev1.Container{Name: containers[i], Image: containers[i+1]}
		if len(c.Name) > 5 && c.Name[:5] == "init-" {
			spec.InitContainers = append(spec.InitContainers, c)
		} else {
			spec.Containers = append(spec.Containers, c)
		}
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": account}}, Spec: spec}
}

func daemonSet(namespace, name string, template corev1.PodTemplateSpec, owners ...metav1.OwnerReference) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "d0a3", Generation: 4, OwnerReferences: owners},
		Spec:       appsv1.DaemonSetSpec{Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
	}
}

func deployment(namespace, name string, template corev1.PodTemplateSpec, owners ...metav1.OwnerReference) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "de91", Generation: 2, OwnerReferences: owners},
		Spec:       appsv1.DeploymentSpec{Template: template, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
	}
}

func (in *input) daemonSet(ds *appsv1.DaemonSet) string {
	key := "/registry/daemonsets/" + ds.Namespace + "/" + ds.Name
	in.native(key, "apps/v1", "DaemonSet", ds)
	return key
}

func (in *input) deployment(d *appsv1.Deployment) string {
	key := "/registry/deployments/" + d.Namespace + "/" + d.Name
	in.native(key, "apps/v1", "Deployment", d)
	return key
}

// TestPreflightRecorded: the recorded cluster is fit, and its snapshot does not tell of RBAC.
func TestPreflightRecorded(t *testing.T) {
	r := planOn(t, recorded(t, "before.db"), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-unknown "}, r.problems())
	require.Len(t, r.byHand(), 1)
	require.Contains(t, r.byHand()[0], "check that the roles")
	require.Empty(t, r.changed())
}

func TestPreflightVersion(t *testing.T) {
	info := v1Dirs + "clusterinformations/default"
	for name, tc := range map[string]struct {
		version  any
		variant  string
		image    string
		problems []string
	}{
		"old everywhere":   {"v3.29.1", "", "docker.io/calico/node:v3.29.1", []string{"error calico-too-old " + info, "error calico-too-old /registry/daemonsets/kube-system/calico-node"}},
		"old info":         {"v3.31.4", "", "docker.io/calico/node:v3.32.0", []string{"error calico-too-old " + info}},
		"old image":        {"v3.32.0", "", "docker.io/calico/node:v3.31.0", []string{"error calico-too-old /registry/daemonsets/kube-system/calico-node"}},
		"image tells":      {"master", "", "quay.io/calico/node:v3.32.1@sha256:00", nil},
		"info tells":       {"v3.33.0", "", "quay.io/calico/node@sha256:00", nil},
		"nobody tells":     {"v3.32.0-0.dev", "", "quay.io/calico/node:master", []string{"warning calico-version " + info}},
		"no version":       {nil, "", "registry.example/other:v1.0.0", []string{"warning calico-version " + info}},
		"calico spelled":   {"v3.32.0", "Calico", "node", nil},
		"another product":  {"v3.32.0", "CalicoEnterprise", "node:v3.32.0", []string{"warning calico-version " + info}},
		"and its images":   {"v3.22.0", "CalicoEnterprise", "quay.io/tigera/cnx-node:v3.22.0", []string{"warning calico-version " + info}},
		"side-car ignored": {"v3.32.0", "", "example/logger:v0.1.0", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			in.edit(info, func(obj map[string]any) {
				set(obj, "spec.calicoVersion", tc.version)
				set(obj, "spec.variant", tc.variant)
			})
			in.daemonSet(daemonSet("kube-system", "calico-node", podTemplate("calico-node", "calico-node", tc.image)))
			r := planOn(t, in.write(), planFunc(preflighting))
			want := append(tc.problems, "warning rbac-unknown ")
			require.Equal(t, want, r.problems())
			warned := slices.Contains(want, "warning calico-version "+info)
			require.Equal(t, warned, strings.Contains(strings.Join(r.byHand(), "\n"), "check that every Calico component is of release 3.32 or later"),
				"the warning and the step go together")
		})
	}
}

func TestPreflightNoVersion(t *testing.T) {
	in := newInput(t)
	info := v1Dirs + "clusterinformations/default"
	in.del(info)
	r := planOn(t, in.write(), planFunc(preflighting))
	require.Contains(t, r.problems(), "warning calico-version "+info)
	require.Contains(t, r.byHand()[0], "of release 3.32 or later")
}

// TestTierDrift: all drift is reported in one go, as Calico reads the tiers.
func TestTierDrift(t *testing.T) {
	tier := func(name string) string { return v1Dirs + "tiers/" + name }
	in := newInput(t)
	in.edit(tier("default"), func(obj map[string]any) { set(obj, "spec", map[string]any{"order": 42}) })
	in.edit(tier("kube-admin"), func(obj map[string]any) { set(obj, "spec", map[string]any{"order": 1000}) })
	in.edit(tier("kube-baseline"), func(obj map[string]any) { set(obj, "spec", map[string]any{"defaultAction": "Deny"}) })
	r := planOn(t, in.write(), planFunc(preflighting))
	require.ErrorIs(t, r.err, transform.ErrRefused)
	require.Equal(t, "built-in tier default: spec.order is 42, must be 1000000", r.reason(t, codeTierDrift.Name, tier("default")))
	require.Equal(t, "built-in tier kube-admin: spec.defaultAction is Deny, must be Pass", r.reason(t, codeTierDrift.Name, tier("kube-admin")))
	require.Equal(t, "built-in tier kube-baseline: spec.order is 1000000, must be 10000000, spec.defaultAction is Deny, must be Pass",
		r.reason(t, codeTierDrift.Name, tier("kube-baseline")))
}

// TestTierNoDrift: what is unset on the default tier reads as it must be, absent tiers are made by
// Calico, and other tiers are free.
func TestTierNoDrift(t *testing.T) {
	in := newInput(t)
	in.edit(v1Dirs+"tiers/default", func(obj map[string]any) { set(obj, "spec", map[string]any{}) })
	in.edit(v1Dirs+"tiers/security", func(obj map[string]any) { set(obj, "spec", map[string]any{"order": 1.5}) })
	in.del(v1Dirs + "tiers/kube-admin")
	in.put(v1Dirs+"tiers/kube-baseline", []byte("not an object"))
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-unknown "}, r.problems())
}

func TestAdmissionMissing(t *testing.T) {
	in := newInput(t)
	binding := "/registry/mutatingadmissionpolicybindings/set-tier-label-binding"
	policy := "/registry/validatingadmissionpolicies/protect-builtin-tiers.projectcalico.org"
	in.del(binding)
	in.del(policy)
	r := planOn(t, in.write(), planFunc(preflighting))
	require.NoError(t, r.err)
	require.Equal(t, []string{"warning rbac-unknown ", "warning admission-missing " + binding, "warning admission-missing " + policy}, r.problems())
	require.Contains(t, r.reason(t, codeAdmissionMissing.Name, binding), "label projectcalico.org/tier")
	require.Contains(t, r.byHand()[1], "apply the admission policies")

	in = newInput(t)
	now := metav1.Now()
	in.native(policy, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "protect-builtin-tiers.projectcalico.org", DeletionTimestamp: &now, Finalizers: []string{"a/b"}}})
	r = planOn(t, in.write(), planFunc(preflighting))
	require.Equal(t, "it is being deleted: without it nothing keeps the built-in tiers from being deleted", r.reason(t, codeAdmissionMissing.Name, policy))
}
