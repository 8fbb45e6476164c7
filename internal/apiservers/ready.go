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
	pause    = 50 * time.Millisecond // between two checks
	patience = 15 * time.Second      // maximum time without progress
	definite = 2 * time.Second       // the same, for answers that do not indicate a starting server
	asking   = 4                     // concurrent requests
	crdPage  = 100                   // CRDs per page
)

// Serving describes a ready API server, or its state when progress ended.
type Serving struct {
	Versions []schema.GroupVersionResource // of custom resources with an answer, sorted
	Unserved []Unserved                    // served by their CRD, but without an answer, sorted
	Unready  []string                      // why CRDs cannot be listed, and failing checks of /readyz
}

// Unserved is a served version of a CRD without an answer from the API server.
type Unserved struct {
	CRD, Version, Reason string
}

// Wait waits until every served version of every CRD answers (a refused list is an answer) and is
// in the discovery, and /readyz succeeds; or until progress ends. The error is the cause of ctx,
// such as the death of the server, with the missing conditions.
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
			break // other checks depend on this
		}
	}
	w.explain(ctx)
	slices.SortFunc(w.serving.Versions, func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(),
			b.String())
	})
	return w.serving, nil
}

// until repeats look until it succeeds or returns the same error for a while: last. err is set when
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

// verdict is a missing condition.
type verdict string

func (v verdict) Error() string { return string(v) }

// isAnswer reports whether err is an answer of a server.
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

// waiting is the state of Wait.
type waiting struct {
	client  clientset.Interface
	pending []version
	serving Serving
}

// version is a served version of a CRD.
type version struct {
	crd string
	gvr schema.GroupVersionResource
	err error // of the last check
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

// ask requests an object of each version without an answer.
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

// starting reports whether a server that is still starting may give this answer.
func starting(err error) bool {
	var said verdict
	return errors.As(err, &said) || apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err)
}

// answered reports whether an answer comes from the handler of a custom resource, which therefore
// exists.
func answered(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status) && !starting(err)
}

// ready checks the server's own readiness.
func (w *waiting) ready(ctx context.Context) error {
	body, err := w.get("/readyz").Param("verbose", "").Do(ctx).Raw()
	if err == nil {
		return nil
	}
	var failing []string
	text := string(body) + "\n" + strings.ReplaceAll(err.Error(), `\n`, "\n") // clients quote the body in the error
	for line := range strings.Lines(text) {
		if check, bad := strings.CutPrefix(strings.TrimSpace(line), "[-]"); bad {
			failing = append(failing, check)
		}
	}
	if failing == nil {
		return err
	}
	return verdict(strings.Join(failing, "; "))
}

// discover checks whether the list of groups has the answering versions; an aggregator updates the
// list with a delay.
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

// refused returns the reason for rejected CRD names.
func refused(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.NamesAccepted && c.Status != apiextensionsv1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}
