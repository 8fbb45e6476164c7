package s3

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// errNoCredentials is returned if no source has credentials.
var errNoCredentials = errors.New("no credentials for S3 were found")

// patience is the time limit for a credentials server.
const patience = 5 * time.Second

// source retrieves credentials from the first AWS source that has credentials: the environment, a
// web identity, the profile's files, the metadata of the container or the machine.
type source struct{ credentials.Provider }

func newSource() *source {
	both := func(id, secret string) bool { return os.Getenv(id) != "" && os.Getenv(secret) != "" }
	switch {
	case both("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
		return &source{&credentials.EnvAWS{}}
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return &source{&credentials.IAM{}}
	}
	return &source{&credentials.FileAWSCredentials{}}
}

// withHalfSet adds to an error that only one of the two variables is set, which has no effect.
func withHalfSet(err error) error {
	id, secret := "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
	if os.Getenv(id) == "" {
		id, secret = secret, id
	}
	if os.Getenv(id) == "" || os.Getenv(secret) != "" {
		return err
	}
	return fmt.Errorf("%w: %s is set, %s is not", err, id, secret)
}

// Retrieve is [source.RetrieveWithCredContext] without a context.
func (s *source) Retrieve() (credentials.Value, error) {
	return s.RetrieveWithCredContext(&credentials.CredContext{Context: context.Background()})
}

// RetrieveWithCredContext returns credentials; anonymous credentials are an error.
func (s *source) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	value, err := s.ask(cc)
	_, files := s.Provider.(*credentials.FileAWSCredentials)
	if files && value.AccessKeyID == "" && os.Getenv("AWS_PROFILE") == "" {
		if !strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
			s.Provider = &credentials.IAM{}
			value, err = s.ask(cc)
		}
		if value.AccessKeyID == "" {
			return value, errNoCredentials
		}
	}
	if err != nil {
		return value, fmt.Errorf("%w: %w", errNoCredentials, withoutURL(err))
	}
	if value.AccessKeyID == "" || value.SecretAccessKey == "" {
		return value, errNoCredentials
	}
	for _, one := range []struct{ name, value string }{
		{"access key ID", value.AccessKeyID},
		{"secret access key", value.SecretAccessKey},
		{"session token", value.SessionToken},
	} {
		if strings.TrimSpace(one.value) != one.value { // for example in a Secret created from a file
			return value, fmt.Errorf("%w that can be used: the %s begins or ends with a space or a line break",
				errNoCredentials, one.name)
		}
	}
	return value, nil
}

func (s *source) ask(cc *credentials.CredContext) (credentials.Value, error) {
	bounded := *cc
	ctx, cancel := cc.Context, context.CancelFunc(nil)
	if ctx == nil {
		ctx = context.Background()
	}
	bounded.Context, cancel = context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Provider.RetrieveWithCredContext(&bounded)
}
