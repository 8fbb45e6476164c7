package objects

import (
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// Candidate is an object of the types and namespaces of a choice.
type Candidate struct {
	*inspect.Object
	Chosen bool

	skip   bool             // of another type or namespace
	cannot *finding.Finding // why it is unknown whether it is chosen
}

// Candidates yields all objects of the types and namespaces, chosen or not. It reports names that
// do not exist, and objects that a selector or --where cannot be asked about, which are not
// yielded. Without decode it decodes what the choice cannot do without: an object without Content
// and Err was not decoded.
func (c *Choice) Candidates(ctx context.Context, v *transform.View, decode bool) iter.Seq2[Candidate, error] {
	return stream.Of(func(yield func(Candidate) error) error {
		prefixes, err := v.KubernetesPrefixes(ctx)
		if err != nil {
			return err
		}
		all, err := v.Types(ctx)
		if err != nil {
			return err
		}
		types, err := c.types(all)
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
func (c *Choice) ofType(ctx context.Context, v *transform.View, t asked, prefix string, decode bool) iter.Seq2[Candidate, error] {
	in := inspect.Selection{}
	if t.Namespaced {
		in.Namespace = c.namespace
	}
	of := func(e *transform.Entry) Candidate {
		one := Candidate{Object: inspect.Undecoded(t.Type, e)}
		key, err := e.ParseKey()
		one.skip = err != nil || key.Resource != t.Resource || !in.Holds(key)
		one.Chosen = !one.skip && (t.names == nil || slices.Contains(t.names, key.Name))
		return one
	}
	live := v.Live(ctx, keys.Kubernetes{Prefix: prefix}.Dir(t.Resource))
	return stream.Of(func(yield func(Candidate) error) error {
		return stream.Each(transform.Ahead(v, live, of, func(one *Candidate) { c.ask(ctx, one, decode) }), func(one *Candidate) error {
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

// ask decides whether an object is chosen.
func (c *Choice) ask(ctx context.Context, one *Candidate, decode bool) {
	if !one.Chosen {
		return
	}
	byFields := c.where != nil || !c.selector.Fields.Empty()
	if decode || byFields {
		one.Object = inspect.NewObject(one.Type, one.Entry)
	}
	if byFields {
		c.askFields(ctx, one)
	} else if !c.selector.Labels.Empty() {
		meta, err := encoding.ReadMeta(one.Value)
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

// askFields decides it by the content.
func (c *Choice) askFields(ctx context.Context, one *Candidate) {
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

// reportMissing reports the names that no object has.
func (c *Choice) reportMissing(v *transform.View, t asked, prefixes []string) {
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
