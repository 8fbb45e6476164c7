package conversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultTimeout is that of an API server
// (k8s.io/apiserver/pkg/util/webhook/authentication.go, setGlobalDefaults).
const defaultTimeout = 30 * time.Second

// ErrUnusable is returned by Convert if the converter as a whole failed: it cannot be reached, its
// certificate is wrong, it stays silent, or no answer is a ConversionReview for the request.
var ErrUnusable = errors.New("converter unusable")

// errRefused is wrapped by Converted.Err if a server would refuse the answer for the object, or if
// the converter refuses to convert it.
var errRefused = errors.New("conversion refused")

// errClosed is returned by Convert after Close.
var errClosed = errors.New("converter is closed")

// Converter asks one webhook or command. It is safe for concurrent use.
type Converter struct {
	name    string // the URL or the command, for errors
	timeout time.Duration
	far     far
	closing context.Context // ends with Close
	stop    context.CancelFunc

	calls sync.RWMutex // held for reading during a Convert
}

// far is the other side of the library's client.
type far interface {
	// at returns the endpoint for a CRD.
	at(crd *apiextensionsv1.CustomResourceDefinition) (endpoint, error)
	close()
}

// endpoint receives the ConversionReviews of one CRD.
type endpoint struct {
	url  string // the library requires one
	send func(req *http.Request, limit int64) (answer, error)
}

// answer is the body of an HTTP 200, or the stdout of an exit status 0.
type answer struct {
	contentType string
	body        []byte
}

// Converted is the result for one object.
type Converted struct {
	Object map[string]any // nil if Err is set; the caller may change it
	Err    error          // the answer for this object was refused
}

func newConverter(name string, timeout time.Duration, f far) (*Converter, error) {
	if timeout < 0 {
		return nil, fmt.Errorf("timeout %s is negative", timeout)
	}
	c := &Converter{name: name, timeout: cmp.Or(timeout, defaultTimeout), far: f}
	c.closing, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Convert asks for objs at a version of crd.Spec.Versions, in one call, and returns a result for
// each, in order. The CRD is in the v1 form, with its defaults; conversionReviewVersions select the
// request.
//
// Objects are JSON content as encoding.DecodeObject returns it. One at the version is copied; one
// whose apiVersion the CRD does not list gets an Err and is not sent.
//
// It returns ErrUnusable, ctx.Err(), an error after Close, or one about the CRD (another strategy
// than Webhook, no such version, no common ConversionReview version); then nothing was converted.
func (c *Converter) Convert(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string, objs []map[string]any,
) ([]Converted, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	j, err := c.newJob(ctx, crd, version)
	if err != nil {
		return nil, fmt.Errorf("conversion by %s: %w", c.name, err)
	}
	results := make([]Converted, len(objs))
	var pending []item
	for i, obj := range objs {
		switch apiVersion, err := j.source(obj); {
		case err != nil:
			results[i].Err = err
		case apiVersion == j.target.String():
			results[i].Object = runtime.DeepCopyJSON(obj)
		default:
			pending = append(pending, item{obj: obj, result: &results[i]})
		}
	}
	if err := j.convert(pending); err != nil {
		return nil, c.overall(ctx, err)
	}
	return results, nil
}

// overall names the converter in the error that ends a Convert; cancellations come first.
func (c *Converter) overall(ctx context.Context, err error) error {
	switch {
	case c.closing.Err() != nil:
		return fmt.Errorf("conversion by %s: %w", c.name, errClosed)
	case ctx.Err() != nil:
		return fmt.Errorf("conversion by %s: %w", c.name, ctx.Err())
	}
	return fmt.Errorf("conversion by %s: %w: %s", c.name, ErrUnusable, err)
}

// begin registers a call, which Close cancels and waits for.
func (c *Converter) begin(ctx context.Context) (context.Context, func(), error) {
	c.calls.RLock()
	if c.closing.Err() != nil {
		c.calls.RUnlock()
		return nil, nil, fmt.Errorf("conversion by %s: %w", c.name, errClosed)
	}
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(c.closing, cancel)
	return ctx, func() {
		detach()
		cancel()
		c.calls.RUnlock()
	}, nil
}

// Close cancels running calls, waits for them and closes connections. It returns nil.
func (c *Converter) Close() error {
	c.stop()
	c.calls.Lock()
	defer c.calls.Unlock()
	c.far.close()
	return nil
}
