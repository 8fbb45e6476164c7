package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/transform"
)

// The types of a patch, as kubectl spells them.
const (
	typeJSON      = "json"
	typeMerge     = "merge"
	typeStrategic = "strategic"
)

// The bounds of an API server for JSON patches: operations, and bytes that copies add.
const (
	maxOperations = 10000
	maxCopied     = 3 << 20
)

// body is a parsed patch.
type body struct {
	kind       string
	text       []byte          // JSON
	operations jsonpatch.Patch // for typeJSON
	merge      map[string]any  // for the other types
}

func readBody(kind string, text []byte) (*body, error) {
	b := &body{kind: kind}
	var err error
	if b.text, err = yaml.YAMLToJSONStrict(text); err != nil {
		return nil, transform.Usagef("the patch is neither YAML nor JSON: %v", err)
	}
	if kind != typeJSON {
		if err := utiljson.Unmarshal(b.text, &b.merge); err != nil || b.merge == nil {
			return nil, transform.Usagef("a patch of --type %s is an object, such as {\"spec\": {\"replicas\": 2}}; "+
				"a list of operations takes --type json", kind)
		}
		return b, nil
	}
	var shape []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		From  string `json:"from"`
		Value any    `json:"value"`
	}
	strict, err := kjson.UnmarshalStrict(b.text, &shape)
	if err != nil {
		return nil, transform.Usagef("a patch of --type json is a list of operations, such as " +
			`[{"op": "remove", "path": "/spec/replicas"}]; an object takes --type merge or strategic`)
	}
	if err := errors.Join(strict...); err != nil {
		return nil, transform.Usagef("the patch: %v", err)
	}
	if len(shape) > maxOperations {
		return nil, transform.Usagef("the patch has %d operations; an API server takes %d", len(shape), maxOperations)
	}
	if b.operations, err = jsonpatch.DecodePatch(b.text); err != nil {
		return nil, transform.Usagef("the patch: %v", err)
	}
	return b, nil
}

// apply returns the patched content and leaves content unchanged. like has the Go type of the
// object, for typeStrategic.
func (b *body) apply(content map[string]any, like any) (map[string]any, error) {
	if b.kind == typeStrategic {
		patched, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(content),
			runtime.DeepCopyJSON(b.merge), like)
		if err != nil {
			return nil, withoutValues(err)
		}
		return normal(patched)
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if b.kind == typeMerge {
		text, err = jsonpatch.MergePatch(text, b.text)
	} else {
		atomic.CompareAndSwapInt64(&jsonpatch.AccumulatedCopySizeLimit, 0, maxCopied) // as an API server does
		text, err = b.operations.Apply(text)
	}
	if err != nil {
		return nil, err // the error names only paths
	}
	return read(text)
}

// normal returns content with the Go types of decoded JSON; a strategic patch produces other types.
func normal(content map[string]any) (map[string]any, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return read(text)
}

func read(text []byte) (content map[string]any, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return nil, errors.New("the result is not an object")
	}
	err = utiljson.Unmarshal(text, &content)
	return content, err
}

// withoutValues returns the error of a strategic patch without the parts of an object in its text.
func withoutValues(err error) error {
	text := err.Error()
	if _, key, found := strings.Cut(text, "does not contain declared merge key: "); found {
		return fmt.Errorf("an element of a list has no %q, the key by which a strategic patch merges it", key)
	}
	if at := strings.IndexAny(text, "[\n"); at >= 0 {
		text = strings.TrimRight(strings.TrimSuffix(text[:at], "map"), ": ")
	}
	return errors.New(text)
}

// like returns a value of the object's Go type; struct tags tell a strategic patch how to merge
// lists. For a kind unknown to this build the type has only metadata.
func like(o *inspect.Object) any {
	apiVersion, _ := o.Content["apiVersion"].(string)
	kind, _ := o.Content["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	if known, err := scheme.Scheme.New(gvk); err == nil {
		return known
	}
	switch gvk.GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return &apiextensionsv1.CustomResourceDefinition{}
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return &native.APIService{}
	}
	return &metav1.PartialObjectMetadata{}
}
