package schema

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ParseManifest reads a file in the form of kubectl apply: YAML documents or JSON, with lists.
// others holds the objects of other kinds as "Kind/name". A repeated CRD is an error.
func ParseManifest(yamlOrJSON []byte) (crds []*CRD, others []string, err error) {
	var m manifest
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(yamlOrJSON)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return m.crds, m.others, nil
		}
		if err == nil {
			document, err = yaml.ToJSON(document)
		}
		if err == nil {
			err = m.add(document)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

type manifest struct {
	crds   []*CRD
	others []string
}

// document identifies an object of a manifest.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// add reads one JSON object; null and empty text are empty documents.
func (m *manifest) add(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return nil
	}
	var d document
	err := json.Unmarshal(data, &d)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) { // the text of err names Go types
		return fmt.Errorf("not a Kubernetes object: %s has type %s", cmp.Or(wrong.Field, "the document"), wrong.Value)
	}
	if err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(d.APIVersion)
	switch {
	case err != nil:
		return err
	case d.Kind == "":
		return fmt.Errorf("no kind")
	case strings.HasSuffix(d.Kind, "List") && d.Items != nil:
		for i, item := range d.Items {
			if err := m.add(item); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	case gv.Group != apiextensions.GroupName || d.Kind != "CustomResourceDefinition":
		m.others = append(m.others, d.Kind+"/"+d.Metadata.Name)
		return nil
	case slices.ContainsFunc(m.crds, func(c *CRD) bool { return c.v1.Name == d.Metadata.Name }):
		return fmt.Errorf("CustomResourceDefinition %q is there twice", d.Metadata.Name)
	}
	crd, err := ParseCRD(data)
	m.crds = append(m.crds, crd)
	return err
}
