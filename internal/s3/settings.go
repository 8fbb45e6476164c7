package s3

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"gopkg.in/ini.v1"
)

// settings are the settings of the AWS tools, except credentials.
type settings struct {
	endpoint *url.URL // nil: AWS
	region   string   // "": the bucket's region
	ca       string   // path of the CA file; "": the CAs of the system
}

// readSettings reads the environment, then the profile in the configuration file.
func readSettings() (s settings, err error) {
	path := cmp.Or(os.Getenv("AWS_CONFIG_FILE"), home(".aws", "config"))
	profile, err := readProfile(path, cmp.Or(os.Getenv("AWS_PROFILE"), "default"))
	if err != nil {
		return s, err
	}
	s.region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), profile["region"])
	s.ca = cmp.Or(os.Getenv("AWS_CA_BUNDLE"), profile["ca_bundle"])
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	if endpoint == "" && !strings.EqualFold(os.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		endpoint = cmp.Or(profile["s3.endpoint_url"], profile["endpoint_url"])
	}
	if endpoint != "" {
		if s.endpoint, err = parseEndpoint(endpoint); err != nil {
			return s, err
		}
		s.region = cmp.Or(s.region, "us-east-1") // default region of other servers
	}
	return s, nil
}

func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "": // the URL may contain a password
		return nil, errors.New("the endpoint URL must be https://HOST or http://HOST, " +
			"such as https://minio.example:9000")
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return nil, fmt.Errorf("the endpoint URL of %s must be scheme and host alone", u.Host)
	}
	return u, nil
}

// home returns a path in the home folder, or "" without a home folder.
func home(elements ...string) string {
	dir, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{dir}, elements...)...)
}

// readProfile returns the settings of a profile, and those of its section "services" as "s3.NAME".
// A missing file yields no settings.
func readProfile(path, name string) (map[string]string, error) {
	options := ini.LoadOptions{
		Loose: true, SkipUnrecognizableLines: true, AllowNestedValues: true, KeyValueDelimiters: "=",
		ChildSectionDelimiter: "\n",
		IgnoreContinuation:    true, IgnoreInlineComment: true, PreserveSurroundedQuote: true,
	}
	file, err := ini.LoadSources(options, path)
	if err != nil {
		return nil, err
	}
	sections := map[string]*ini.Section{}
	for _, section := range file.Sections() {
		sections[strings.Join(strings.Fields(section.Name()), " ")] = section
	}
	section := sections["profile "+name]
	if section == nil && name == "default" {
		section = sections[name]
	}
	if section == nil {
		return nil, nil
	}
	profile := section.KeysHash()
	services := sections["services "+profile["services"]]
	if services == nil {
		return profile, nil
	}
	for _, line := range services.Key("s3").NestedValues() {
		if key, value, _ := strings.Cut(line, "="); strings.TrimSpace(key) == "endpoint_url" {
			profile["s3.endpoint_url"] = strings.TrimSpace(value)
		}
	}
	return profile, nil
}

// transport returns the HTTP transport for the settings.
func (s settings) transport() (*http.Transport, error) {
	t, err := minio.DefaultTransport(true)
	if err != nil {
		return nil, err
	}
	t.ResponseHeaderTimeout = 5 * time.Minute // servers may need minutes to join parts
	if s.ca == "" {
		return t, nil
	}
	text, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("AWS_CA_BUNDLE: %q holds no certificate", s.ca)
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	return t, nil
}
