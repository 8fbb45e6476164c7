package objects

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

const category = "Which objects"

// ChoiceFlags returns the flags of a choice.
func ChoiceFlags() []transform.Flag {
	return []transform.Flag{
		{Name: "namespace", Short: "n", Category: category, Usage: "look in namespace `NS` (default: default)"},
		{Name: "all-namespaces", Short: "A", Category: category, Default: false, Usage: "look in all namespaces"},
		{Name: "selector", Short: "l", Category: category, Usage: "select objects with labels that match `SELECTOR`"},
		{Name: "field-selector", Category: category,
			Usage: "select objects with fields that match `SELECTOR`, such as status.phase=Failed"},
		{Name: "where", Category: category, Usage: "select objects for which the expression `CEL` is true, such " +
			"as 'object.spec.replicas == 0'"},
		{Name: "all", Category: category, Default: false, Usage: "select all objects of TYPE"},
	}
}

// Choice is a choice of objects.
type Choice struct {
	words     []Word
	namespace string // "" for all
	selector  Selector
	where     *Condition // nil for none
}

// Choose parses a command line with [ChoiceFlags]; words are TYPE[/NAME] and NAME.... Mistakes are
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
		return nil, transform.Usagef("\"*\" is no type here: name types, with commas between them, such as " +
			"deploy,cm; " +
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

// check refuses contradictory flags, and those that kubectl would refuse.
func (c *Choice) check(a *transform.Args) error {
	set := func(flag string) bool { return a.IsSet(flag) && (a.String(flag) != "" || a.Bool(flag)) }
	named := slices.ContainsFunc(c.words, func(w Word) bool { return w.Names != nil })
	bare := slices.ContainsFunc(c.words, func(w Word) bool { return w.Names == nil })
	for _, flag := range []string{"namespace", "selector", "field-selector", "where"} {
		if a.IsSet(flag) && a.String(flag) == "" { // an unset shell variable
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
		return transform.Usagef("TYPE alone chooses nothing: give names, --selector, --field-selector, " +
			"--where, or --all")
	}
	return nil
}

// namedTypes resolves the types of words, without duplicates, with the names of objects.
func namedTypes(words []Word, selector Selector, all *inspect.Types) (out []namedType, err error) {
	for _, word := range words {
		found, err := all.Resolve(word.Type)
		if err != nil {
			return nil, err
		}
		for _, t := range found {
			if err := selector.Check(t); err != nil {
				return nil, transform.Usagef("%v", err)
			}
			i := slices.IndexFunc(out, func(a namedType) bool { return a.Type == t })
			if i < 0 {
				i, out = len(out), append(out, namedType{Type: t, found: map[string]bool{},
					elsewhere: map[string][]string{}})
			}
			out[i].names = append(out[i].names, word.Names...)
		}
	}
	return out, nil
}

// namedType is a type with the names of objects, nil for all.
type namedType struct {
	*inspect.Type
	names     []string
	found     map[string]bool     // names of existing objects
	elsewhere map[string][]string // other namespaces with an object of the name
}

// ChoiceCodes returns the codes of a choice.
func ChoiceCodes() []*finding.Code {
	return []*finding.Code{codeNotFound, codeNothingChosen, codeWhereFailed, finding.Undecodable, finding.Encrypted,
		finding.UnknownKey, transform.CodeUnsupportedLayout}
}

var (
	codeNotFound      = finding.Lookup("not-found")
	codeNothingChosen = finding.Lookup("nothing-chosen")
	codeWhereFailed   = finding.Lookup("where-failed")
)

// Candidate is an object of the types and namespaces of a choice.
type Candidate struct {
	*inspect.Object
	Chosen bool

	skip   bool             // of another type or namespace
	cannot *finding.Finding // why the choice is unknown
}

// Candidates yields all objects of the types and namespaces, chosen or not. It reports missing
// names, and objects for which a selector or --where has no result; these are not yielded. Without
// decode, only objects needed for the choice are decoded: an undecoded object has no Content and no
// Err. all are the types of v.
func (c *Choice) Candidates(
	ctx context.Context, v *transform.View, all *inspect.Types, decode bool,
) iter.Seq2[Candidate, error] {
	return stream.Of(func(yield func(Candidate) error) error {
		prefixes, err := v.KubernetesPrefixes(ctx)
		if err != nil {
			return err
		}
		types, err := namedTypes(c.words, c.selector, all)
		if err != nil {
			return err
		}
		before, chosen := len(v.Report().Problems), false
		for _, t := range types {
			for _, prefix := range prefixes {
				err := stream.Each(c.ofType(ctx, v, t, prefix, decode), func(one Candidate) error {
					chosen = chosen || one.Chosen
					return yield(one)
				})
				if err != nil {
					return err
				}
			}
			c.reportMissing(v, t, prefixes)
		}
		if !chosen && len(v.Report().Problems) == before {
			v.Raise("", codeNothingChosen.Because("no object of the types and namespaces fits"))
		}
		return nil
	})
}

// ofType yields the objects of a type below a storage prefix.
func (c *Choice) ofType(
	ctx context.Context, v *transform.View, t namedType, prefix string, decode bool,
) iter.Seq2[Candidate, error] {
	in := inspect.Selection{}
	if t.Namespaced {
		in.Namespace = c.namespace
	}
	look := func(e *transform.Entry) (*Candidate, bool) {
		one := &Candidate{Object: inspect.Undecoded(t.Type, e)}
		key, err := e.ParseKey()
		one.skip = err != nil || key.Resource != t.Resource || !in.Holds(key)
		one.Chosen = !one.skip && (t.names == nil || slices.Contains(t.names, key.Name))
		c.decide(ctx, one, decode)
		return one, true
	}
	return stream.Of(func(yield func(Candidate) error) error {
		return stream.Each(transform.Visit(ctx, v, keys.Kubernetes{Prefix: prefix}.Dir(t.Resource), look),
			func(one *Candidate) error {
				if _, err := one.ParseKey(); err != nil && t.names == nil && one.Layout() != nil {
					v.Raise(string(one.Key), finding.UnknownKey.Because("%v", err))
				}
				if one.skip {
					if name := one.Parsed.Name; one.Parsed.Resource == t.Resource && slices.Contains(t.names, name) {
						t.elsewhere[name] = append(t.elsewhere[name], one.Parsed.Namespace)
					}
					return nil
				}
				t.found[one.Parsed.Name] = true
				if one.cannot != nil {
					v.Raise(string(one.Key), one.cannot)
					return nil
				}
				return yield(*one)
			})
	})
}

// decide sets whether an object is chosen.
func (c *Choice) decide(ctx context.Context, one *Candidate, decode bool) {
	if !one.Chosen {
		return
	}
	byFields := c.where != nil || !c.selector.Fields.Empty()
	if decode || byFields {
		one.Object = inspect.NewObject(one.Type, one.Entry)
	}
	if byFields {
		c.decideByContent(ctx, one)
	} else if !decode || !c.selector.Labels.Empty() {
		meta, err := one.Meta() // a deletion asks for it again
		if c.selector.Labels.Empty() {
			return
		}
		if one.Undecryptable != nil {
			err = one.Undecryptable
		}
		if err != nil {
			one.cannot = transform.Unreadable(err)
			return
		}
		one.Chosen = c.selector.Labels.Matches(labels.Set(meta.Labels))
	}
}

// decideByContent decides by the content.
func (c *Choice) decideByContent(ctx context.Context, one *Candidate) {
	if one.Err != nil {
		one.cannot = transform.Unreadable(one.Err)
		return
	}
	if one.Partial {
		one.cannot = metadataAlone(one.Object)
		return
	}
	if one.Chosen = c.selector.Fits(one.Content); one.Chosen && c.where != nil {
		one.Chosen, one.cannot = c.where.Chooses(ctx, one.Object)
	}
}

// reportMissing reports the names without an object.
func (c *Choice) reportMissing(v *transform.View, t namedType, prefixes []string) {
	for _, name := range t.names {
		if t.found[name] {
			continue
		}
		t.found[name] = true // once
		where, key := "", keys.Key{Resource: t.Resource, Name: name}
		if t.Namespaced {
			where, key.Namespace = " in any namespace", c.namespace
			if c.namespace != "" {
				where = " in namespace " + c.namespace
			}
		}
		at := ""
		if len(prefixes) == 1 && (!t.Namespaced || c.namespace != "") {
			at = string(keys.Kubernetes{Prefix: prefixes[0]}.Format(key))
		}
		v.Raise(at, codeNotFound.Because("%s %q not found%s%s", t.Name(), name, where, Namesakes(t.elsewhere[name])))
	}
}
