package conversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// defaultTimeout is what an API server gives a conversion webhook
// (k8s.io/apiserver/pkg/util/webhook/authentication.go, setGlobalDefaults).
const defaultTimeout = 30 * time.Second

// ErrUnusable is returned by Convert where the converter as a whole failed: it can't be reached, its certificate is
// not the expected one, it stays silent, or nothing it answers is a ConversionReview for the request.
var ErrUnusable = errors.New("converter unusable")

// ErrRefused is wrapped by Converted.Err where a server would refuse the answer for that object, or where the
// converter itself says that it can't convert the object.
var ErrRefused = errors.New("conversion refused")

// ErrClosed is returned by Convert after Close.
var ErrClosed = errors.New("converter is closed")

// Converter asks one webhook or command. It may be used by several goroutines at once.
type Converter struct {
	name    string // the URL or the command, for errors
	timeout time.Duration
	far     far
	closing context.Context // ends with Close
	stop    context.CancelFunc

	mu     sync.Mutex // guards closed, and calls.Add against calls.Wait
	closed bool
	calls  sync.WaitGroup
}

// far is the other side: what the library's client talks to.
type far interface {
	// at says how to ask on behalf of the CRD.
	at(crd *apiextensionsv1.CustomResourceDefinition) (endpoint, error)
	close()
}

// endpoint is where the ConversionReviews of one CRD go.
type endpoint struct {
	url  string // for the library, which wants one
	send func(req *http.Request, limit int64) (answer, error)
}

// answer is what came back: the body of an HTTP 200, or the stdout of an exit status 0.
type answer struct {
	contentType string
	body        []byte
}

// Converted is the result for one object.
type Converted struct {
	Object map[string]any // nil when Err is set; the caller's to change
	Err    error          // this object's answer was refused
}

func newConverter(name string, timeout time.Duration, f far) (*Converter, error) {
	if timeout < 0 {
		return nil, fmt.Errorf("timeout %s is negative", timeout)
	}
	if timeout == 0 {
		timeout = defaultTimeout
	}
	c := &Converter{name: name, timeout: timeout, far: f}
	c.closing, c.stop = context.WithCancel(context.Background())
	return c, nil
}

// Convert asks for objs at the named version, one of crd.Spec.Versions, in one call, and returns a result for each, in
// order. The CRD is the v1 form, with its defaults; its conversionReviewVersions say in which version to ask.
//
// Objects are JSON content as encoding.DecodeObject returns it. One that is at the version is returned as a copy; one
// whose apiVersion the CRD does not list has an Err and is not sent.
//
// It returns ErrUnusable, ctx.Err(), ErrClosed, or an error that says why the CRD can't be converted with (no strategy
// Webhook, no such version, no ConversionReview version in common); then nothing was converted.
func (c *Converter) Convert(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string,
	objs []map[string]any) ([]Converted, error) {
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

// overall names the converter in the error that ends a Convert; a cancelled context comes before all others.
func (c *Converter) overall(ctx context.Context, err error) error {
	switch {
	case c.closing.Err() != nil:
		return fmt.Errorf("conversion by %s: %w", c.name, ErrClosed)
	case ctx.Err() != nil:
		return fmt.Errorf("conversion by %s: %w", c.name, ctx.Err())
	}
	return fmt.Errorf("conversion by %s: %w: %s", c.name, ErrUnusable, err)
}

// begin registers a call, which Close cancels and waits for.
func (c *Converter) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, fmt.Errorf("conversion by %s: %w", c.name, ErrClosed)
	}
	c.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(c.closing, cancel)
	return ctx, func() {
		detach()
		cancel()
		c.calls.Done()
	}, nil
}

// Close ends calls under way, waits for them and closes connections. It may be called more than once and returns nil.
func (c *Converter) Close() error {
	c.mu.Lock()
	c.closed = true
	c.stop()
	c.mu.Unlock()
	c.calls.Wait()
	c.far.close()
	return nil
}
