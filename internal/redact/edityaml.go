package redact

import (
	"bytes"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// insideYAML edits YAML. Names, order and comments stay, except comments with a secret.
func insideYAML(w walker, text string) (string, bool) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	var want []any
	changed := false
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var node yaml.Node
		err := d.Decode(&node)
		if err == io.EOF {
			break
		}
		if err != nil || !editNode(w, &node, &want, &changed) || encoder.Encode(&node) != nil {
			return "", false
		}
	}
	if !changed || encoder.Close() != nil {
		return "", false
	}
	edited := out.String()
	if !strings.HasSuffix(text, "\n") {
		edited = strings.TrimSuffix(edited, "\n")
	}
	got, err := parse(edited)
	return edited, err == nil && reflect.DeepEqual(got, want) && !across(text, edited)
}

// editNode edits a document, and appends the edited content to want.
func editNode(w walker, node *yaml.Node, want *[]any, changed *bool) bool {
	document := content(node)
	switch document.(type) {
	case nil:
		return true
	case map[string]any, []any:
	default:
		return false
	}
	*changed = w.walk(document, "") || *changed
	unwrap(document)
	if !setNode(node, document) {
		return false
	}
	*changed = editComments(w, node) || *changed
	*want = append(*want, document)
	return true
}

// setNode replaces the content of a node. It fails if names are repeated or replaced.
func setNode(node *yaml.Node, to any) bool {
	if node.Kind == yaml.ScalarNode || node.Kind == yaml.AliasNode {
		// an alias shares its text with other nodes
		return reflect.DeepEqual(content(node), to) || node.Kind == yaml.ScalarNode && setScalar(node, to)
	}
	fields, isMap := to.(map[string]any)
	items, isList := to.([]any)
	switch {
	case node.Kind == yaml.DocumentNode:
		return setNode(node.Content[0], to)
	case node.Kind == yaml.MappingNode && isMap:
		seen := map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			name := node.Content[i].Value
			child, is := fields[name]
			if !is || seen[name] || !setNode(node.Content[i+1], child) {
				return false
			}
			seen[name] = true
		}
		return true
	case node.Kind == yaml.SequenceNode && isList:
		for i, child := range node.Content {
			if i >= len(items) || !setNode(child, items[i]) {
				return false
			}
		}
		return true
	}
	return setScalar(node, to)
}

func setScalar(node *yaml.Node, to any) bool {
	switch v := to.(type) {
	case string:
		node.Value, node.Tag = v, "!!str"
	case float64:
		node.Value, node.Tag = strconv.FormatFloat(v, 'f', -1, 64), ""
	default:
		return false
	}
	node.Kind, node.Content, node.Style = yaml.ScalarNode, nil, node.Style&^(yaml.TaggedStyle|yaml.FlowStyle)
	return true
}

func editComments(w walker, node *yaml.Node) (changed bool) {
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		if *comment == "" {
			continue
		}
		var bare strings.Builder
		for line := range strings.Lines(*comment) {
			bare.WriteString(strings.TrimLeft(line, "# "))
		}
		if scanComments(*comment) || w.holds(*comment) || w.holds(bare.String()) {
			*comment, changed = "", true
		}
	}
	for _, child := range slices.Clone(node.Content) {
		changed = editComments(w, child) || changed
	}
	return changed
}
