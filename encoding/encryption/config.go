package encryption

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
)

// config is what errors and the rules of this package need to know of a configuration: names, no keys.
type config struct {
	rules   map[schema.GroupResource][]Provider // as the file spells the resource, "*" included; in the order they are tried
	plugins []plugin
}

// plugin is a KMS v2 plugin.
type plugin struct {
	name, endpoint string
	timeout        time.Duration // of one call
}

func (p plugin) String() string { return fmt.Sprintf("%q at %s", p.name, p.endpoint) }

// parseConfig reads an EncryptionConfiguration as the server does. It is read here before the server's own loader reads
// it since that one's errors quote the file, keys and all: "Object 'Kind' is missing in" and then the whole text, or the
// JSON of an element with two providers.
func parseConfig(text []byte) (config, error) {
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return config{}, errors.New(notYAML(err))
	}
	if err := checkFields(data); err != nil {
		return config{}, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(apiserver.AddToScheme(scheme), apiserverv1.AddToScheme(scheme)); err != nil {
		return config{}, err
	}
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return config{}, errors.New("not an EncryptionConfiguration") // checkFields has found all that is known to be wrong
	}
	parsed, ok := object.(*apiserver.EncryptionConfiguration)
	if !ok {
		return config{}, errors.New("kind: not EncryptionConfiguration")
	}
	if err := invalid(validation.ValidateEncryptionConfiguration(parsed, false)); err != nil {
		return config{}, err
	}
	return describe(parsed)
}

// notYAML keeps the line number of a YAML error. The rest may quote the file.
func notYAML(err error) string {
	if line := regexp.MustCompile(`line \d+`).FindString(err.Error()); line != "" {
		return line + ": not YAML, or a field given twice"
	}
	return "not YAML, or a field given twice"
}

// checkFields finds what the file says that an EncryptionConfiguration does not have, by field.
func checkFields(data []byte) error {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return typeError(err)
	}
	legacy := meta.APIVersion == "v1" && meta.Kind == "EncryptionConfig" // as Kubernetes 1.7 documented it; still read
	switch {
	case legacy:
	case meta.Kind != "EncryptionConfiguration":
		return fmt.Errorf("kind: %q, want EncryptionConfiguration", shown(meta.Kind))
	case meta.APIVersion != apiserverv1.SchemeGroupVersion.String():
		return fmt.Errorf("apiVersion: %q, want %s", shown(meta.APIVersion), apiserverv1.SchemeGroupVersion)
	}
	var fields apiserverv1.EncryptionConfiguration
	unknown, err := kjson.UnmarshalStrict(data, &fields)
	if err != nil {
		return typeError(err)
	}
	var errs []error
	for _, err := range unknown {
		path := "a field"
		if at, ok := err.(kjson.FieldError); ok {
			path = shownPath(at.FieldPath())
		}
		errs = append(errs, fmt.Errorf("%s: unknown field", path))
	}
	return errors.Join(errs...)
}

// typeError names the field that is not of its type; the library's text may hold the field's value.
func typeError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		found, _, _ := strings.Cut(wrong.Value, " ") // "number 17"
		if wrong.Field == "" {
			return fmt.Errorf("%s, want an EncryptionConfiguration", found)
		}
		return fmt.Errorf("%s: %s, want %s", shownPath(wrong.Field), found, wrong.Type.Kind())
	}
	return errors.New("resources.providers.kms.timeout: not a duration") // the only field that decodes itself
}

// shownPath is a field's path without its last part where that may be anything: in a file with a line too far left, or
// a colon too few, a key can stand where a field's name belongs.
func shownPath(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, index, indexed := strings.Cut(part, "[")
		parts[i] = shown(name)
		if indexed {
			parts[i] += "[" + index
		}
	}
	return strings.Join(parts, ".")
}

// shown is the text where it can't be a key: the shortest, 16 bytes in base64, has 22 letters.
func shown(text string) string {
	if len(text) < 20 {
		return text
	}
	for _, known := range []string{"EncryptionConfiguration", apiserverv1.SchemeGroupVersion.String(), "AuthenticationConfiguration",
		"AuthorizationConfiguration", "AdmissionConfiguration", "CustomResourceDefinition"} {
		if text == known {
			return text
		}
	}
	return fmt.Sprintf("(%d letters)", len(text))
}

// invalid joins what the server's validation found. Values are shown where they are single strings, which are names and
// endpoints ("REDACTED" for a key); others are whole parts of the file.
func invalid(found field.ErrorList) error {
	var errs []error
	for _, err := range found {
		detail := err.Detail
		if value, single := err.BadValue.(string); single && value != "" && err.Type != field.ErrorTypeRequired && value != "REDACTED" {
			detail = fmt.Sprintf("%q: %s", value, detail)
		}
		errs = append(errs, fmt.Errorf("%s: %s", err.Field, detail))
	}
	return errors.Join(errs...)
}

// describe keeps the names. A KMS v1 provider is refused: its API is off by default since Kubernetes 1.29 and can be
// turned on for a whole process only.
func describe(parsed *apiserver.EncryptionConfiguration) (config, error) {
	c := config{rules: make(map[schema.GroupResource][]Provider)}
	for i, rule := range parsed.Resources {
		var providers []Provider
		for j, p := range rule.Providers {
			if p.KMS != nil && p.KMS.APIVersion != "v2" {
				return config{}, fmt.Errorf("resources[%d].providers[%d].kms: provider %q is for KMS %s, and only KMS v2 is supported "+
					"(apiVersion: v2); without apiVersion it is v1: %w", i, j, p.KMS.Name, p.KMS.APIVersion, encoding.ErrKMSv1)
			}
			if p.KMS != nil {
				c.plugins = append(c.plugins, plugin{p.KMS.Name, p.KMS.Endpoint, p.KMS.Timeout.Duration})
			}
			providers = append(providers, named(p)...)
		}
		for _, resource := range rule.Resources {
			gr := schema.ParseGroupResource(resource)
			c.rules[gr] = append(c.rules[gr], providers...)
		}
	}
	return c, nil
}

// named are the keys of a provider, one each.
func named(p apiserver.ProviderConfiguration) []Provider {
	keys := func(name string, keys []apiserver.Key) (named []Provider) {
		for _, key := range keys {
			named = append(named, Provider{Name: name, Version: "v1", Key: key.Name})
		}
		return named
	}
	switch {
	case p.AESCBC != nil:
		return keys(aescbc, p.AESCBC.Keys)
	case p.AESGCM != nil:
		return keys(aesgcm, p.AESGCM.Keys)
	case p.Secretbox != nil:
		return keys(secretbox, p.Secretbox.Keys)
	case p.KMS != nil:
		return []Provider{{Name: kms, Version: p.KMS.APIVersion, Key: p.KMS.Name}}
	default:
		return []Provider{{Name: identity}}
	}
}

// providers are those of the first rule that is for gr, in the order of encryptionconfig.TransformerForResource: the
// resource itself, all of its group, all. Several rules for the very same resource are one.
func (c config) providers(gr schema.GroupResource) []Provider {
	for _, rule := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if providers, found := c.rules[rule]; found {
			return providers
		}
	}
	return nil
}
