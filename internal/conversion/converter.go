// Package conversion converts custom resources with a conversion webhook, or a command with the
// same protocol on stdin and stdout, and checks the answers as an API server does.
//
// The converter comes from k8s.io/apiextensions-apiserver/pkg/apiserver/conversion; only the
// transport below the converter is new. The transport adds a deadline, a cancellation and a size
// limit, which the library lacks. A command takes the place of the network, so that one path checks
// both.
//
// Invariants:
//   - Convert returns for an object the result of a server at the other version, before the schema
//     prunes and defaults the object: metadata equals the input except labels and annotations.
//     Answers with another kind, name, namespace, uid or apiVersion are refused, and v1 answers
//     that do not echo the uid of the request.
//   - One call converts the whole batch. A refused batch is halved to find the objects at fault.
//   - A converter that is unreachable, or silent beyond the timeout, is not called again:
//     ErrUnusable.
//   - Input objects never change; results share nothing with them. Numbers are int64 or float64.
//   - A call ends with its context or its timeout, even during an endless answer. An answer may
//     have 16 MiB plus four times the size of the request. Redirects are not followed.
//   - After a call no process of a command is left: the process group is killed. Only a child that
//     left the group (setsid) survives. Idle connections are closed after a timeout.
//   - Errors never quote an object. They quote messages of the converter (the message of a
//     Failure, a plain-text HTTP error, the end of stderr), at most 2 KiB without control
//     characters.
package conversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// defaultTimeout is the timeout of an API server
// (k8s.io/apiserver/pkg/util/webhook/authentication.go, setGlobalDefaults).
const defaultTimeout = 30 * time.Second

// ErrUnusable is returned by Convert if the converter as a whole failed: it is unreachable or
// silent, its certificate is wrong, or no answer is a ConversionReview for the request.
var ErrUnusable = errors.New("converter unusable")

// errRefused is wrapped by Converted.Err if a server would refuse the answer for the object, or if
// the converter refuses the conversion.
var errRefused = errors.New("conversion refused")

// Converter converts objects with one webhook or command. A Converter is not safe for concurrent
// use.
type Converter struct {
	name    string        // the URL or the command, for errors
	timeout time.Duration // 0: defaultTimeout
	// at returns the endpoint for a CRD.
	at func(crd *apiextensionsv1.CustomResourceDefinition) (endpoint, error)
}

// endpoint receives the ConversionReviews of one CRD.
type endpoint struct {
	url  string // required by the library
	send func(req *http.Request, limit int64) (answer, error)
}

// answer is the body of an HTTP 200, or the stdout of an exit status 0.
type answer struct {
	contentType string
	body        []byte
}

// Converted is the result for one object.
type Converted struct {
	Object map[string]any // nil if Err is set; the caller may change the object
	Err    error          // the answer for this object was refused
}

// Convert converts objs to a version of crd.Spec.Versions, in one call, and returns a result for
// each object, in order. The CRD is in the v1 form, with its defaults; conversionReviewVersions
// select the request. Objects are JSON content as encoding.DecodeObject returns it, at other
// versions.
//
// The error is ErrUnusable, ctx.Err(), or an error about the CRD (another strategy than Webhook, no
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
