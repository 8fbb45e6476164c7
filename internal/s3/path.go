package s3

import (
	"fmt"
	"net/url"
	"strings"
)

const (
	scheme  = "s3://"
	giveKey = "give s3://BUCKET/KEY"
)

// Location is a parsed path.
type Location struct {
	Bucket, Key string
	Version     string // the versionId; "" for the latest
}

// Is reports whether path names an object: it begins with "s3://".
func Is(path string) bool { return strings.HasPrefix(path, scheme) }

// Parse parses s3://BUCKET/KEY or s3://BUCKET/KEY?versionId=ID. A key may contain other question
// marks.
func Parse(path string) (Location, error) {
	l, err := parsePrefix(path)
	if err != nil {
		return Location{}, err
	}
	if at := strings.LastIndex(l.Key, "?versionId="); at >= 0 {
		l.Version, err = url.QueryUnescape(l.Key[at+len("?versionId="):])
		l.Key = l.Key[:at]
		if err == nil && l.Version == "" {
			err = fmt.Errorf("the version is empty")
		}
	}
	switch {
	case err != nil:
	case l.Key == "":
		err = fmt.Errorf("the key is missing: s3://BUCKET/KEY")
	case strings.HasSuffix(l.Key, "/"):
		err = fmt.Errorf("the key ends in a slash: it names a folder, not an object")
	}
	if err != nil {
		return Location{}, &Error{path, err, giveKey}
	}
	return l, nil
}

// parsePrefix parses s3://BUCKET/PREFIX; the prefix may be empty.
func parsePrefix(path string) (l Location, err error) {
	rest, is := strings.CutPrefix(path, scheme)
	l.Bucket, l.Key, _ = strings.Cut(rest, "/")
	switch {
	case !is:
		err = fmt.Errorf("a path begins with %s", scheme)
	case l.Bucket == "":
		err = fmt.Errorf("the bucket is missing: s3://BUCKET/KEY")
	case strings.Contains(l.Bucket, "@"): // the text before @ may be a password
		path = scheme + rest[strings.LastIndex(l.Bucket, "@")+1:]
		err = fmt.Errorf("no credentials belong in a path")
	case strings.ContainsAny(l.Bucket, "?:"):
		err = fmt.Errorf("%q is not the name of a bucket", l.Bucket)
	}
	if err != nil {
		return l, &Error{path, err, giveKey}
	}
	return l, nil
}

// Same reports whether two paths name the same object, ignoring versions.
func Same(a, b string) bool {
	x, errA := Parse(a)
	y, errB := Parse(b)
	return errA == nil && errB == nil && x.Bucket == y.Bucket && x.Key == y.Key
}

// String returns the path of the location.
func (l Location) String() string {
	path := scheme + l.Bucket + "/" + l.Key
	if l.Version != "" {
		path += "?versionId=" + url.QueryEscape(l.Version)
	}
	return path
}
