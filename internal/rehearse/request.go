package rehearse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// manager is the field manager of all writes.
const manager = "etcdshift-rehearsal"

// answerTimeout bounds one request; an API server gives up after a minute.
const answerTimeout = 2 * time.Minute

// newClient returns a client for paths of an API server, without rate limit. Answers are not
// compressed: the server is on the same machine.
func newClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter, own.DisableCompression = -1, nil, true
	own.ContentConfig = rest.ContentConfig{NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()}
	own.APIPath, own.GroupVersion, own.WarningHandler = "/", &schema.GroupVersion{}, rest.NoWarnings{}
	return rest.UnversionedRESTClientFor(own)
}

// starting reports whether a kube-apiserver does not yet know the kind of the params of an
// admission policy. Up to 29 seconds after a start were measured (k8s.io/apiserver,
// admission/plugin/policy/generic).
func starting(refusal *apierrors.StatusError) bool {
	return strings.Contains(refusal.Error(), "There can be a delay between when CustomResourceDefinitions "+
		"are created") ||
		strings.Contains(refusal.Error(), "failed to find resource referenced by paramKind")
}

// do sends a request and returns the answer, and retries while the server starts. A refusal by the
// API server is a *apierrors.StatusError; any other error means that there is no server.
func (r *runner) do(ctx context.Context, request *rest.Request) ([]byte, error) {
	for {
		answer, err := r.once(ctx, request)
		if refusal := refusalOf(err); refusal == nil || !starting(refusal) || time.Now().After(r.started) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (r *runner) once(ctx context.Context, request *rest.Request) ([]byte, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.slots }()
	timed, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer := request.Do(timed)
	switch err := answer.Error(); {
	case err == nil:
		return answer.Raw()
	case refusalOf(err) != nil || ctx.Err() != nil:
		return nil, err
	case r.client.Get().AbsPath("/version").Do(ctx).Error() == nil:
		return nil, apierrors.NewInternalError(errUnanswered)
	default:
		return nil, fmt.Errorf("the API server does not answer: %s: %w", request.URL().Path, err)
	}
}

// errUnanswered is the refusal of a server that panics over one request, and continues.
var errUnanswered = errors.New("the API server ended the connection without an answer, or gave none in time")
