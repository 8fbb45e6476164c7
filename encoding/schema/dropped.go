package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// droppedPaths lists what before has and after has not. It compares the objects
// instead of asking the algorithms, which report unknown fields but neither
// dropped nulls nor malformed metadata.
func droppedPaths(before, after map[string]any, structural *structuralschema.Structural) []string {
	root := structuralschema.Structural{}
	if structural != nil {
		root = *structural
	}
	root.XEmbeddedResource = true // the root's own metadata
	d := &dropped{}
	d.compare("", before, after, &root, false)
	slices.Sort(d.paths)
	return d.paths
}

type dropped struct{ paths []string }

// compare descends both values. inMeta says that they are part of an
// ObjectMeta, whose empty fields vanish for saying nothing.
func (d *dropped) compare(path string, before, after any, s *structuralschema.Structural, inMeta bool) {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		d.compareMaps(path, before, after, s, inMeta)
	case []any:
		after, _ := after.([]any)
		for i := range min(len(before), len(after)) {
			d.compare(clip(path+"["+strconv.Itoa(i)+"]"), before[i], after[i], itemSchema(s), inMeta)
		}
	}
}

func (d *dropped) compareMaps(path string, before, after map[string]any, s *structuralschema.Structural, inMeta bool) {
	for key, value := range before {
		kept, ok := after[key]
		if ok && !isContainer(value) {
			continue
		}
		child := below(path, key)
		meta := inMeta || (s != nil && s.XEmbeddedResource && key == "metadata")
		switch {
		case ok:
			d.compare(child, value, kept, fieldSchema(s, key), meta)
		case meta && isEmpty(value):
		case value == nil:
			d.paths = append(d.paths, child+"=null")
		default:
			d.paths = append(d.paths, child)
		}
	}
}

// below is the path of a field.
func below(path, key string) string {
	if path == "" {
		return clip(key)
	}
	return clip(path + "." + clip(key))
}

// clip cuts a path that is longer than anyone reads: a name of a megabyte would be in
// the path of each field below.
func clip(path string) string {
	const most = 512
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most-3], "") + "..."
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	default:
		return false
	}
}

func fieldSchema(s *structuralschema.Structural, key string) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[key]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

func itemSchema(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	return s.Items
}

func isEmpty(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return v.Len() == 0
	default:
		return v.IsZero()
	}
}

// cloneJSON copies maps and lists; scalars are shared. Unlike apimachinery's
// DeepCopyJSON it does not panic on values of other types.
func cloneJSON(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, v := range value {
			out[k] = cloneJSON(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = cloneJSON(v)
		}
		return out
	default:
		return value
	}
}
