package tries

import (
	"context"
	"errors"
	"fmt"
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

// answerTimeout is for one request; an API server gives up after a minute.
const answerTimeout = 2 * time.Minute

// NewClient returns a client for paths of an API server, without rate limit. Answers are not
// compressed: the server is on the same machine.
func NewClient(config *rest.Config) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter, own.DisableCompression = -1, nil, true
	own.ContentConfig = rest.ContentConfig{NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion()}
	own.APIPath, own.GroupVersion, own.WarningHandler = "/", &schema.GroupVersion{}, rest.NoWarnings{}
	return rest.UnversionedRESTClientFor(own)
}

// do sends a request and returns the answer. An API server's refusal is a *apierrors.StatusError;
// any other error means that there is no server.
func (r *runner) do(ctx context.Context, request *rest.Request) ([]byte, error) {
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

// errUnanswered is the refusal of a server that panics over one request, and goes on.
var errUnanswered = errors.New("the API server ended the connection without an answer, or gave none in time")
