package preparerestore

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/native"
)

// webhooks has API servers go on where a webhook that runs in the cluster does not answer.
func (r *run) webhooks() {
	for _, resource := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
		for _, e := range r.of(resource + ".admissionregistration.k8s.io") {
			if o := r.object(e); o != nil {
				r.ignoreFailures(o)
			}
		}
	}
}

func (r *run) ignoreFailures(o *inspect.Object) {
	content := runtime.DeepCopyJSON(o.Content)
	hooks, _ := content["webhooks"].([]any)
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		if !mustAnswer(o, hook) || !r.runsInside(hook) {
			continue
		}
		hook["failurePolicy"] = string(admissionv1.Ignore)
	}
	if r.put(o, content) {
		r.save(o.Key, o.Content, content)
	}
}

// runsInside reports whether a webhook is behind a Service of the cluster.
func (r *run) runsInside(hook map[string]any) bool {
	client, _ := hook["clientConfig"].(map[string]any)
	ref, is := client["service"].(map[string]any)
	namespace, _ := ref["namespace"].(string)
	name, _ := ref["name"].(string)
	svc, err := machines.Storage{Source: r.View, Prefix: r.Keys.Prefix}.Service(r.Ctx, namespace, name)
	return is && !r.Failed(err) && (svc == nil || !machines.Outside(svc))
}

// mustAnswer tells whether API servers refuse requests where a webhook does not answer.
func mustAnswer(o *inspect.Object, hook map[string]any) bool {
	policy, _ := hook["failurePolicy"].(string)
	apiVersion, _ := o.Content["apiVersion"].(string)
	return policy == string(admissionv1.Fail) || policy == "" && !strings.HasSuffix(apiVersion, "/v1beta1")
}

// apiServices deletes the APIServices of aggregated API servers that do not answer.
func (r *run) apiServices() {
	storage := machines.Storage{Source: r.View, Prefix: r.Keys.Prefix}
	for _, e := range r.of("apiservices.apiregistration.k8s.io") {
		if !r.readable(e) {
			continue
		}
		service, err := native.As[machines.APIService](e.ParseValue())
		if err != nil {
			continue // doctor names it
		}
		silence, err := storage.Silent(r.Ctx, &service)
		if r.Failed(err) || silence.State == machines.Answering {
			continue
		}
		if r.defines(service.Spec.Group) {
			r.Step("APIService %s stays, though nothing answers: without it the group would be served from its definitions, "+
				"which may be empty, and the garbage collector would delete what its objects own. "+
				"Of Calico, migrate the data first (docs/calico-v3.md)", service.Spec.Version+"."+service.Spec.Group)
			continue
		}
		if o := r.object(e); o != nil {
			r.keepSaved(e.Key, whole(o), nil)
			r.drop(e)
		}
	}
}

// defines tells whether a CustomResourceDefinition would serve a group without its APIService.
func (r *run) defines(group string) bool {
	return slices.ContainsFunc(r.types.All(), func(t *inspect.Type) bool { return t.CRD != nil && t.Resource.Group == group })
}
