package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/etcdshift/etcdshift/finding"
)

var (
	// ErrUncertain is returned by Put if a complete object may exist although the upload could not
	// be confirmed.
	ErrUncertain = finding.WithHint(errors.New("it is unknown whether the object was written"),
		"compare the SHA-256 of the object before you use it; run the command again: an object with the same "+
			"bytes counts as written")
	// ErrTooLarge is returned by Fetch for an object larger than the caller's limit.
	ErrTooLarge = finding.WithLasting(errors.New("the object is too large"),
		"if you trust its source, raise the limit with --max-expand")
	// ErrBroken is returned by Fetch for an object that arrived different from the stored object.
	ErrBroken = finding.WithHint(errors.New("the object did not arrive as it is stored"),
		"try again; if the error stays, the object or the connection is damaged")
	// ErrSlow is returned if a server sends only a few bytes a second.
	ErrSlow = finding.WithHint(errors.New("the server is too slow"),
		"try again, or from a machine with a faster way to the server")
)

// Error is an error about an object or a bucket.
type Error struct {
	Path string
	Err  error
	Next string // advice; "" if the cause has it
}

func (e *Error) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Hint returns Next; for an uncertain upload, the hint of [ErrUncertain] applies instead.
func (e *Error) Hint() string {
	if errors.Is(e.Err, ErrUncertain) {
		return ""
	}
	return e.Next
}

// Error codes in server answers.
const (
	preconditionFailed = "PreconditionFailed"
	conflict           = "ConditionalRequestConflict"
	notImplemented     = "NotImplemented"
)

var errNotS3 = errors.New("the server does not answer as S3 does")

const credentialsHint = "check the credentials in the environment or in the profile that AWS_PROFILE names"

// Limits for texts from server errors, in bytes.
const (
	maxMessage = 200
	maxRegion  = 50
)

// explain explains an error of a request about the object at path.
func explain(path string, err error) error {
	if known := (*Error)(nil); err == nil || errors.Is(err, context.Canceled) || errors.As(err, &known) {
		return err
	}
	answer := minio.ToErrorResponse(err)
	page := errors.Is(err, errNotS3) || errors.As(err, new(*xml.SyntaxError)) || err == io.EOF
	if page || answer.Code == "InternalError" && answer.StatusCode == 0 { // from the library
		return &Error{path, errNotS3,
			"check AWS_ENDPOINT_URL and its port: a console, or a proxy, has another than S3"}
	}
	if errors.Is(err, errNoCredentials) {
		return &Error{path, withHalfSet(err), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; " +
			"docs/guides/object-storage.md lists the other ways"}
	}
	if answer.Code == "" {
		next := ""
		if errors.As(err, new(*url.Error)) {
			next = "check AWS_ENDPOINT_URL, AWS_CA_BUNDLE and the network: this machine must reach the server"
		}
		return &Error{path, withoutURL(err), next}
	}
	text, next := answer.Message, ""
	var is error
	switch answer.Code {
	case "NoSuchBucket":
		is, text, next = fs.ErrNotExist, "no such bucket", "check the bucket, AWS_ENDPOINT_URL and AWS_REGION"
	case "NoSuchKey", "NoSuchVersion", "MethodNotAllowed": // MethodNotAllowed: the version is a delete marker
		is, text = fs.ErrNotExist, "no such object or version"
		next = "check the key, and the version where one is given"
	case "AccessDenied", "AllAccessDisabled":
		is, text = fs.ErrPermission, "access denied"
		next = "docs/guides/object-storage.md has the least policy; without s3:ListBucket this may mean that " +
			"there is no such object"
	case "ExpiredToken", "InvalidToken", "XAdminUserNotFound": // status 400; XAdminUserNotFound: 404, of versitygw
		is, next = fs.ErrPermission, credentialsHint
	case "InvalidBucketName":
		next = "check the name of the bucket"
	case "InvalidArgument": // for example an invalid version
		next = "check the path, and the version where one is given"
	case "RequestTimeTooSkewed":
		next = "set the clock of this machine"
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "InvalidRegion",
		"IllegalLocationConstraintException":
		region := answer.Region[:min(len(answer.Region), maxRegion)]
		next = strings.TrimRight("set AWS_REGION to the region of the bucket: "+region, ": ")
	case "InvalidObjectState":
		text = "the object is archived (as storage class GLACIER or DEEP_ARCHIVE)"
		next = "restore it first: \"aws s3api restore-object\", which takes hours"
	}
	forbidden := answer.StatusCode == http.StatusForbidden || answer.StatusCode == http.StatusUnauthorized
	if forbidden && next == "" {
		is, next = fs.ErrPermission, credentialsHint
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
	code := answer.Code[:min(len(answer.Code), maxMessage)]
	if err = fmt.Errorf("%s (%s)", text, code); strings.HasPrefix(text, "<") { // a proxy's page
		err = fmt.Errorf("the server answered %s", code)
	}
	if is != nil {
		err = fmt.Errorf("%w: %w", is, err)
	}
	return &Error{path, err, next}
}

// withoutURL returns err without request URLs, which may contain signatures.
func withoutURL(err error) error {
	at := (*url.Error)(nil)
	if !errors.As(err, &at) {
		return err
	}
	host := "the server"
	if u, bad := url.Parse(at.URL); bad == nil && u.Host != "" {
		host = u.Host
	}
	if strings.Contains(at.Err.Error(), at.URL) { // a closed connection
		return fmt.Errorf("%s closed the connection", host)
	}
	return fmt.Errorf("%s: %w", host, at.Err)
}
