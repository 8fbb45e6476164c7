package objects

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// PartFlags returns the flags of a part.
func PartFlags() []transform.Flag {
	return []transform.Flag{
		{Name: "namespace", Short: "n", Category: category, Default: []string{}, Usage: "select the Namespace `NS` " +
			"with all its objects; with TYPE or -l only those objects in NS; may be repeated"},
		{Name: "all-namespaces", Short: "A", Category: category, Default: false,
			Usage: "with TYPE or -l: look in all namespaces (default: in the namespace default)"},
		{Name: "selector", Short: "l", Category: category, Usage: "select objects with labels that match `SELECTOR`, " +
			"of TYPE or of all types"},
	}
}

// Part is the part of a snapshot that a command line selects: namespaces with all their objects,
// objects by type, name and labels, or whole storage prefixes.
type Part struct {
	words      []Word
	namespaces []string // none for all
	labels     labels.Selector
}

// ChoosePart parses a command line with [PartFlags] and --prefix; words are TYPE[/NAME] and
// NAME.... Mistakes are errors of [transform.Usagef].
func ChoosePart(a *transform.Args, words []string) (*Part, error) {
	p := &Part{namespaces: a.StringSlice("namespace")}
	every := a.Bool("all-namespaces")
	var err error
	switch {
	case slices.Contains(p.namespaces, ""): // an unset shell variable
		return nil, transform.Usagef("--namespace is empty")
	case a.IsSet("selector") && strings.TrimSpace(a.String("selector")) == "":
		return nil, transform.Usagef("--selector is empty")
	case every && len(p.namespaces) > 0:
		return nil, transform.Usagef("give --namespace or --all-namespaces, not both")
	case len(words) > 0:
		if p.words, err = ParseWords(words); err != nil {
			return nil, transform.Usagef("%v", err)
		}
		if !every && len(p.namespaces) == 0 {
			p.namespaces = []string{"default"}
		}
	case !a.IsSet("selector") && len(p.namespaces) == 0 && len(a.Prefixes) == 0 || every && !a.IsSet("selector"):
		return nil, transform.Usagef("say which part: -n NS, TYPE[/NAME], -l SELECTOR, or --prefix P for everything " +
			"below a storage prefix")
	case a.IsSet("selector") && !every && len(p.namespaces) == 0:
		return nil, transform.Usagef("-l without TYPE takes -n NS or -A")
	}
	if slices.ContainsFunc(p.words, func(w Word) bool { return w.Names != nil }) && a.IsSet("selector") {
		return nil, transform.Usagef("names choose objects by themselves; they take no --selector")
	}
	if p.labels, err = labels.Parse(a.String("selector")); err != nil {
		return nil, transform.Usagef("--selector: %v", err)
	}
	return p, nil
}

// Whole reports whether the part is everything below storage prefixes.
func (p *Part) Whole() bool { return p.words == nil && len(p.namespaces) == 0 && p.labels.Empty() }

// Namespaces returns the namespaces of the part, also the default; none for all.
func (p *Part) Namespaces() []string { return p.namespaces }

// PartCodes returns the codes of a part.
func PartCodes() []*finding.Code {
	return []*finding.Code{codeNotFound, codeNothingSelected, finding.Undecodable, finding.Encrypted,
		finding.UnknownKey, transform.CodeUnsupportedLayout}
}

var codeNothingSelected = finding.Lookup("nothing-chosen").As(finding.Error, "")

// Selected has the records of a part that a snapshot has.
type Selected struct {
	part     *Part
	layouts  keys.Layouts
	prefixes map[string]bool // of the storages with the part
	types    []namedType
	listed   map[string]bool // keys selected by their labels, and added keys
}

// Has reports whether the record of a key is selected. Concurrent calls are allowed.
func (s *Selected) Has(key []byte) bool {
	if len(s.listed) > 0 && s.listed[string(key)] {
		return true
	}
	return s.part.labels.Empty() && s.fits(key)
}

// Add adds the record of a key.
func (s *Selected) Add(key []byte) { s.listed[string(key)] = true }

// fits reports whether a key is selected, or may be by its labels.
func (s *Selected) fits(key []byte) bool {
	storage, found := s.layouts.Of(key)
	if !found || !s.prefixes[storage.Prefix] {
		return false
	}
	if s.part.Whole() {
		return true
	}
	parsed, err := storage.Layout.Parse(key)
	return err == nil && s.fitsParsed(parsed)
}

func (s *Selected) fitsParsed(key keys.Key) bool {
	spaces := s.part.namespaces
	inside := len(spaces) == 0 || slices.Contains(spaces, key.Namespace)
	if s.part.words == nil {
		return inside || s.part.labels.Empty() && key.Resource == namespaceType() && slices.Contains(spaces, key.Name)
	}
	i := slices.IndexFunc(s.types, func(t namedType) bool { return t.Resource == key.Resource })
	if i < 0 {
		return false
	}
	t := s.types[i]
	return (inside || key.Namespace == "") && (t.names == nil || slices.Contains(t.names, key.Name))
}

func namespaceType() schema.GroupResource { return schema.GroupResource{Resource: "namespaces"} }

// Find finds the part in a snapshot with the given types. It reports names and namespaces without
// an object, and objects for which the selector has no result; these are not selected.
func (p *Part) Find(ctx context.Context, v *transform.View, all *inspect.Types) (*Selected, error) {
	s := &Selected{part: p, prefixes: map[string]bool{}, listed: map[string]bool{}}
	storages, err := v.Storages(ctx)
	if err != nil {
		return nil, err
	}
	for _, storage := range storages {
		if storage.Flavour.KCP() && !p.Whole() {
			v.Raise(storage.Prefix+"/", transform.CodeUnsupportedLayout.Because("it is laid out as a %s, where each "+
				"logical cluster has namespaces of its own; the kcp commands select logical clusters", storage.Flavour))
			continue
		}
		s.prefixes[storage.Prefix] = true
	}
	if s.layouts, err = v.Layouts(ctx); err != nil {
		return nil, err
	}
	if s.types, err = namedTypes(p.words, Everything(), all); err != nil {
		return nil, err
	}
	return s, s.read(ctx, v)
}

// seen is a record that is selected, or may have to be.
type seen struct {
	at       []byte
	key      keys.Key
	selected bool
	unparsed error            // of a key with the name of a selected namespace
	cannot   *finding.Finding // why the labels are unknown
}

// read lists the keys selected by labels, and reports what is not found.
func (s *Selected) read(ctx context.Context, v *transform.View) error {
	found, spaces := 0, map[string]bool{}
	err := stream.Each(transform.Visit(ctx, v, nil, s.look), func(one *seen) error {
		switch {
		case one.unparsed != nil:
			v.Raise(string(one.at), finding.UnknownKey.Because("it contains the name of a selected namespace, and is "+
				"not selected: %v", one.unparsed))
			return nil
		case one.cannot != nil:
			v.Raise(string(one.at), one.cannot)
		case !one.selected:
		default:
			found++
			if !s.part.labels.Empty() {
				s.Add(one.at)
			}
		}
		spaces[one.key.Namespace] = true
		if one.key.Resource == namespaceType() {
			spaces[one.key.Name] = true
		}
		for _, t := range s.types {
			if t.Resource == one.key.Resource {
				t.found[one.key.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.reportMissing(v, spaces)
	if _, refusing := v.Report().Errors(); refusing == 0 && found == 0 {
		v.Raise("", codeNothingSelected.Because("no record matches the selection%s", s.where()))
	}
	return nil
}

// look decides whether an entry is selected.
func (s *Selected) look(e *transform.Entry) (*seen, bool) {
	one := &seen{at: e.Key}
	var err error
	if one.key, err = e.ParseKey(); err != nil && !s.part.Whole() {
		one.unparsed = err
		parts := strings.Split(string(e.Key), "/")
		storage, inside := s.layouts.Of(e.Key)
		return one, s.part.words == nil && inside && s.prefixes[storage.Prefix] &&
			slices.ContainsFunc(s.part.namespaces, func(space string) bool { return slices.Contains(parts, space) })
	}
	if !s.fits(e.Key) {
		return nil, false
	}
	if one.selected = true; s.part.labels.Empty() {
		return one, true
	}
	meta, err := e.Meta()
	if err = cmp.Or(e.Undecryptable, err); err != nil {
		one.cannot = transform.Unreadable(err)
	}
	one.selected = err == nil && s.part.labels.Matches(labels.Set(meta.Labels))
	return one, true
}

// reportMissing reports the names and namespaces without an object.
func (s *Selected) reportMissing(v *transform.View, spaces map[string]bool) {
	if s.part.words == nil {
		for _, space := range s.part.namespaces {
			if !spaces[space] {
				v.Raise("", codeNotFound.Because("namespace %q not found", space))
			}
		}
	}
	for _, t := range s.types {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(t.names))) {
			if !t.found[name] {
				at := ""
				if t.Namespaced {
					at = s.where()
				}
				v.Raise("", codeNotFound.Because("%s %q not found%s", t.Name(), name, at))
			}
		}
	}
}

// where names the namespaces of the part in a message; "" for all.
func (s *Selected) where() string {
	if len(s.part.namespaces) == 0 {
		return ""
	}
	return " in namespace " + phrase.List(s.part.namespaces, 5)
}
