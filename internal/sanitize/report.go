package sanitize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// Sanitized is the report section of "sanitize".
type Sanitized struct {
	Sanitized []Count   `json:"sanitized,omitempty"`       // by type
	Names     *Names    `json:"names,omitempty"`           // nil with --keep-names
	LeftOut   []LeftOut `json:"leftOut,omitempty"`         // records missing in the output
	Keys      []string  `json:"keysWithSecrets,omitempty"` // keys of OUT that contain a secret
	// secrets replaced only in their own object: short or long texts, words, hosts, names,
	// certificates
	Unsearched   int      `json:"unsearched,omitempty"`
	NotSanitized []string `json:"notSanitized,omitempty"` // remaining information about the cluster
}

// Names reports the replacement of names of namespaces and objects.
type Names struct {
	Replaced int               `json:"replaced"`          // number of names
	Texts    int               `json:"texts"`             // number of texts with replaced names
	Kept     []string          `json:"kept,omitempty"`    // names made of numbers or words of Kubernetes
	InTexts  []Mention         `json:"inTexts,omitempty"` // names that are also words: some texts keep them
	Words    map[string]string `json:"words,omitempty"`   // aliases by word
}

// Mention is a word that is also the name of an object.
type Mention struct {
	Name  string `json:"name"`
	Texts int    `json:"texts"` // number of texts that keep the name
}

// Count counts the replaced values in the objects of a type.
type Count struct {
	Type    string `json:"type"`
	Objects int    `json:"objects"` // with replaced values
	Values  int    `json:"values"`
}

// LeftOut is a record missing in the output.
type LeftOut struct {
	Key string `json:"key"`
	Why string `json:"why"`
}

func notSanitized(keepNames bool) []string {
	out := []string{
		"IP addresses, host names, e-mail addresses, and certificates outside Secrets",
		"UIDs, times, resource versions and the sizes of values: whoever has logs of the cluster can match them",
		"text that is no credential by its name or shape: events, commands, annotations and schemas of your own",
		"a password in a field that no name gives away, such as \"greeting\"",
	}
	if keepNames {
		return append([]string{"names of namespaces, objects, containers, images, labels and users in RBAC"}, out...)
	}
	return append([]string{
		"names of types and drivers, of users in RBAC, of containers, ports and labels that no object has, " +
			"numbers in names",
		"names inside longer words; names in encoded parts of a text, in hashes, and below five layers of encoding",
		"short names and words of types outside fields that hold names: the report counts the texts",
	}, out...)
}

// Tables returns the section as tables.
func (s *Sanitized) Tables(transform.Outcome) []transform.Table {
	replaced := transform.Table{Title: "Replaced", Header: []any{"TYPE", "OBJECTS", "VALUES"}}
	for _, c := range s.Sanitized {
		replaced.Rows = append(replaced.Rows, []any{c.Type, c.Objects, c.Values})
	}
	if s.Unsearched > 0 {
		const text = "  %d values are short, long, words, hosts, names or certificates: replaced in their own " +
			"objects alone"
		replaced.Notes = append(replaced.Notes, fmt.Sprintf(text, s.Unsearched))
	}
	if len(s.Keys) > 0 {
		replaced.Notes = append(replaced.Notes,
			fmt.Sprintf("  %d keys of OUT have a secret in their names: the report lists them", len(s.Keys)))
	}
	tables := append([]transform.Table{replaced}, s.Names.tables()...)
	if len(s.LeftOut) > 0 {
		out := transform.Table{Title: "Left out", Header: []any{"KEY", "WHY"}, Of: "records"}
		for _, l := range s.LeftOut {
			out.Rows = append(out.Rows, []any{l.Key, l.Why})
		}
		tables = append(tables, out)
	}
	still := transform.Table{Title: "Not replaced"}
	for _, what := range s.NotSanitized {
		still.Notes = append(still.Notes, "  "+what)
	}
	return append(tables, still)
}

func (n *Names) tables() []transform.Table {
	if n == nil {
		return nil
	}
	names := transform.Table{Title: "Names", Notes: []string{fmt.Sprintf("  %d replaced, in %d texts",
		n.Replaced, n.Texts)}}
	if len(n.Kept) > 0 {
		names.Notes = append(names.Notes, "  kept: "+finding.List(n.Kept))
	}
	if len(n.InTexts) == 0 {
		return []transform.Table{names}
	}
	left := transform.Table{Title: "Names that texts keep", Header: []any{"NAME", "TEXTS"}, Of: "names"}
	for _, m := range n.InTexts {
		left.Rows = append(left.Rows, []any{m.Name, m.Texts})
	}
	return []transform.Table{names, left}
}

// tally counts replaced values and names.
type tally struct {
	counts map[string]*Count // by type
	left   map[string]int    // number of texts by the names that they keep
	texts  int               // number of texts with replaced names
	out    []LeftOut
	keys   []string        // keys with secrets
	moved  map[string]bool // new keys
}

func newTally() *tally {
	return &tally{counts: map[string]*Count{}, left: map[string]int{}, out: []LeftOut{}, moved: map[string]bool{}}
}

func (t *tally) add(r *record) {
	if r.drop != "" {
		t.out = append(t.out, LeftOut{string(r.Key), r.drop})
		return
	}
	if r.key != "" {
		t.keys = append(t.keys, r.key)
	}
	if r.to != nil {
		t.moved[string(r.to)] = true
	}
	if r.values > 0 {
		if t.counts[r.name] == nil {
			t.counts[r.name] = &Count{Type: r.name}
		}
		t.counts[r.name].Objects++
		t.counts[r.name].Values += r.values
	}
	t.texts += r.texts
	for name, n := range r.left {
		t.left[name] += n
	}
}

// report returns the section of the report. names is nil with --keep-names.
func (t *tally) report(names *dictionary, unsearched int) *Sanitized {
	out := &Sanitized{Sanitized: []Count{}, LeftOut: t.out, Keys: t.keys, Unsearched: unsearched,
		NotSanitized: notSanitized(names == nil)}
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		out.Sanitized = append(out.Sanitized, *t.counts[name])
	}
	if names == nil {
		return out
	}
	out.Names = &Names{
		Replaced: names.count(), Texts: t.texts, Kept: slices.Sorted(maps.Keys(names.kept)), Words: names.replaced(),
	}
	for _, name := range slices.Sorted(maps.Keys(t.left)) {
		out.Names.InTexts = append(out.Names.InTexts, Mention{name, t.left[name]})
	}
	slices.SortStableFunc(out.Names.InTexts, func(a, b Mention) int { return cmp.Compare(b.Texts, a.Texts) })
	return out
}
