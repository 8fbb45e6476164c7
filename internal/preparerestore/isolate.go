package preparerestore

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// isolate changes the objects of all table rows that belong to the step.
func isolate(r *run) error {
	for _, w := range table() {
		if w.step != r.step.Step {
			continue
		}
		if err := r.eachOf(w, func(o *inspect.Object) error { return r.stop(w, o) }); err != nil {
			return err
		}
	}
	if r.step.Step != "controllers" {
		return nil
	}
	for _, w := range noSwitch() {
		count := 0
		err := r.eachOf(w, func(o *inspect.Object) error {
			if acme, _, _ := unstructured.NestedFieldNoCopy(o.Content, "spec", "acme"); w.who != "cert-manager" ||
				acme != nil {
				count++
			}
			return nil
		})
		if err != nil {
			return err
		}
		if count > 0 {
			r.view.Report().AddStep("no switch pauses %s (%s: %d): %s", w.who, strings.Join(w.types, ", "), count,
				w.text)
		}
	}
	return nil
}

// eachOf calls fn with the readable objects of a row.
func (r *run) eachOf(w row, fn func(*inspect.Object) error) error {
	for _, t := range r.types.All() {
		if !w.matches(t) {
			continue
		}
		err := stream.Each(r.view.Objects(r.ctx, t, inspect.Selection{}), func(o *inspect.Object) error {
			switch {
			case o.Parsed.Prefix != r.prefix:
			case o.Err != nil:
				r.view.Raise(string(o.Key), transform.Unreadable(o.Err))
			default:
				return fn(o)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// stop changes one object according to its row.
func (r *run) stop(w row, o *inspect.Object) error {
	content := runtime.DeepCopyJSON(o.Content)
	for _, f := range w.fields {
		now, there, _ := unstructured.NestedFieldNoCopy(content, f.path...)
		switch {
		case f.only != nil && now != f.only:
		case f.value != nil:
			// a value that is no object stays; PutObject then has no change
			_ = unstructured.SetNestedField(content, f.value, f.path...)
		case there:
			unstructured.RemoveNestedField(content, f.path...)
		}
	}
	if w.edit != nil {
		w.edit(r, o, content)
	}
	content = transform.AsUpdated(o, content)
	if reflect.DeepEqual(content, o.Content) {
		return nil
	}
	before := r.step.Changed
	err := r.putSaved(o, content)
	if r.step.Changed > before {
		r.freed.Changed(o.Entry, content)
	}
	return err
}

// scaleDown sets the replicas of a workload to zero.
func scaleDown(r *run, o *inspect.Object, content map[string]any) {
	replicas, there, err := unstructured.NestedInt64(content, "spec", "replicas")
	if !there && err == nil {
		replicas = 1 // the default
	}
	if err != nil || replicas == 0 || r.runs(o, "spec", "template", "spec") {
		return
	}
	_ = unstructured.SetNestedField(content, int64(0), "spec", "replicas") // spec exists: it has the template
	_ = unstructured.SetNestedField(content, strconv.FormatInt(replicas, 10), "metadata", "annotations", markOf)
}

// unselect keeps Pods, whose spec is at path, pending with a node selector for a label without
// nodes.
func unselect(path ...string) func(*run, *inspect.Object, map[string]any) {
	return func(r *run, o *inspect.Object, content map[string]any) {
		bound, _, _ := unstructured.NestedString(content, "spec", "nodeName")
		phase, _, _ := unstructured.NestedString(content, "status", "phase")
		if bound == "" && phase != "Succeeded" && phase != "Failed" && !r.runs(o, path...) {
			_ = unstructured.SetNestedField(content, "true", append(slices.Clone(path), "nodeSelector", mark)...)
		}
	}
}

// suspendJob suspends an unfinished Job.
func suspendJob(_ *run, _ *inspect.Object, content map[string]any) {
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True" {
			return
		}
	}
	_ = unstructured.SetNestedField(content, true, "spec", "suspend")
}

// withoutBalancer changes a Service to ClusterIP without the fields of the old type and without the
// load balancer finalizer: with the finalizer, a cloud controller would delete production's load
// balancer.
func withoutBalancer(_ *run, _ *inspect.Object, content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	if spec["type"] != "LoadBalancer" {
		return
	}
	spec["type"] = "ClusterIP"
	delete(spec, "loadBalancerIP")
	delete(spec, "loadBalancerSourceRanges")
	unstructured.RemoveNestedField(content, "metadata", "annotations", corev1.AnnotationLoadBalancerSourceRangesKey)
	unstructured.RemoveNestedField(content, "metadata", "finalizers")
}

// runs reports whether a workload or its Pods keep running in a copy: DNS, kube-proxy, and the
// workloads of --keep-running.
func (r *run) runs(o *inspect.Object, podSpec ...string) bool {
	namespace := o.Parsed.Namespace
	for _, name := range workloadNames(o) {
		if slices.Contains(r.running, namespace+"/"+name) {
			return true
		}
	}
	spec, _, _ := unstructured.NestedMap(o.Content, podSpec...)
	if actsOutside(spec) {
		return false
	}
	if slices.Contains(r.running, namespace) {
		return true
	}
	app, _, _ := unstructured.NestedString(o.Content, "metadata", "labels", "k8s-app")
	return namespace == "kube-system" && slices.Contains([]string{"kube-dns", "kube-proxy", "node-local-dns"}, app)
}

// workloadNames returns the names of an object and its owners. The owner of Pods is often a
// ReplicaSet, whose name begins with the name of its Deployment.
func workloadNames(o *inspect.Object) []string {
	names := []string{o.Parsed.Name}
	owners, _, _ := unstructured.NestedSlice(o.Content, "metadata", "ownerReferences")
	for _, one := range owners {
		owner, _ := one.(map[string]any)
		name, _ := owner["name"].(string)
		names = append(names, name)
		if dash := strings.LastIndex(name, "-"); owner["kind"] == "ReplicaSet" && dash > 0 {
			names = append(names, name[:dash])
		}
	}
	return names
}

// actsOutside reports whether a container image matches actors.
func actsOutside(podSpec map[string]any) bool {
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := podSpec[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			image, _ := container["image"].(string)
			if slices.ContainsFunc(actors(), func(actor string) bool { return strings.Contains(image, actor) }) {
				return true
			}
		}
	}
	return false
}

// row describes kinds of objects with effects outside the cluster, and how an isolated copy stops
// them.
type row struct {
	step  string
	who   string   // the acting program
	types []string // resources; "*.example.com": all such groups; "category:a+b": resources in all these categories
	// fields lists new values, null for removal; edit makes other changes, described by text.
	fields []field
	text   string
	edit   func(r *run, o *inspect.Object, content map[string]any)
}

// field is a field path with the value that stops an object.
type field struct {
	path  []string
	value any
	only  any // replace only this value; nil for any value
}

const (
	mark        = "etcdshift/isolated" // a label that no node has
	markOf      = "etcdshift/replicas" // annotation with the original number
	fluxToolkit = ".toolkit.fluxcd.io"
)

// table lists all changes of --isolate. docs/guides/prepare-restore.md shows the table.
func table() []row {
	return []row{
		{step: "workloads", who: "Kubernetes", types: []string{"deployments.apps", "statefulsets.apps",
			"replicasets.apps", "replicationcontrollers"},
			edit: scaleDown, text: "`spec.replicas: 0`, and `metadata.annotations[" + markOf +
				"]` with the original number"},
		{step: "workloads", who: "Kubernetes", types: []string{"daemonsets.apps"},
			edit: unselect("spec", "template", "spec"), text: "`spec.template.spec.nodeSelector[" + mark +
				"]: \"true\"`, which no node has"},
		{step: "workloads", who: "Kubernetes", types: []string{"pods"},
			edit: unselect("spec"), text: "`spec.nodeSelector[" + mark + "]: \"true\"` of Pods that wait for a node"},
		{step: "jobs", who: "Kubernetes", types: []string{"cronjobs.batch"}, fields: suspended()},
		{step: "jobs", who: "Kubernetes", types: []string{"jobs.batch"}, edit: suspendJob,
			text: "`spec.suspend: true` of those that have not ended"},
		{step: "load-balancers", who: "cloud controllers", types: []string{"services"}, edit: withoutBalancer,
			text: "`spec.type: ClusterIP`, without finalizers, node ports, fields that are for load balancers, and " +
				"`status.loadBalancer`"},
		{step: "volumes", who: "CSI drivers", types: []string{"persistentvolumes"},
			fields: []field{{path: []string{"spec", "persistentVolumeReclaimPolicy"}, value: "Retain",
				only: "Delete"}}},
		{step: "volumes", who: "CSI drivers", types: []string{"volumesnapshotcontents.snapshot.storage.k8s.io"},
			fields: []field{{path: []string{"spec", "deletionPolicy"}, value: "Retain", only: "Delete"}}},

		{step: "controllers", who: "Argo CD", types: []string{"applications.argoproj.io"},
			fields: []field{{path: []string{"spec", "syncPolicy", "automated"}}}},
		{step: "controllers", who: "Argo CD", types: []string{"applicationsets.argoproj.io"},
			fields: []field{{path: []string{"spec", "syncPolicy", "applicationsSync"}, value: "create-only"}}},
		{step: "controllers", who: "Argo Workflows", types: []string{"cronworkflows.argoproj.io",
			"workflows.argoproj.io"}, fields: suspended()},
		{step: "controllers", who: "Flux", types: []string{
			"kustomizations.kustomize" + fluxToolkit, "helmreleases.helm" + fluxToolkit, "buckets.source" + fluxToolkit,
			"gitrepositories.source" + fluxToolkit,
			"helmcharts.source" + fluxToolkit, "helmrepositories.source" + fluxToolkit,
			"ocirepositories.source" + fluxToolkit,
			"imagerepositories.image" + fluxToolkit, "imageupdateautomations.image" + fluxToolkit,
			"alerts.notification" + fluxToolkit,
		}, fields: suspended()},
		{step: "controllers", who: "Fleet", types: []string{"gitrepos.fleet.cattle.io", "bundles.fleet.cattle.io"},
			fields: paused()},
		{step: "controllers", who: "Cluster API", types: []string{"clusters.cluster.x-k8s.io"}, fields: paused()},
		{step: "controllers", who: "Hive", types: []string{"clusterdeployments.hive.openshift.io"},
			fields: annotated("hive.openshift.io/reconcile-pause", "true")},
		{step: "controllers", who: "Crossplane", types: []string{"category:crossplane+managed", "category:composite",
			"category:claim"}, fields: annotated("crossplane.io/paused", "true")},
		{step: "controllers", who: "Azure Service Operator", types: []string{"*.azure.com"},
			fields: annotated("serviceoperator.azure.com/reconcile-policy", "skip")},
		{step: "controllers", who: "Config Connector",
			types: []string{"configconnectors.core.cnrm.cloud.google.com",
				"configconnectorcontexts.core.cnrm.cloud.google.com"},
			fields: []field{{path: []string{"spec", "actuationMode"}, value: "Paused"}}},
		{step: "controllers", who: "Velero", types: []string{"schedules.velero.io"}, fields: paused()},
		{step: "controllers", who: "Velero", types: []string{"backupstoragelocations.velero.io"},
			fields: []field{{path: []string{"spec", "accessMode"}, value: "ReadOnly"}}},
		{step: "controllers", who: "CloudNativePG", types: []string{"scheduledbackups.postgresql.cnpg.io"},
			fields: suspended()},
		{step: "controllers", who: "KEDA", types: []string{"scaledobjects.keda.sh", "scaledjobs.keda.sh"},
			fields: annotated("autoscaling.keda.sh/paused", "true")},
		{step: "controllers", who: "Prometheus Operator", types: []string{
			"prometheuses.monitoring.coreos.com", "prometheusagents.monitoring.coreos.com",
			"alertmanagers.monitoring.coreos.com",
			"thanosrulers.monitoring.coreos.com",
		}, fields: paused()},
	}
}

func suspended() []field { return []field{{path: []string{"spec", "suspend"}, value: true}} }

func paused() []field { return []field{{path: []string{"spec", "paused"}, value: true}} }

func annotated(name, value string) []field {
	return []field{{path: []string{"metadata", "annotations", name}, value: value}}
}

// noSwitch lists kinds whose controllers act outside the cluster and cannot be switched off in the
// object.
func noSwitch() []row {
	return []row{
		{who: "cert-manager", types: []string{"issuers.cert-manager.io", "clusterissuers.cert-manager.io"},
			text: "those with `spec.acme` ask for certificates: leave cert-manager at 0 replicas, or name a test " +
				"server in `spec.acme.server`"},
		{who: "external-dns", types: []string{"dnsendpoints.externaldns.k8s.io"},
			text: "leave external-dns at 0 replicas, or start it with `--dry-run`"},
		{who: "External Secrets",
			types: []string{"pushsecrets.external-secrets.io"},
			text:  "they write to secret stores: leave the operator at 0 replicas"},
		{who: "Karpenter",
			types: []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"},
			text:  "leave Karpenter at 0 replicas: it deletes machines that it does not know"},
		{who: "Machine API", types: []string{"machinesets.machine.openshift.io"},
			text: "leave its operator at 0 replicas"},
		{who: "AWS Controllers for Kubernetes", types: []string{"*.services.k8s.aws"},
			text: "leave the controllers at 0 replicas"},
		{who: "Config Connector",
			types: []string{"*.cnrm.cloud.google.com"},
			text:  "leave its controller manager at 0 replicas unless a ConfigConnector was paused"},
		{who: "HCP Terraform Operator",
			types: []string{"workspaces.app.terraform.io", "modules.app.terraform.io"},
			text:  "leave the operator at 0 replicas"},
		{who: "load balancer controllers", types: []string{"ingresses.networking.k8s.io",
			"gateways.gateway.networking.k8s.io"},
			text: "in clouds they have load balancers: leave the controllers at 0 replicas"},
	}
}

// actors lists parts of image names of programs that act outside the cluster. A workload with such
// an image is scaled to zero unless --keep-running names the workload with its namespace.
func actors() []string {
	return []string{
		"external-dns", "cert-manager", "cluster-autoscaler", "karpenter", "cloud-controller-manager",
		"load-balancer-controller", "metallb", "kube-vip",
		"csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter", "snapshot-controller", "external-secrets",
		"velero", "argocd", "crossplane",
	}
}

// change describes what a row changes.
func (w row) change() string {
	var words []string
	for _, f := range w.fields {
		path := strings.Join(f.path, ".")
		if len(f.path) > 1 && f.path[1] == "annotations" {
			path = fmt.Sprintf("metadata.annotations[%s]", f.path[2])
		}
		switch {
		case f.value == nil:
			words = append(words, "`"+path+"` is removed")
		case f.only != nil:
			words = append(words, fmt.Sprintf("`%s: %v`, where it is %v", path, f.value, f.only))
		default:
			words = append(words, fmt.Sprintf("`%s: %v`", path, f.value))
		}
	}
	if w.text != "" {
		words = append(words, w.text)
	}
	return strings.Join(words, ", ")
}

// matches reports whether a row applies to the objects of a type.
func (w row) matches(t *inspect.Type) bool {
	return slices.ContainsFunc(w.types, func(pattern string) bool {
		if of, is := strings.CutPrefix(pattern, "category:"); is {
			return !slices.ContainsFunc(strings.Split(of, "+"),
				func(c string) bool { return !slices.Contains(t.Categories, c) })
		}
		if group, is := strings.CutPrefix(pattern, "*"); is {
			return strings.HasSuffix(t.Resource.Group, group)
		}
		return t.Resource.String() == pattern
	})
}
