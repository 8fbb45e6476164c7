package serve

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	"github.com/etcdshift/etcdshift/internal/native"
)

// convert converts a stored object to a version, in place: a custom resource according to its
// CustomResourceDefinition, a built-in kind like an API server.
func (r *resource) convert(content map[string]any, version string) error {
	if r.CRD != nil {
		if _, err := r.CRD.Begin(content); err != nil {
			return err
		}
		_, err := r.CRD.Convert(content, version)
		return err
	}
	to := r.gvk(version)
	if content["apiVersion"] == to.GroupVersion().String() || r.Resource == apiServices() {
		return nil
	}
	converted, err := native.Convert(content, to)
	if err != nil {
		return fmt.Errorf("stored as %v, requested as %s: %w", content["apiVersion"], to.GroupVersion(), err)
	}
	clear(content)
	maps.Copy(content, converted)
	return nil
}

// encodeRedacted encodes redacted values in base64, which clients expect in data of a Secret and in
// binaryData of a ConfigMap.
func encodeRedacted(content map[string]any) {
	for kind, field := range map[string]string{"Secret": "data", "ConfigMap": "binaryData"} {
		data, isMap := content[field].(map[string]any)
		if !isMap || content["kind"] != kind || content["apiVersion"] != "v1" {
			continue
		}
		for name, value := range data {
			if text, isText := value.(string); isText && strings.HasPrefix(text, "<redacted") {
				data[name] = base64.StdEncoding.EncodeToString([]byte(text))
			}
		}
	}
}
