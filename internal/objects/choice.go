package objects

import (
	"cmp"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/transform"
)

const category = "Which objects"

// ChoiceFlags are the flags of a choice.
func ChoiceFlags() []transform.Flag {
	return []transform.Flag{
		{Name: "namespace", Short: "n", Category: category, Usage: "look in namespace `NS` (default: default)"},
		{Name: "all-namespaces", Short: "A", Category: category, Default: false, Usage: "look in all namespaces"},
		{Name: "selector", Short: "l", Category: category, Usage: "objects whose labels fit `SELECTOR`"},
		{Name: "field-selector", Category: category, Usage: "objects whose fields fit `SELECTOR`, such as status.phase=Failed"},
		{Name: "where", Category: category, Usage: "objects for which the CEL expression `CEL` is true, such as 'object.spec.replicas == 0'"},
		{Name: "all", Category: category, Default: false, Usage: "all objects of TYPE"},
	}
}

// Choice is a choice of objects.
type Choice struct {
	words     []Word
	namespace string // "" for all
	selector  Selector
	where     *Condition // nil for none
}

// Choose reads a command line with [ChoiceFlags]; words are TYPE[/NAME] and NAME.... Mistakes are
// errors of [transform.Usagef].
func Choose(a *transform.Args, words []string) (*Choice, error) {
	if len(words) == 0 {
		return nil, transform.Usagef("say which objects: TYPE[/NAME] [NAME...]")
	}
	c := &Choice{namespace: cmp.Or(a.String("namespace"), "default")}
	var err error
	if c.words, err = ParseWords(words); err != nil {
		return nil, transform.Usagef("%v", err)
	}
	if slices.ContainsFunc(c.words, func(w Word) bool { return w.Type == "*" }) {
		return nil, transform.Usagef("\"*\" is no type here: name types, with commas between them, such as deploy,cm; " +
			"\"all\" is what \"kubectl get all\" shows; to delete a namespace with everything in it, name it: ns/NAME")
	}
	if err := c.check(a); err != nil {
		return nil, err
	}
	if a.Bool("all-namespaces") {
		c.namespace = ""
	}
	if c.selector, err = ParseSelector(a.String("selector"), a.String("field-selector")); err != nil {
		return nil, transform.Usagef("%v", err)
	}
	if a.IsSet("where") {
		if c.where, err = Compile(a.String("where")); err != nil {
			return nil, transform.Usagef("--where: %v", err)
		}
	}
	return c, nil
}

// check refuses what contradicts itself, and what kubectl would refuse.
func (c *Choice) check(a *transform.Args) error {
	set := func(flag string) bool { return a.IsSet(flag) && (a.String(flag) != "" || a.Bool(flag)) }
	named := slices.ContainsFunc(c.words, func(w Word) bool { return w.Names != nil })
	bare := slices.ContainsFunc(c.words, func(w Word) bool { return w.Names == nil })
	for _, flag := range []string{"namespace", "selector", "field-selector", "where"} {
		if a.IsSet(flag) && a.String(flag) == "" { // a shell variable that is not set
			return transform.Usagef("--%s is empty", flag)
		}
	}
	switch {
	case a.IsSet("namespace") && a.Bool("all-namespaces"):
		return transform.Usagef("give --namespace or --all-namespaces, not both")
	case named:
		for _, flag := range []string{"all", "selector", "field-selector"} {
			if set(flag) {
				return transform.Usagef("names choose objects by themselves; they take no --%s", flag)
			}
		}
	case a.Bool("all") && (set("selector") || set("where") || set("field-selector")):
		return transform.Usagef("--all chooses all objects; it takes no --selector, --field-selector or --where")
	case bare && !a.Bool("all") && !set("selector") && !set("field-selector") && !set("where"):
		return transform.Usagef("TYPE alone chooses nothing: give names, --selector, --field-selector, --where, or --all")
	}
	return nil
}

// types finds the types that the words name, each once, with the names of objects.
func (c *Choice) types(all *inspect.Types) (out []asked, err error) {
	for _, word := range c.words {
		found, err := all.Resolve(word.Type)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if err := c.selector.Check(t); err != nil {
				return nil, transform.Usagef("%v", err)
			}
			i := slices.IndexFunc(out, func(a asked) bool { return a.Type == t })
			if i < 0 {
				i, out = len(out), append(out, asked{Type: t, found: map[string]bool{}, elsewhere: map[string][]string{}})
			}
			out[i].names = append(out[i].names, word.Names...)
		}
	}
	return out, nil
}

// asked is a type with the names of objects, nil for all.
type asked struct {
	*inspect.Type
	names     []string
	found     map[string]bool     // names of existing objects
	elsewhere map[string][]string // other namespaces with an object of the name
}

// ChoiceCodes are the codes of a choice.
func ChoiceCodes() []*finding.Code {
	return []*finding.Code{codeNotFound, codeNothingChosen, codeWhereFailed, finding.Undecodable, finding.Encrypted, finding.UnknownKey,
		transform.CodeUnsupportedLayout}
}

var (
	codeNotFound      = finding.Lookup("not-found")
	codeNothingChosen = finding.Lookup("nothing-chosen")
	codeWhereFailed   = finding.Lookup("where-failed")
)
