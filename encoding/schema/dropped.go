package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// droppedPaths lists the fields of before missing in after, for an object of shape s. droppedPaths
// compares objects: the algorithms do not report dropped nulls and malformed metadata.
func droppedPaths(before, after map[string]any, s *shape) []string {
	root := shape{embedded: true} // the root has metadata, like an embedded resource
	if s != nil {
		root = *s
		root.embedded = true
	}
	var d dropped
	d.compare("", before, after, &root, false)
	slices.Sort(d)
	return d
}

type dropped []string

// compare compares both values recursively. In metadata, lost empty fields are not reported.
func (d *dropped) compare(path string, before, after any, s *shape, inMeta bool) {
	switch before := before.(type) {
	case map[string]any:
		after, _ := after.(map[string]any)
		for key, value := range before {
			d.compareField(path, key, value, after, s, inMeta)
		}
	case []any:
		after, _ := after.([]any)
		for i := range min(len(before), len(after)) {
			d.compare(clip(path+"["+strconv.Itoa(i)+"]"), before[i], after[i], s.item(), inMeta)
		}
	}
}

func (d *dropped) compareField(path, key string, value any, after map[string]any, s *shape, inMeta bool) {
	kept, ok := after[key]
	if ok && !isContainer(value) {
		return
	}
	if path != "" {
		path = clip(path + "." + clip(key))
	} else {
		path = clip(key)
	}
	inMeta = inMeta || (s != nil && s.embedded && key == "metadata")
	switch {
	case ok:
		below, _ := s.field(key)
		d.compare(path, value, kept, below, inMeta)
	case inMeta && isEmpty(value):
	case value == nil:
		*d = append(*d, path+"=null")
	default:
		*d = append(*d, path)
	}
}

// clip cuts long paths: a name of one megabyte would be in the path of each field below.
func clip(path string) string {
	const most = 512
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most-3], "") + "..."
}

func isContainer(value any) bool {
	kind := reflect.ValueOf(value).Kind()
	return kind == reflect.Map || kind == reflect.Slice
}

func isEmpty(value any) bool {
	if isContainer(value) {
		return reflect.ValueOf(value).Len() == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// cloneJSON copies maps and lists. Unlike apimachinery's DeepCopyJSON, cloneJSON does not panic on
// values of other types, but shares them.
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
