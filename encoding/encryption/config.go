package encryption

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
)

// config holds the names of a configuration, but no keys.
type config struct {
	rules   map[schema.GroupResource][]provider // by the resource in the file, "*" included; in order
	plugins []plugin
}

// plugin is a KMS v2 plugin.
type plugin struct {
	name, endpoint string
	timeout        time.Duration // of one call
}

func (p plugin) String() string { return fmt.Sprintf("%q at %s", p.name, p.endpoint) }

// parseConfig reads an EncryptionConfiguration like the server. The server's own loader runs later,
// because its errors quote the file, keys included: "Object 'Kind' is missing in" and the whole
// text, or the JSON of an element with two providers.
func parseConfig(text []byte) (config, error) {
	data, err := asJSON(text)
	if err != nil {
		return config{}, err
	}
	fields, err := decode(data)
	if err != nil {
		return config{}, err
	}
	scheme, parsed := runtime.NewScheme(), &apiserver.EncryptionConfiguration{}
	if err := errors.Join(apiserver.AddToScheme(scheme), apiserverv1.AddToScheme(scheme)); err != nil {
		return config{}, err
	}
	scheme.Default(fields)
	if err := scheme.Convert(fields, parsed, nil); err != nil {
		return config{}, errors.New("not an EncryptionConfiguration") // err may quote the file
	}
	if err := invalid(validation.ValidateEncryptionConfiguration(parsed, false)); err != nil {
		return config{}, err
	}
	return configOf(parsed)
}

// asJSON converts YAML to JSON. If the text begins as JSON, the server accepts only JSON.
func asJSON(text []byte) ([]byte, error) {
	if begin := bytes.TrimLeftFunc(text, unicode.IsSpace); bytes.HasPrefix(begin, []byte("{")) {
		if !json.Valid(begin) {
			return nil, errors.New("it begins as JSON, and is none")
		}
		return begin, nil
	}
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		line := regexp.MustCompile(`line \d+`).FindString(err.Error()) // the rest of err may quote the file
		return nil, errors.New(strings.TrimPrefix(line+": not YAML, or a field given twice", ": "))
	}
	return data, nil
}

// decode decodes a configuration. Errors give the paths of wrong and unknown fields.
func decode(data []byte) (*apiserverv1.EncryptionConfiguration, error) {
	fields := &apiserverv1.EncryptionConfiguration{}
	unknown, err := kjson.UnmarshalStrict(data, fields)
	// documented for Kubernetes 1.7; servers still read it
	legacy := fields.APIVersion == "v1" && fields.Kind == "EncryptionConfig"
	switch {
	case err != nil:
		return nil, typeError(err)
	case !legacy && fields.Kind != "EncryptionConfiguration":
		return nil, fmt.Errorf("kind: %q, want EncryptionConfiguration", shown(fields.Kind))
	case !legacy && fields.APIVersion != apiserverv1.SchemeGroupVersion.String():
		return nil, fmt.Errorf("apiVersion: %q, want %s", shown(fields.APIVersion), apiserverv1.SchemeGroupVersion)
	}
	var errs []error
	for _, err := range unknown {
		path := "a field"
		if at, ok := err.(kjson.FieldError); ok {
			path = shownPath(at.FieldPath())
		}
		errs = append(errs, fmt.Errorf("%s: unknown field", path))
	}
	return fields, errors.Join(errs...)
}

// typeError returns an error with the path of the field of the wrong type. The library's error may
// quote the value of the field.
func typeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		found, _, _ := strings.Cut(wrong.Value, " ") // "number 17"
		if wrong.Field == "" {
			return fmt.Errorf("%s, want an EncryptionConfiguration", found)
		}
		return fmt.Errorf("%s: %s, want %s", shownPath(wrong.Field), found, wrong.Type.Kind())
	}
	return errors.New("resources.providers.kms.timeout: not a duration") // the only field with its own decoder
}

// shownPath hides parts of a path that may be a key: in a badly indented file, a key can take the
// place of a field name.
func shownPath(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "[")
		parts[i] = shown(name) + part[len(name):]
	}
	return strings.Join(parts, ".")
}

// shown hides text that may be a key: the shortest key, 16 bytes in base64, has 22 letters.
func shown(text string) string {
	known := []string{
		"EncryptionConfiguration", apiserverv1.SchemeGroupVersion.String(), "AuthenticationConfiguration",
		"AuthorizationConfiguration", "AdmissionConfiguration", "CustomResourceDefinition",
	}
	if len(text) < 20 || slices.Contains(known, text) {
		return text
	}
	return fmt.Sprintf("(%d letters)", len(text))
}

// invalid joins the errors of the server's validation. invalid quotes only single strings: names,
// endpoints, or "REDACTED" for a key. Other values are whole parts of the file.
func invalid(found field.ErrorList) error {
	var errs []error
	for _, err := range found {
		detail := err.Detail
		if value, single := err.BadValue.(string); single && value != "" && err.Type != field.ErrorTypeRequired &&
			value != "REDACTED" {
			detail = fmt.Sprintf("%q: %s", value, detail)
		}
		errs = append(errs, fmt.Errorf("%s: %s", err.Field, detail))
	}
	return errors.Join(errs...)
}

// configOf keeps the names. A KMS v1 provider is an error: the KMS v1 API is off by default since
// Kubernetes 1.29, and can be enabled only for a whole process.
func configOf(parsed *apiserver.EncryptionConfiguration) (config, error) {
	c := config{rules: make(map[schema.GroupResource][]provider)}
	for i, rule := range parsed.Resources {
		var providers []provider
		for j, p := range rule.Providers {
			if p.KMS != nil && p.KMS.APIVersion != "v2" {
				return config{}, fmt.Errorf("resources[%d].providers[%d].kms: provider %q is for KMS %s, and only "+
					"KMS v2 is supported "+
					"(apiVersion: v2); without apiVersion it is v1: %w", i, j, p.KMS.Name, p.KMS.APIVersion,
					encoding.ErrKMSv1)
			}
			if p.KMS != nil {
				c.plugins = append(c.plugins, plugin{p.KMS.Name, p.KMS.Endpoint, p.KMS.Timeout.Duration})
			}
			providers = append(providers, keysOf(p)...)
		}
		for _, resource := range rule.Resources {
			gr := schema.ParseGroupResource(resource)
			c.rules[gr] = append(c.rules[gr], providers...)
		}
	}
	return c, nil
}

// keysOf returns one provider for each key.
func keysOf(p apiserver.ProviderConfiguration) (named []provider) {
	var name string
	var keys []apiserver.Key
	switch {
	case p.KMS != nil:
		return []provider{{kms, p.KMS.APIVersion, p.KMS.Name}}
	case p.AESCBC != nil:
		name, keys = aescbc, p.AESCBC.Keys
	case p.AESGCM != nil:
		name, keys = aesgcm, p.AESGCM.Keys
	case p.Secretbox != nil:
		name, keys = secretbox, p.Secretbox.Keys
	default:
		return []provider{{name: identity}}
	}
	for _, key := range keys {
		named = append(named, provider{name, "v1", key.Name})
	}
	return named
}

// providers returns the providers of the first rule for gr, in the order of
// encryptionconfig.TransformerForResource: the resource, its group, all.
func (c config) providers(gr schema.GroupResource) []provider {
	for _, rule := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if providers, found := c.rules[rule]; found {
			return providers
		}
	}
	return nil
}

// Names of the providers, as spelled in configurations and prefixes.
const (
	aescbc    = "aescbc"
	aesgcm    = "aesgcm"
	secretbox = "secretbox"
	kms       = "kms"
	identity  = "identity"
)

// provider names the encryption of a value.
type provider struct {
	name    string // one of the names above, or the provider of a later server
	version string // of the provider's format: v1, for kms also v2
	key     string // name of the key in the configuration; for kms the name of the plugin
}

// String returns "aescbc:v1:key1", as in the value, without the unknown parts.
func (p provider) String() string {
	if p.name == "" {
		return "an unnamed provider"
	}
	return strings.TrimRight(p.name+":"+p.version+":"+p.key, ":")
}

// prefix returns the beginning of each value of this provider and key (k8s.io/apiserver
// pkg/storage/value/encrypt/identity).
func (p provider) prefix() string { return "k8s:enc:" + p.name + ":" + p.version + ":" + p.key + ":" }

// describe reads provider and key from the beginning of a value. ok is false for plaintext. If a
// part does not look like a name, as in a damaged value, that part and all later parts are empty.
// The name of a key ends at its first colon.
func describe(stored []byte) (p provider, ok bool) {
	parts, ok := encoding.EncryptionParts(stored)
	parts = append(parts, "", "", "")
	return provider{parts[0], parts[1], parts[2]}, ok
}
