package apiservers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const (
	pause    = 50 * time.Millisecond // between two looks
	patience = 15 * time.Second      // without any change; what is not ready then stays so
	definite = 2 * time.Second       // the same, of answers that are no sign of a start
	asking   = 4                     // requests at once
	crdPage  = 100                   // CRDs in memory at once
)

// Serving is what an API server serves once it is ready, or has come as far as it can.
type Serving struct {
	Versions []schema.GroupVersionResource // of custom resources that answer, sorted
	Unserved []Unserved                    // those that do not, though their CRD serves them, sorted
	Unready  []string                      // why CRDs cannot be listed, and the checks of /readyz that fail
}

// Unserved is a served version of a CRD for which the API server does not answer.
type Unserved struct {
	CRD, Version, Reason string
}

// Wait waits until every served version of every CRD answers (a refusal to list objects is an
// answer), is in the discovery, and /readyz is content; or until nothing gets any better. The error
// is that of ctx: its cause, such as the death of the server, and what was not ready.
func Wait(ctx context.Context, config *rest.Config) (Serving, error) {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return Serving{}, err
	}
	w := waiting{client: client}
	for _, step := range []struct {
		what string
		look func(context.Context) error
	}{{"CustomResourceDefinitions", w.list}, {"", w.ask}, {"/readyz", w.ready}, {"discovery", w.discover}} {
		last, err := until(ctx, step.look)
		switch {
		case err != nil:
			return Serving{}, err
		case last != nil && step.what != "":
			w.serving.Unready = append(w.serving.Unready, step.what+": "+last.Error())
		}
		if w.serving.Unready != nil {
			break // the rest follows from this
		}
	}
	w.explain(ctx)
	slices.SortFunc(w.serving.Versions, func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(),
			b.String())
	})
	return w.serving, nil
}

// until repeats a look until it finds no error, or the same one for a while: last. err is set when
// ctx ends.
func until(ctx context.Context, look func(context.Context) error) (last, err error) {
	for since := time.Now(); ; {
		now := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the API server is not ready: %w (%s)", context.Cause(ctx),
				cmp.Or(text(last), text(now)))
		case now == nil:
			return nil, nil
		case text(now) != text(last), !isAnswer(now):
			last, since = now, time.Now()
		case time.Since(since) > patience, time.Since(since) > definite && !starting(now):
			return last, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// verdict is what is not ready yet.
type verdict string

func (v verdict) Error() string { return string(v) }

// isAnswer reports whether err comes from a server, which did answer.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	var said verdict
	return errors.As(err, &status) || errors.As(err, &said)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// waiting is a Wait.
type waiting struct {
	client  clientset.Interface
	pending []version
	serving Serving
}

// version is a served version of a CRD.
type version struct {
	crd string
	gvr schema.GroupVersionResource
	err error // of the last look
}

// list reads the CRDs.
func (w *waiting) list(ctx context.Context) error {
	w.pending = nil
	for options := (metav1.ListOptions{Limit: crdPage}); ; {
		page, err := w.client.ApiextensionsV1().CustomResourceDefinitions().List(ctx, options)
		if err != nil {
			return err
		}
		for _, crd := range page.Items {
			for _, v := range crd.Spec.Versions {
				if v.Served {
					gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name,
						Resource: crd.Spec.Names.Plural}
					w.pending = append(w.pending, version{crd: crd.Name, gvr: gvr})
				}
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// ask asks for an object of each version that has not answered yet.
func (w *waiting) ask(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(asking)
	for i := range w.pending {
		g.Go(func() error {
			v := &w.pending[i]
			v.err = w.get("/apis", v.gvr.Group, v.gvr.Version, v.gvr.Resource).Param("limit", "1").Do(ctx).Error()
			return nil
		})
	}
	_ = g.Wait()
	w.pending = slices.DeleteFunc(w.pending, func(v version) bool {
		if !answered(v.err) {
			return false
		}
		w.serving.Versions = append(w.serving.Versions, v.gvr)
		return true
	})
	if len(w.pending) == 0 {
		return nil
	}
	return fmt.Errorf("%d versions are not served, such as %s: %w", len(w.pending), w.pending[0].gvr, w.pending[0].err)
}

// starting reports whether an answer may be one of a server that has just been started.
func starting(err error) bool {
	var said verdict
	return errors.As(err, &said) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err)
}

// answered reports whether an answer is one of the handler of a custom resource, and not a sign
// that there is none yet.
func answered(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status) && !starting(err)
}

// ready asks the server's own checks.
func (w *waiting) ready(ctx context.Context) error {
	body, err := w.get("/readyz").Param("verbose", "").Do(ctx).Raw()
	if err == nil {
		return nil
	}
	var failing []string
	for line := range strings.Lines(string(body)) {
		if check, bad := strings.CutPrefix(strings.TrimSpace(line), "[-]"); bad {
			failing = append(failing, check)
		}
	}
	if failing == nil {
		return err
	}
	return verdict(strings.Join(failing, "; "))
}

// discover looks for the versions that answer in the list of groups, which an aggregator writes
// with a delay.
func (w *waiting) discover(context.Context) error {
	groups, err := w.client.Discovery().ServerGroups()
	if err != nil {
		return err
	}
	known := make(map[string]bool)
	for _, group := range groups.Groups {
		for _, v := range group.Versions {
			known[v.GroupVersion] = true
		}
	}
	for _, gvr := range w.serving.Versions {
		if !known[gvr.GroupVersion().String()] {
			return verdict(gvr.GroupVersion().String() + " is missing")
		}
	}
	return nil
}

func (w *waiting) get(path ...string) *rest.Request {
	return w.client.ApiextensionsV1().RESTClient().Get().AbsPath(path...).SetHeader("Accept", runtime.ContentTypeJSON)
}

// explain records the versions that are not served.
func (w *waiting) explain(ctx context.Context) {
	for _, v := range w.pending {
		reason := v.err.Error()
		if crd, err := w.client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, v.crd,
			metav1.GetOptions{}); err == nil {
			reason = cmp.Or(refused(crd), reason)
		}
		w.serving.Unserved = append(w.serving.Unserved, Unserved{v.crd, v.gvr.Version, reason})
	}
}

// refused is why a CRD's names are not accepted.
func refused(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.NamesAccepted && c.Status != apiextensionsv1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}
