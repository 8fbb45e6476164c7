package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// ParseManifest reads a file as kubectl apply takes it: YAML documents or JSON,
// lists among them. It returns the CustomResourceDefinitions in their order and
// names every other object as "Kind/name". A CRD that is there twice is an
// error.
func ParseManifest(yamlOrJSON []byte) (crds []*CRD, others []string, err error) {
	m := manifest{seen: map[string]bool{}}
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
	seen   map[string]bool
}

// document is what tells one object of a manifest from another.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// add takes one JSON object; null and nothing are documents without content.
func (m *manifest) add(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) == 0 || bytes.Equal(data, []byte("null")) {
		return nil
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return err
	}
	gv, err := schema.ParseGroupVersion(d.APIVersion)
	switch {
	case err != nil:
		return err
	case d.Kind == "":
		return fmt.Errorf("no kind")
	case strings.HasSuffix(d.Kind, "List") && d.Items != nil:
		return m.addItems(d.Items)
	case gv.Group != apiextensions.GroupName || d.Kind != "CustomResourceDefinition":
		m.others = append(m.others, d.Kind+"/"+d.Metadata.Name)
		return nil
	case m.seen[d.Metadata.Name]:
		return fmt.Errorf("CustomResourceDefinition %q is there twice", d.Metadata.Name)
	}
	crd, err := ParseCRD(data)
	if err != nil {
		return err
	}
	m.seen[d.Metadata.Name] = true
	m.crds = append(m.crds, crd)
	return nil
}

func (m *manifest) addItems(items []json.RawMessage) error {
	for i, item := range items {
		if err := m.add(item); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}
