package conversion

import (
	"cmp"
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
// library does not pass a context to the transport.
type job struct {
	crd    *apiextensionsv1.CustomResourceDefinition
	target schema.GroupVersion
	wire   *wire
	// safe copies its input before the conversion; unsafe does not change lists.
	safe, unsafe runtime.ObjectConvertor

	sound bool     // the converter has given an answer that passed or failed a check
	last  *failure // failure of the last single object without such an answer
}

func (c *Converter) newJob(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string,
) (*job, error) {
	conv := crd.Spec.Conversion
	if conv == nil || conv.Strategy != apiextensionsv1.WebhookConverter || conv.Webhook == nil {
		return nil, fmt.Errorf("%s does not convert by webhook", crd.Name)
	}
	if !slices.ContainsFunc(conv.Webhook.ConversionReviewVersions,
		func(v string) bool { return v == "v1" || v == "v1beta1" }) {
		return nil, fmt.Errorf("%s takes ConversionReview %q, only v1 and v1beta1 are known", crd.Name,
			conv.Webhook.ConversionReviewVersions)
	}
	if !slices.ContainsFunc(crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version }) {
		return nil, fmt.Errorf("%s has no version %q", crd.Name, version)
	}
	end, err := c.at(crd)
	if err != nil {
		return nil, err
	}
	j := &job{crd: crd, target: schema.GroupVersion{Group: crd.Spec.Group, Version: version}}
	j.wire = &wire{ctx: ctx, timeout: cmp.Or(c.timeout, defaultTimeout), send: end.send}
	factory, err := conversion.NewCRConverterFactory(webhook.NewDefaultServiceResolver(), j.wire.authentication)
	if err != nil {
		return nil, err
	}
	j.safe, j.unsafe, err = factory.NewConverter(stub(crd, end.url))
	return j, err
}

// stub returns the parts of the CRD that the library's converter reads, with a URL instead of a
// service and without a caBundle: the transport handles both, see hook.at.
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

// authentication makes the wire the transport of the library's client. The stub has a URL, not a
// service.
func (w *wire) authentication(webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
	return &webhook.AuthenticationInfoResolverDelegator{ClientConfigForFunc: func(string) (*rest.Config, error) {
		return &rest.Config{Transport: w, UserAgent: "etcdshift", WarningHandler: rest.NoWarnings{}}, nil
	}}
}

func (j *job) convert(objs []map[string]any, results []Converted) error {
	err := j.run(objs, results)
	if err == nil && j.last != nil && !j.sound {
		err = j.last
	}
	return err
}

// run converts objs in one call; a refused call is repeated in halves.
func (j *job) run(objs []map[string]any, results []Converted) error {
	err := j.call(objs, results)
	var f *failure
	switch {
	case err == nil:
		j.sound = true
		return nil
	case !errors.As(err, &f) || f.kind == broken:
		return err
	case len(objs) > 1:
		j.sound = j.sound || f.kind == refused
		half := len(objs) / 2
		if err := j.run(objs[:half], results[:half]); err != nil {
			return err
		}
		return j.run(objs[half:], results[half:])
	}
	return j.blame(&results[0], f)
}

// blame records why a single object failed. Before the first sound answer, two failures (or a
// failure of the only object) mean that the converter is at fault. So an object that makes a
// converter panic is named, and a converter that always panics is not called for each object.
func (j *job) blame(result *Converted, f *failure) error {
	result.Err = fmt.Errorf("%w: %s", errRefused, f.reason)
	switch {
	case f.kind == refused:
		j.sound = true
	case j.last != nil && !j.sound:
		return f
	default:
		j.last = f
	}
	return nil
}

func (j *job) call(objs []map[string]any, results []Converted) error {
	j.wire.reset()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(j.target.String())
	list.SetKind(j.crd.Spec.Names.Kind + "List")
	for _, obj := range objs {
		list.Items = append(list.Items, unstructured.Unstructured{Object: obj})
	}
	converter, in := j.unsafe, runtime.Object(list)
	if len(objs) == 1 {
		converter, in = j.safe, &list.Items[0]
	}
	out, err := converter.ConvertToVersion(in, j.target)
	if err != nil {
		return j.wire.explain(err)
	}
	if single, ok := out.(*unstructured.Unstructured); ok {
		results[0].Object = single.Object
		return nil
	}
	for i := range results {
		results[i].Object = out.(*unstructured.UnstructuredList).Items[i].Object
	}
	return nil
}
