package calico

import (
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/transform"
)

// Decisions say which object wins in single conflicts, by KIND[/NAMESPACE]/NAME. KIND is a kind or
// plural of either group in any case; NAME is that of the v3 object or of the v1 record.
type Decisions map[string]Conflicts

// parseDecisions reads the values of --conflict.
func parseDecisions(words []string) (Decisions, error) {
	out := Decisions{}
	for _, word := range words {
		object, choice, _ := strings.Cut(word, "=")
		parts := strings.Split(object, "/")
		if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") || Conflicts(choice) != KeepV3 && Conflicts(choice) != TakeV1 {
			return nil, transform.Usagef("--conflict is %q; it takes KIND[/NAMESPACE]/NAME=%s or =%s, such as Tier/security=%s", word, TakeV1, KeepV3, TakeV1)
		}
		if is, there := out[object]; there && is != Conflicts(choice) {
			return nil, transform.Usagef("--conflict has both choices for %s", object)
		}
		out[object] = Conflicts(choice)
	}
	return out, nil
}

// choices are decisions, and what became of them.
type choices struct {
	Decisions
	words map[string]string // of the command line, with the kind in lower case
	used  map[string]bool   // by word: a record has that name
	met   []string          // conflicts, as a word
}

func newChoices(d Decisions) *choices {
	c := &choices{Decisions: d, words: map[string]string{}, used: map[string]bool{}}
	for word := range d {
		kind, rest, _ := strings.Cut(word, "/")
		c.words[strings.ToLower(kind)+"/"+rest] = word
	}
	return c
}

// of finds the decision about a record, "" for none.
func (c *choices) of(id *identity) string {
	for _, kind := range []string{id.kind.Kind, id.kind.V1Kind, id.kind.Plural, id.kind.V1Plural} {
		for _, name := range []string{id.name(), id.stored()} {
			if word, there := c.words[strings.ToLower(kind)+"/"+inNamespace(id, name)]; there {
				return word
			}
		}
	}
	return ""
}

func inNamespace(id *identity, name string) string {
	return strings.TrimPrefix(id.namespace()+"/"+name, "/")
}

// decide is the choice for a conflict, and the flag that makes it.
func (m *run) decide(id *identity) (choice Conflicts, by string) {
	c := m.choices
	c.met = append(c.met, id.kind.Kind+"/"+inNamespace(id, id.name()))
	if word := c.of(id); word != "" {
		c.used[word] = true
		return c.Decisions[word], "--conflict " + word + "=" + string(c.Decisions[word])
	}
	return m.opts.Conflicts, "--conflicts " + string(m.opts.Conflicts)
}

// idleChoices warns of decisions about records without such a conflict.
func (m *run) idleChoices() {
	if len(m.choices.used) == len(m.choices.Decisions) {
		return
	}
	for _, id := range slices.Concat(m.table.lost, m.table.records) {
		if word := m.choices.of(id); word != "" && !m.choices.used[word] {
			m.choices.used[word] = true
			m.Raise(string(id.key), codeConflict.Because("--conflict %s=%s has no effect: no v3 object with another spec was compared with the record",
				word, m.choices.Decisions[word]).Decided(finding.Noted))
		}
	}
}

// unknown is the usage error of a decision about no v1 record.
func (c *choices) unknown() error {
	for _, word := range slices.Sorted(maps.Keys(c.Decisions)) {
		if c.used[word] {
			continue
		}
		slices.Sort(c.met)
		hint := "there is no conflict"
		if near := phrase.Nearest(word, c.met); near != "" {
			hint = "did you mean " + near + "?"
		} else if len(c.met) > 0 {
			hint = "conflicts are " + finding.List(c.met)
		}
		return transform.Usagef("--conflict %s: there is no v1 record of that name; %s", word, hint)
	}
	return nil
}
