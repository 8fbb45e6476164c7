package render

import (
	"slices"
	"strconv"
	"strings"
)

// Name returns a name for a terminal: quoted if it is not printable, or looks quoted.
func Name(s string) string {
	if strings.HasPrefix(s, `"`) {
		return strconv.Quote(s)
	}
	return Printable(s)
}

// Texts are the strings of an object that keep their line ends.
type Texts int

// The texts of formats.
const (
	NoTexts   Texts = iota // for formats with an object on a line; the cells of a Table stay, kubectl cuts them
	Described              // for "kubectl describe": those that it indents, and data of ConfigMaps and descriptions of CRDs
	AllTexts               // for templates: all but names
)

// OneLine changes v, decoded from JSON, and returns it: no name in it, and no other string but its
// texts, forges a line of output. Names are those of fields, all strings of metadata but
// annotations, and the strings of fields name, namespace and uid.
func OneLine(v any, texts Texts) any {
	object, _ := v.(map[string]any)
	l := oneLine{texts: texts}
	l.kind, _ = object["kind"].(string)
	l.version, _ = object["apiVersion"].(string)
	if l.isTable() {
		nameCells(object)
	}
	return l.value(v, place{})
}

type oneLine struct {
	texts         Texts
	kind, version string // of the object
}

// place is where a value is in an object.
type place struct {
	keys     [4]string // the last ones, the last one first
	metadata bool
}

func (p place) below(key string) place {
	return place{[4]string{key, p.keys[0], p.keys[1], p.keys[2]}, p.metadata || key == "metadata"}
}

func (l oneLine) value(v any, at place) any {
	switch v := v.(type) {
	case string:
		return l.text(v, at)
	case []any:
		for i := range v {
			v[i] = l.value(v[i], at)
		}
	case map[string]any:
		named := v
		for key := range v {
			if Name(key) != key {
				named = make(map[string]any, len(v))
				break
			}
		}
		for key, below := range v {
			named[Name(key)] = l.value(below, at.below(key))
		}
		return named
	}
	return v
}

func (l oneLine) text(s string, at place) string {
	annotation := at.metadata && at.keys[1] == "annotations" && at.keys[2] == "metadata"
	switch {
	case !annotation && (at.metadata || slices.Contains([]string{"name", "namespace", "uid"}, at.keys[0])):
		return Name(s)
	case l.texts == AllTexts:
		return s
	case l.texts == Described && l.described(at, annotation),
		l.texts == NoTexts && l.isTable() && at.keys == [4]string{"cells", "rows"}:
		return withoutFeeds(s)
	}
	if trimmed := strings.TrimRight(s, "\n"); trimmed != "" {
		s = trimmed
	}
	return Printable(s)
}

// described reports whether "kubectl describe" prints a string as a text. Of a kind that it does
// not know, annotations alone.
func (l oneLine) described(at place, annotation bool) bool {
	switch k := at.keys; {
	case annotation && k[3] == "":
		inline := []string{"CertificateSigningRequest", "PriorityClass", "StorageClass", "VolumeAttributesClass"}
		return !slices.Contains(inline, l.kind)
	case l.kind == "CustomResourceDefinition":
		return k[0] == "description"
	case strings.Contains(l.version, "."):
		return false
	case l.kind == "ConfigMap":
		return k[1] == "data" && k[2] == ""
	case !hasContainers(l.kind):
		return false
	case annotation:
		return k[3] == "template"
	case k[0] == "value":
		return k[1] == "env" && isContainers(k[2])
	default:
		return (k[0] == "args" || k[0] == "command") && isContainers(k[1])
	}
}

func hasContainers(kind string) bool {
	return slices.Contains([]string{
		"Pod", "ReplicationController", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob",
	}, kind)
}

func isContainers(key string) bool {
	return slices.Contains([]string{"containers", "initContainers", "ephemeralContainers"}, key)
}

func (l oneLine) isTable() bool {
	return l.kind == "Table" && strings.HasPrefix(l.version, "meta.k8s.io/")
}

// nameCells makes names of the cells of a Table whose columns have the format "name".
func nameCells(table map[string]any) {
	columns, _ := table["columnDefinitions"].([]any)
	rows, _ := table["rows"].([]any)
	for _, row := range rows {
		row, _ := row.(map[string]any)
		cells, _ := row["cells"].([]any)
		for i := range min(len(cells), len(columns)) {
			column, _ := columns[i].(map[string]any)
			if text, isText := cells[i].(string); isText && column["format"] == "name" {
				cells[i] = Name(text)
			}
		}
	}
}

// withoutFeeds escapes what ends a line, or a cell, in a table of Go.
func withoutFeeds(s string) string {
	return strings.NewReplacer("\f", `\x0c`, "\v", `\x0b`).Replace(s)
}
