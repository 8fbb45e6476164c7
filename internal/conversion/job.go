package conversion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/conversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

// job is one Convert: the library's converter for the CRD, on a transport of its own, since the
// library passes no context through.
type job struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	target schema.GroupVersion
	wire   *wire
	// safe copies its input before it converts; unsafe does not change lists.
	safe, unsafe runtime.ObjectConvertor

	sound   bool     // the converter has given an answer that could be checked
	garbled int      // single objects without such an answer
	last    *failure // of the last of those
}

// item is an object to send and the place of its result.
type item struct {
	obj    map[string]any
	result *Converted
}

func (c *Converter) newJob(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string) (*job, error) {
	conv := crd.Spec.Conversion
	if conv == nil || conv.Strategy != apiextensionsv1.WebhookConverter || conv.Webhook == nil {
		return nil, fmt.Errorf("%s does not convert by webhook", crd.Name)
	}
	if !slices.ContainsFunc(conv.Webhook.ConversionReviewVersions, func(v string) bool { return v == "v1" || v == "v1beta1" }) {
		return nil, fmt.Errorf("%s takes ConversionReview %q, only v1 and v1beta1 are known", crd.Name,
			conv.Webhook.ConversionReviewVersions)
	}
	if !lists(crd, version) {
		return nil, fmt.Errorf("%s has no version %q", crd.Name, version)
	}
	end, err := c.far.at(crd)
	if err != nil {
		return nil, err
	}
	j := &job{crd: crd, target: schema.GroupVersion{Group: crd.Spec.Group, Version: version}}
	j.wire = &wire{ctx: ctx, timeout: c.timeout, send: end.send}
	factory, err := conversion.NewCRConverterFactory(webhook.NewDefaultServiceResolver(), j.wire.authentication)
	if err != nil {
		return nil, err
	}
	j.safe, j.unsafe, err = factory.NewConverter(stub(crd, end.url))
	return j, err
}

// stub returns the parts of the CRD that the library's converter reads. It has a URL instead of a
// service and no caBundle: the transport handles both, see hook.at.
func stub(crd *apiextensionsv1.CustomResourceDefinition, url string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	out.Spec.Group, out.Spec.Scope = crd.Spec.Group, crd.Spec.Scope
	for _, v := range crd.Spec.Versions {
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name})
	}
	out.Spec.Conversion = crd.Spec.Conversion.DeepCopy()
	out.Spec.Conversion.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &url}
	return out
}

// authentication puts the wire below the library's client. stub has a URL, no service.
func (w *wire) authentication(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{ClientConfigForFunc: func(string) (*rest.Config, error) {
		return &rest.Config{Transport: w, UserAgent: "etcdshift", WarningHandler: rest.NoWarnings{}}, nil
	}}
}

func lists(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version
	})
}

// source returns the apiVersion of the object. The CRD must list it.
func (j *job) source(obj map[string]any) (string, error) {
	apiVersion, _ := obj["apiVersion"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Group != j.target.Group || !lists(j.crd, gv.Version) {
		return "", fmt.Errorf("apiVersion %q is not one of %s", apiVersion, j.crd.Name)
	}
	return apiVersion, nil
}

// convert converts items, or returns an error if the converter as a whole is unusable.
func (j *job) convert(items []item) error {
	if len(items) == 0 {
		return nil
	}
	err := j.run(items)
	if err == nil && j.garbled > 0 && !j.sound {
		err = j.last
	}
	return err
}

// run converts items in one call; if that is refused, in halves.
func (j *job) run(items []item) error {
	err := j.ask(items)
	var f *failure
	switch {
	case err == nil:
		j.sound = true
		return nil
	case !errors.As(err, &f) || f.kind == broken:
		return err
	case len(items) > 1:
		j.sound = j.sound || f.kind == refused
		half := len(items) / 2
		if err := j.run(items[:half]); err != nil {
			return err
		}
		return j.run(items[half:])
	}
	return j.blame(items[0], f)
}

// blame records why a single object failed. Before the first sound answer, two failures (or the
// only one) mean that the converter is at fault: an object that makes a converter panic is named, a
// converter that always panics is not asked for each object.
func (j *job) blame(it item, f *failure) error {
	it.result.Err = fmt.Errorf("%w: %s", errRefused, f.reason)
	if f.kind == refused {
		j.sound = true
		return nil
	}
	j.garbled++
	j.last = f
	if j.garbled > 1 && !j.sound {
		return f
	}
	return nil
}

// ask makes one call.
func (j *job) ask(items []item) error {
	j.wire.reset()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(j.target.String())
	list.SetKind(j.crd.Spec.Names.Kind + "List")
	for _, it := range items {
		list.Items = append(list.Items, unstructured.Unstructured{Object: it.obj})
	}
	converter, in := j.unsafe, runtime.Object(list)
	if len(items) == 1 {
		converter, in = j.safe, &list.Items[0]
	}
	out, err := converter.ConvertToVersion(in, j.target)
	if err != nil {
		return j.wire.explain(err)
	}
	if single, ok := out.(*unstructured.Unstructured); ok {
		items[0].result.Object = single.Object
		return nil
	}
	for i := range items {
		items[i].result.Object = out.(*unstructured.UnstructuredList).Items[i].Object
	}
	return nil
}
