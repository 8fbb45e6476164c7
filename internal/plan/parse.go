package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// mostSteps is the maximum number of steps of a plan.
const mostSteps = 1000

// step is a step of a plan.
type step struct {
	spec      *transform.Spec
	at        int // line in the plan file
	args      []string
	flags     map[string]any // string, bool, time.Duration or []string, by name
	allow     []string
	transform transform.Transform
}

// parser parses a plan and collects its mistakes.
type parser struct {
	path  string
	specs []transform.Spec
	wrong []mistake
}

// mistake is an error in a plan.
type mistake struct {
	line   int // 0 if the text is not valid YAML
	text   string
	failed bool // a file named in the plan is unreadable or wrong
}

func parse(path string, text []byte, specs []transform.Spec) ([]*step, *parser) {
	p := &parser{path: path, specs: specs}
	if root := p.root(text); root != nil {
		return p.plan(root), p
	}
	return nil, p
}

// err returns all mistakes, one per line: an error of [transform.Usagef] unless all concern files.
func (p *parser) err() error {
	if p.wrong == nil {
		return nil
	}
	slices.SortStableFunc(p.wrong, func(a, b mistake) int { return a.line - b.line })
	var lines []string
	for _, m := range p.wrong {
		lines = append(lines, m.text)
	}
	text := strings.Join(lines, "\n")
	if slices.ContainsFunc(p.wrong, func(m mistake) bool { return !m.failed }) {
		return transform.Usagef("%s", text)
	}
	return errors.New(text)
}

func (p *parser) mistake(n *yaml.Node, format string, args ...any) {
	p.add(n.Line, false, fmt.Sprintf(format, args...))
}

// add records the mistakes at a line; each line of text is one mistake.
func (p *parser) add(line int, failed bool, text string) {
	for one := range strings.SplitSeq(text, "\n") {
		p.wrong = append(p.wrong, mistake{line, fmt.Sprintf("%s:%d: %s", p.path, line, one), failed})
	}
}

func (p *parser) root(text []byte) *yaml.Node {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	if bytes.IndexByte(text, 0) >= 0 {
		p.unreadable("it is no text, and no plan: the order is PLAN IN OUT")
		return nil
	}
	switch err := d.Decode(&document); {
	case errors.Is(err, io.EOF):
		p.unreadable("the plan is empty")
		return nil
	case err != nil:
		p.unreadable(err.Error())
		return nil
	}
	if err := d.Decode(&second); err == nil {
		p.mistake(&second, "a plan is one document; a second one begins here")
	} else if !errors.Is(err, io.EOF) {
		p.unreadable(err.Error())
	}
	return document.Content[0]
}

func (p *parser) unreadable(why string) {
	p.wrong = append(p.wrong, mistake{text: p.path + ": " + why})
}

func (p *parser) plan(root *yaml.Node) (steps []*step) {
	fields := p.fields(root, "a plan", "field", []string{"apiVersion", "kind", "steps"})
	if fields == nil {
		return nil
	}
	for _, is := range [][2]string{{"apiVersion", transform.APIVersion}, {"kind", "Plan"}} {
		if n := fields[is[0]]; n == nil {
			p.mistake(root, "%s is missing; it takes %s", is[0], is[1])
		} else if n.Value != is[1] || n.Kind != yaml.ScalarNode {
			p.mistake(n, "%s is %q; it takes %s", is[0], n.Value, is[1])
		}
	}
	list := fields["steps"]
	switch {
	case list == nil:
		p.mistake(root, "steps are missing")
		return nil
	case list.Kind != yaml.SequenceNode || len(list.Content) == 0:
		p.mistake(list, "steps take a list, such as [{command: delete, args: [events], flags: {all: true}}]")
		return nil
	case len(list.Content) > mostSteps:
		p.mistake(list, "there are %d steps; a plan has at most %d", len(list.Content), mostSteps)
		return nil
	}
	for _, n := range list.Content {
		before := len(p.wrong)
		if s := p.step(n); len(p.wrong) == before {
			steps = append(steps, s)
		}
	}
	return steps
}

func (p *parser) step(n *yaml.Node) *step {
	fields := p.fields(n, "a step", "field", []string{"command", "args", "flags", "allow"})
	if fields == nil {
		return nil
	}
	if fields["command"] == nil {
		p.mistake(n, "command is missing")
		return nil
	}
	s := &step{at: n.Line, spec: p.spec(fields["command"])}
	if s.spec == nil {
		return nil
	}
	if args := fields["args"]; args != nil {
		s.args = p.texts(args, "args")
	}
	if least, most := transform.CountArguments(strings.Fields(s.spec.Rest)); len(s.args) < least || len(s.args) > most {
		p.mistake(n, "%s takes %s; there are %d", s.spec.Command(), argsOf(s.spec), len(s.args))
	}
	if flags := fields["flags"]; flags != nil {
		s.flags = p.flags(flags, s.spec)
	}
	if allow := fields["allow"]; allow != nil {
		s.allow = p.codes(allow, s.spec)
	}
	return s
}

// fields returns the values of a mapping by key, or nil for other nodes; noun names the keys in
// messages.
func (p *parser) fields(n *yaml.Node, what, noun string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		p.mistake(n, "%s takes %ss: %s", what, noun, strings.Join(known, ", "))
		return nil
	}
	fields := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			p.mistake(key, "%s has no %s %q%s", what, noun, key.Value, meant(key.Value, known))
		case fields[key.Value] != nil:
			p.mistake(key, "%q is given twice", key.Value)
		case value.Kind == yaml.AliasNode || value.Tag == "!!null":
			p.mistake(value, "%q has no value", key.Value)
		default:
			fields[key.Value] = value
		}
	}
	return fields
}

// spec returns the command named by a step, or nil if a plan cannot use the command.
func (p *parser) spec(n *yaml.Node) *transform.Spec {
	command := strings.Join(strings.Fields(n.Value), " ")
	var known []string
	for i := range p.specs {
		why := Unfit(&p.specs[i])
		switch is := p.specs[i].Command() == command && n.Kind == yaml.ScalarNode; {
		case is && why == "":
			return &p.specs[i]
		case is:
			p.mistake(n, "%q is no step of a plan: %s", command, why)
			return nil
		case why == "":
			known = append(known, p.specs[i].Command())
		}
	}
	p.mistake(n, "unknown command %q%s", command, cmp.Or(meant(command, known),
		"; a step takes one of "+strings.Join(known, ", ")))
	return nil
}

func (p *parser) codes(n *yaml.Node, s *transform.Spec) (codes []string) {
	known := finding.Allowable(s.AllCodes())
	for i, code := range p.texts(n, "allow") {
		if !slices.Contains(known, code) {
			p.mistake(n.Content[i], "%s has no code %q to allow%s", s.Command(), code, meant(code, known))
		}
		codes = append(codes, code)
	}
	return codes
}

func argsOf(s *transform.Spec) string {
	if s.Rest == "" {
		return "no args"
	}
	return "args " + s.Rest
}

func meant(word string, known []string) string {
	if near := phrase.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
