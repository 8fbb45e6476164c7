// Package conversion asks a conversion webhook, or a command that does the same on stdin and
// stdout, to convert custom resources, and checks the answers as an API server does.
//
// The converter is that of k8s.io/apiextensions-apiserver/pkg/apiserver/conversion; only the
// transport below it is new. It gives calls a deadline, a cancellation and a bound, which the
// library lacks. A command takes the place of the network, so that one path checks both.
//
// Invariants:
//   - Convert returns for an object the result of a server at the other version, before the schema
//     prunes and defaults it: metadata is the input's except labels and annotations. Answers with
//     another kind, name, namespace, uid or apiVersion are refused, and v1 answers that do not echo
//     the request's uid.
//   - One call converts the whole batch. A refused batch is halved to find the objects at fault.
//   - A converter that cannot be reached, or is silent beyond the timeout, is not asked again:
//     ErrUnusable.
//   - Input objects never change; results share nothing with them. Numbers are int64 or float64.
//   - A call ends with its context or its timeout, even during an endless answer; an answer is read
//     up to 16 MiB and four times the request. Redirects are not followed.
//   - After a call no process of a command is left: it is killed with its process group. Only a
//     child that left the group (setsid) survives. Idle connections end by themselves.
//   - Errors never quote an object. They quote the converter's own words (the message of a Failure,
//     a plain-text HTTP error, the end of stderr), at most 2 KiB without control characters.
package conversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

// Converter asks one webhook or command. It is not safe for concurrent use.
type Converter struct {
	name    string        // the URL or the command, for errors
	timeout time.Duration // 0: defaultTimeout
	// at returns the endpoint for a CRD.
	at func(crd *apiextensionsv1.CustomResourceDefinition) (endpoint, error)
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

// Convert asks for objs at a version of crd.Spec.Versions, in one call, and returns a result for
// each, in order. The CRD is in the v1 form, with its defaults; conversionReviewVersions select the
// request. Objects are JSON content as encoding.DecodeObject returns it, at other versions.
//
// It returns ErrUnusable, ctx.Err(), or an error about the CRD (another strategy than Webhook, no
// such version, no common ConversionReview version); then nothing was converted.
func (c *Converter) Convert(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, version string, objs []map[string]any,
) ([]Converted, error) {
	j, err := c.newJob(ctx, crd, version)
	if err != nil {
		return nil, fmt.Errorf("conversion by %s: %w", c.name, err)
	}
	results := make([]Converted, len(objs))
	switch err := j.convert(objs, results); {
	case err == nil:
		return results, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("conversion by %s: %w", c.name, ctx.Err())
	default:
		return nil, fmt.Errorf("conversion by %s: %w: %s", c.name, ErrUnusable, err)
	}
}
