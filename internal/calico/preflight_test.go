package calico

import (
	"context"
	"maps"
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

// withCRDs runs a step of a migration after loading the CRDs.
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

// podTemplate has containers given as name, image, name, image...; the prefix "init-" marks init
// containers.
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
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"k8s-app": account}},
		Spec: spec}
}

func daemonSet(
	namespace, name string, template corev1.PodTemplateSpec, owners ...metav1.OwnerReference,
) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "d0a3", Generation: 4,
			OwnerReferences: owners},
		Spec: appsv1.DaemonSetSpec{Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
	}
}

func deployment(
	namespace, name string, template corev1.PodTemplateSpec, owners ...metav1.OwnerReference,
) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "de91", Generation: 2,
			OwnerReferences: owners},
		Spec: appsv1.DeploymentSpec{Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
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

// preflightCase is an edit of the recorded cluster, its problems in order, and a step.
type preflightCase struct {
	edit func(in *input)
	want []string
	step string
}

func preflightCases() map[string]preflightCase {
	const (
		info, node = v1Dirs + "clusterinformations/default", "/registry/daemonsets/kube-system/calico-node"
		binding    = "/registry/mutatingadmissionpolicybindings/set-tier-label-binding"
		policy     = "/registry/validatingadmissionpolicies/protect-builtin-tiers.projectcalico.org"
		oldInfo    = "error calico-too-old " + info + ": spec.calicoVersion is"
		oldImage   = "error calico-too-old " + node + ": calico-node runs"
		unknown    = "warning calico-version " + info + ": "
	)
	version := func(version any, variant, image string) func(in *input) {
		return func(in *input) {
			in.edit(info, func(obj map[string]any) {
				set(obj, "spec.calicoVersion", version)
				set(obj, "spec.variant", variant)
			})
			in.daemonSet(daemonSet("kube-system", "calico-node", podTemplate("calico-node", "calico-node", image)))
		}
	}
	tier := func(in *input, name string, spec map[string]any) {
		in.edit(v1Dirs+"tiers/"+name, func(obj map[string]any) { set(obj, "spec", spec) })
	}
	return map[string]preflightCase{
		"as recorded": {func(*input) {}, nil, "check that the roles"},

		"old everywhere":  {version("v3.29.1", "", "docker.io/calico/node:v3.29.1"), []string{oldInfo, oldImage}, ""},
		"old info":        {version("v3.31.4", "", "docker.io/calico/node:v3.32.0"), []string{oldInfo}, ""},
		"old image":       {version("v3.32.0", "", "docker.io/calico/node:v3.31.0"), []string{oldImage}, ""},
		"image tells":     {version("master", "", "quay.io/calico/node:v3.32.1@sha256:00"), nil, ""},
		"info tells":      {version("v3.33.0", "", "quay.io/calico/node@sha256:00"), nil, ""},
		"neither tells":   {version("v3.32.0-0.dev", "", "quay.io/calico/node:master"), []string{unknown}, ""},
		"no version":      {version(nil, "", "registry.example/other:v1.0.0"), []string{unknown}, ""},
		"calico spelled":  {version("v3.32.0", "Calico", "node"), nil, ""},
		"another product": {version("v3.32.0", "CalicoEnterprise", "node:v3.32.0"), []string{unknown}, ""},
		"and its images": {version("v3.22.0", "CalicoEnterprise", "quay.io/tigera/cnx-node:v3.22.0"),
			[]string{unknown}, ""},
		"side-car ignored": {version("v3.32.0", "", "example/logger:v0.1.0"), nil, ""},
		"no info":          {func(in *input) { in.del(info) }, []string{unknown}, ""},

		"tiers drift, as Calico reads them": {func(in *input) {
			tier(in, "default", map[string]any{"order": 42})
			tier(in, "kube-admin", map[string]any{"order": 1000})
			tier(in, "kube-baseline", map[string]any{"defaultAction": "Deny"})
		}, []string{
			"error tier-drift " + v1Dirs + "tiers/default: built-in tier default: spec.order is 42, must be 1000000",
			"error tier-drift " + v1Dirs + "tiers/kube-admin: built-in tier kube-admin: spec.defaultAction is Deny, " +
				"must be Pass",
			"error tier-drift " + v1Dirs + "tiers/kube-baseline: built-in tier kube-baseline: " +
				"spec.order is 1000000, must be 10000000, spec.defaultAction is Deny, must be Pass",
		}, ""},
		"unset fields, other tiers, no tier": {func(in *input) {
			tier(in, "default", map[string]any{})
			tier(in, "security", map[string]any{"order": 1.5})
			in.del(v1Dirs + "tiers/kube-admin")
			in.put(v1Dirs+"tiers/kube-baseline", []byte("not an object"))
		}, nil, ""},

		"no admission policies": {func(in *input) { in.del(binding); in.del(policy) }, []string{
			"warning admission-missing " + binding + ": label projectcalico.org/tier",
			"warning admission-missing " + policy + ": ",
		}, "apply the admission policies"},
		"an admission policy is being deleted": {func(in *input) {
			now := metav1.Now()
			in.native(policy, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy",
				&admissionv1.ValidatingAdmissionPolicy{
					ObjectMeta: metav1.ObjectMeta{Name: "protect-builtin-tiers.projectcalico.org",
						DeletionTimestamp: &now, Finalizers: []string{"a/b"}}})
		}, []string{"warning admission-missing " + policy +
			": it is being deleted: without it nothing keeps the built-in tiers from being deleted"}, ""},
	}
}

// liveCases are DatastoreMigrations.
func liveCases(t *testing.T) map[string]preflightCase {
	const (
		when       = "2026-11-20T19:28:38Z"
		others     = "/registry/migration.projectcalico.org/datastoremigrations/"
		half, left = "error half-done-migration " + migrationKey + ": ", "warning migration-left " + migrationKey + ": "
	)
	phase := func(status map[string]any) func(in *input) {
		return func(in *input) { in.put(migrationKey, migrationObject(t, "v1-to-v3", status)) }
	}
	return map[string]preflightCase{
		// a started, incomplete live migration refuses the run
		"new":     {phase(nil), []string{left + "has not begun"}, ""},
		"pending": {phase(map[string]any{"phase": "Pending"}), []string{left + "has not begun"}, ""},
		"pending, locked": {phase(map[string]any{"phase": "Pending", "datastoreLockedAt": when,
			"message": "Draining"}), []string{half + "(Draining)"}, ""},
		"migrating": {phase(map[string]any{"phase": "Migrating", "startedAt": when}),
			[]string{half + "let it come to Complete, or delete"}, ""},
		"waiting": {phase(map[string]any{"phase": "WaitingForConflictResolution",
			"datastoreLockedAt": when}), []string{half + "WaitingForConflictResolution"}, ""},
		"converged": {phase(map[string]any{"phase": "Converged", "startedAt": when}),
			[]string{half + "let it come to Complete, then"}, ""},
		"failed": {phase(map[string]any{"phase": "Failed"}),
			[]string{left + `phase "Failed" has not begun`}, ""},
		"failed after start": {phase(map[string]any{"phase": "Failed", "startedAt": when}),
			[]string{half + "Failed"}, ""},
		"complete": {phase(map[string]any{"phase": "Complete", "startedAt": when, "completedAt": when}),
			[]string{left + "is complete"}, ""},
		"a phase of tomorrow": {phase(map[string]any{"phase": "Verifying"}), []string{half + "Verifying"}, ""},
		"being aborted, and others": {func(in *input) {
			phase(map[string]any{"phase": "Migrating"})(in)
			in.edit(migrationKey, func(obj map[string]any) { set(obj, "metadata.deletionTimestamp", when) })
			in.put(others+"mine", migrationObject(t, "mine", map[string]any{"phase": "Migrating"}))
			in.put(others+"broken", []byte("{"))
		}, []string{
			half + "being aborted: let it end", "warning migration-left " + others + "mine: this one does nothing",
			"error undecodable " + others + "broken: ",
		}, ""},
		"a locked v1 datastore alone": { // left by an aborted migration
			func(in *input) {
				in.edit(v1Dirs+"clusterinformations/default",
					func(obj map[string]any) { set(obj, "spec.datastoreReady", false) })
			}, nil, ""},
	}
}

// TestPreflight tests obstacles to the whole migration, each by an edit of the recorded cluster.
// want lists all problems except rbac-unknown (always present in this snapshot), in order, as
// "level code key: words of the reason". Nothing is staged.
func TestPreflight(t *testing.T) {
	cases := preflightCases()
	maps.Copy(cases, liveCases(t))
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			in := newInput(t)
			tt.edit(in)
			r := planOn(t, in.write(), planFunc(preflighting))
			found, refused, warned := []string{}, false, false
			for _, p := range r.Problems {
				if p.Code != codeRBACUnknown {
					found = append(found, string(p.Level)+" "+p.Code.Name+" "+p.Key+": "+p.Reason)
				}
			}
			require.Len(t, found, len(tt.want), "%v", found)
			for i, want := range tt.want {
				problem, says, _ := strings.Cut(want, ": ")
				require.True(t, strings.HasPrefix(found[i], problem+": "), "%s: %s", want, found[i])
				require.Contains(t, found[i], says)
				refused = refused || strings.HasPrefix(want, "error ")
				warned = warned || strings.HasPrefix(want, "warning calico-version ")
			}
			if refused {
				require.ErrorIs(t, r.err, transform.ErrRefused)
			} else {
				require.NoError(t, r.err)
				require.Empty(t, r.changed())
			}
			steps := strings.Join(r.byHand(), "\n")
			require.Contains(t, steps, tt.step)
			require.Equal(t, warned, strings.Contains(steps,
				"check that every Calico component is of release 3.32 or later"),
				"the warning and the step go together")
		})
	}
}
