package plan

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/etcdshift/etcdshift/transform"
)

// wholeRun lists flags for a whole run, which steps do not accept.
func wholeRun() []string {
	return []string{
		"allow", "bump-revision", "diff", "dry-run", "encryption-config", "max-expand", "output", "prefix", "quiet",
		"replace-report", "report", "restore-to", "show-secrets", "time",
	}
}

func (p *parser) flags(n *yaml.Node, s *transform.Spec) map[string]any {
	var names []string
	for _, f := range s.Flags {
		names = append(names, f.Name)
	}
	if n.Kind == yaml.MappingNode { // flags of the run and short names have their own messages
		n = p.withoutOthers(n, s, names)
	}
	given := map[string]any{}
	fields := p.fields(n, s.Command(), "flag", names)
	for _, f := range s.Flags {
		if value := fields[f.Name]; value != nil {
			given[f.Name] = p.value(value, f)
		}
	}
	return given
}

// withoutOthers reports flags of the whole run and short names, and returns the other flags.
func (p *parser) withoutOthers(n *yaml.Node, s *transform.Spec, names []string) *yaml.Node {
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		short := slices.IndexFunc(s.Flags, func(f transform.Flag) bool { return f.Short != "" && f.Short == key.Value })
		switch {
		case short >= 0:
			p.mistake(key, "%q is the short name of %q, which a plan takes", key.Value, s.Flags[short].Name)
		case slices.Contains(wholeRun(), key.Value) && !slices.Contains(names, key.Value):
			p.mistake(key, "%q belongs to the whole run: etcdshift run --%s", key.Value, key.Value)
		default:
			rest.Content = append(rest.Content, key, n.Content[i+1])
		}
	}
	return &rest
}

// value reads the value of a flag, nil where it is wrong.
func (p *parser) value(n *yaml.Node, f transform.Flag) any {
	switch f.Default.(type) {
	case bool:
		if value := false; n.Tag == "!!bool" && n.Decode(&value) == nil {
			return value
		}
		p.mistake(n, "%q takes true or false", f.Name)
	case []string:
		values := []string(nil)
		if n.Kind != yaml.ScalarNode {
			values = p.texts(n, f.Name)
		} else if value, ok := p.text(n, f.Name); ok { // like a flag given once
			values = []string{value}
		}
		for _, value := range values {
			p.choice(n, f, value)
		}
		return values
	case time.Duration:
		value, err := time.ParseDuration(n.Value)
		if err == nil && n.Kind == yaml.ScalarNode {
			return value
		}
		p.mistake(n, "%q takes a time such as 30s", f.Name)
	default:
		value, ok := p.text(n, f.Name)
		if ok {
			p.choice(n, f, value)
		}
		return value
	}
	return nil
}

func (p *parser) choice(n *yaml.Node, f transform.Flag, value string) {
	if f.Choices != nil && !slices.Contains(f.Choices, value) {
		p.mistake(n, "%q is %q; it takes %s", f.Name, value, strings.Join(f.Choices, " or "))
	}
}

func (p *parser) texts(n *yaml.Node, name string) (texts []string) {
	if n.Kind != yaml.SequenceNode {
		p.mistake(n, "%q takes a list, such as [a, b]", name)
		return nil
	}
	for _, item := range n.Content {
		if value, ok := p.text(item, name); ok {
			texts = append(texts, value)
		}
	}
	return texts
}

// text returns a scalar as written in the file. Numbers are valid: 1 and 1.10 are as on a command
// line.
func (p *parser) text(n *yaml.Node, name string) (value string, ok bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!bool" || n.Tag == "!!null":
		p.mistake(n, "%q takes a text; write it in quotes", name)
		return "", false
	case n.Value == "":
		p.mistake(n, "%q has an empty value", name)
		return "", false
	}
	return n.Value, true
}
