package redact

import (
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Glance is a visitor of the content of an object. It looks for everything that Shared.Object may
// redact, and passes the content on until it is unsure. Each of its conditions holds wherever
// walker.walk would hide or note a text, and perhaps elsewhere.
type Glance struct {
	to     native.Visitor
	w      walker
	fields *fieldNames
	met    bool // a secret of another object
	unsure bool
	open   []glanced // the begun maps and lists
	words  []byte    // the texts of the begun lists
}

// glanced is a begun map or list.
type glanced struct {
	list   bool
	around nameClass // of the texts in it, because of its name
	name   string    // of the next value; of the list itself
	own    nameClass // of name

	before string // the last text of a list
	texts  bool   // a list has texts
	begin  int    // of its texts in words

	container, entries bool      // a map has the kind of a container of secrets, and a field with entries
	names              [3]string // texts that may name the secret beside them
	value, standard    string    // texts of the fields value and default
}

// Glance returns a visitor for an object stored under key.
func (s *Shared) Glance(key []byte, to native.Visitor) *Glance {
	const usual = 16 // levels
	g := &Glance{to: to, w: newWalker(nil), unsure: keys.HoldsCredentials(key), open: make([]glanced, 0, usual)}
	g.w.names, g.w.clean, g.fields = s.names, s.shapeless, s.fields
	if len(s.index) > 0 {
		g.w.others, g.w.binary = &others{s, &g.met}, s.isBinary
	}
	return g
}

// Sure reports whether Shared.Object leaves the visited content unchanged. False means unsure.
func (g *Glance) Sure() bool {
	return !g.unsure && g.w.unpacker.left > mostUnpacked/2 // another order of the texts costs no more
}

// Begin implements native.Visitor.
func (g *Glance) Begin(list bool, n int) {
	if g.unsure {
		return
	}
	g.to.Begin(list, n)
	of := glanced{list: list}
	if last := len(g.open) - 1; last >= 0 {
		in := &g.open[last]
		g.word(in, "")
		of.around = in.own
		if list {
			of.name, of.own = in.name, in.own
		}
		if list && strings.EqualFold(of.name, "secrets") { // names of Secrets
			of.around = plainName
		}
	}
	of.begin = len(g.words)
	g.open = append(g.open, of)
}

// Name implements native.Visitor.
func (g *Glance) Name(name string, field int) {
	if g.unsure {
		return
	}
	g.to.Name(name, field)
	of := g.fields.of(g.w.names, name, field)
	in := &g.open[len(g.open)-1]
	in.name, in.own, in.entries = name, of.class, in.entries || of.entries
	if g.unsure = of.doubted; !of.isField {
		g.w.others.lookAtKey(g.w, name)
		g.unsure = g.unsure || g.met
	}
}

// glancedName is the effect of a name.
type glancedName struct {
	class   nameClass
	doubted bool // it may be hidden, or a value with it
	entries bool // the value has the entries of a container of secrets, if the map is one
	isField bool // see isFieldName
}

func (n names) glance(name string) (of glancedName) {
	of.class, of.isField = n.class(name), isFieldName(name)
	switch name {
	case "auths", "kty", corev1.LastAppliedConfigAnnotation, tokenAnnotation:
		of.doubted = true
	case "data", "stringData", "binaryData", "items":
		of.entries = true
	}
	of.doubted = of.doubted || isMember(name) || hasShape(name)
	return of
}

// fieldNames keeps the effects of the names of Go types by their numbers.
type fieldNames [1 << 12]atomic.Pointer[glancedName]

func (f *fieldNames) of(n names, name string, field int) glancedName {
	if f == nil || field == 0 || field >= len(f) {
		return n.glance(name)
	}
	of := f[field].Load()
	if of == nil {
		of = new(n.glance(name))
		f[field].Store(of)
	}
	return *of
}

// Text implements native.Visitor.
func (g *Glance) Text(text string) {
	if g.unsure {
		return
	}
	g.to.Text(text)
	in := &g.open[len(g.open)-1]
	hides := g.w.holds(text)
	if in.list {
		hides = hides || g.w.isSecret(in.around, text) || secretFlag(text) || secretFlagBefore(in.before, text)
		g.word(in, text)
	} else {
		hides = hides || g.w.isSecret(in.own, text) || in.around > headerName && !isPointer(in.name) &&
			g.w.isSecret(in.around, text)
		in.keep(text)
	}
	g.unsure = hides || g.met
}

// word adds a word to the command line of a list; "" for a value other than a text.
func (g *Glance) word(in *glanced, text string) {
	if in.list {
		in.before, in.texts = text, in.texts || text != ""
		g.words = append(append(g.words, text...), ' ')
	}
}

// keep remembers a text of a map for the end of the map.
func (in *glanced) keep(text string) {
	switch in.name {
	case "name":
		in.names[0] = text
	case "key":
		in.names[1] = text
	case "type":
		in.names[2] = text
	case "value":
		in.value = text
	case "default":
		in.standard = text
	case "kind":
		switch text {
		case "Secret", "SecretList", "ConfigMap":
			in.container = true
		}
	}
}

// Value implements native.Visitor.
func (g *Glance) Value(v any) {
	if g.unsure {
		return
	}
	g.to.Value(v)
	in := &g.open[len(g.open)-1]
	g.word(in, "")
	switch v.(type) {
	case nil, bool:
	case int64, float64:
		g.unsure = in.own == secretName
	default:
		g.unsure = true
	}
}

// End implements native.Visitor.
func (g *Glance) End() {
	if g.unsure {
		return
	}
	g.to.End()
	last := len(g.open) - 1
	in := &g.open[last]
	g.unsure = in.container && in.entries || in.texts && secretInCommand(string(g.words[in.begin:])) >= 0
	for _, value := range []string{in.value, in.standard} {
		g.unsure = g.unsure || value != "" && g.hasSecretName(in, value)
	}
	g.open, g.words = g.open[:last], g.words[:in.begin]
}

// hasSecretName reports whether a text of a map is a secret by the name beside it: see
// redactBeside.
func (g *Glance) hasSecretName(in *glanced, text string) bool {
	for _, name := range in.names {
		s := g.w.names.class(name)
		if s == headerName { // the entry is a header
			s = tokenName
		}
		if g.w.isSecret(s, text) {
			return true
		}
	}
	return false
}
