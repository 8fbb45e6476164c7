package sanitize

import (
	"maps"
	"slices"
	"strings"
	"unicode"
)

// dictionary has the names of a snapshot and the aliases of their words. After settle it is safe
// for concurrent use.
type dictionary struct {
	mask    masker
	names   map[string]trait  // by their words, and those that names begin with
	phrases map[string]bool   // vocabulary
	exact   map[string]bool   // constants, which stay as they are spelled
	taken   map[string]bool   // words that are no alias
	aliases map[string]string // by word
	kept    map[string]bool   // names that have no alias
}

// trait is what a sequence of words is.
type trait uint8

const (
	begins    trait = 1 << iota // a name begins with it, and goes on
	whole                       // it is a name
	namespace                   // of a namespace
	vague                       // it may mean something else
	fixed                       // it stays, wherever it is
)

func newDictionary(key []byte) *dictionary {
	d := &dictionary{
		mask: masker{key: key}, names: map[string]trait{}, phrases: map[string]bool{}, exact: map[string]bool{},
		taken: map[string]bool{}, aliases: map[string]string{}, kept: map[string]bool{},
	}
	for _, phrase := range vocabulary() {
		d.phrases[phrase] = true
	}
	return d
}

// add adds the name of an object or a namespace that users named.
func (d *dictionary) add(name string, t trait) {
	if isSystem(name) {
		d.keep(name)
		return
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		d.kept[name] = true // a part of it at least
	}
	sequence := wordsOf(name)
	if d.names[sequence]&t == t || sequence == "" {
		return
	}
	changes := false
	for word := range strings.FieldsSeq(sequence) {
		if !stays(word) {
			d.aliases[word], changes = "", true
		}
	}
	if !changes {
		d.kept[name] = true
		return
	}
	d.names[sequence] |= t
	if len(sequence) > longestInTexts {
		return
	}
	for i := range len(sequence) {
		if sequence[i] == ' ' {
			d.names[sequence[:i]] |= begins
		}
	}
}

// keep adds a name that stays, wherever it is.
func (d *dictionary) keep(name string) {
	d.vocabulary(name)
	d.names[wordsOf(name)] |= fixed
}

// vocabulary adds a text that keeps its meaning only as it is.
func (d *dictionary) vocabulary(text string) { d.phrases[text] = true }

// constant adds a text that users define. One with a capital letter stays where it is spelled so.
// No name of an object has one: a constant such as "Allow" keeps no name "allow".
func (d *dictionary) constant(text string) {
	if text != strings.ToLower(text) {
		d.exact[text] = true
	}
}

// take adds a text whose words are no alias.
func (d *dictionary) take(text string) {
	for begin, end := wordAt(text, 0); begin < len(text); begin, end = wordAt(text, end) {
		d.taken[strings.ToLower(text[begin:end])] = true
	}
}

// longestInTexts bounds the names that are looked for in texts, so that no text takes long: most
// have at most 253 letters. A longer one is replaced only in fields that hold names.
const longestInTexts = 256

// leastLetters is how long a name is that is replaced in any text.
const leastLetters = 5

func (d *dictionary) settle() {
	for sequence, t := range d.names {
		switch {
		case t&fixed != 0:
			d.names[sequence] = t & begins
		case t&whole != 0 && letters(sequence) < leastLetters:
			d.names[sequence] |= vague
		}
	}
	for phrase := range d.phrases {
		d.take(phrase)
		for at := range d.in(phrase) {
			d.names[at.sequence] |= vague
		}
	}
	words := slices.Sorted(maps.Keys(d.aliases))
	for _, word := range words {
		d.taken[word] = true
	}
	for _, word := range words {
		d.aliases[word] = d.derive(word)
	}
}

// letters counts the letters and digits of words, but for numbers and versions.
func letters(sequence string) (n int) {
	for word := range strings.FieldsSeq(sequence) {
		if !isNumber(word) {
			n += len(word)
		}
	}
	return n
}

// derive returns the keyed hash of a word in its shape: letters where it has letters, digits where
// it has digits. No other word has it; where all of its shape are taken, it is the word itself.
func (d *dictionary) derive(word string) string {
	for again := range uint64(255) {
		var out strings.Builder
		each(&out, word, lowerCase, d.mask.stream("name\x00"+word, again))
		if alias := out.String(); !d.taken[alias] && !stays(alias) {
			d.taken[alias] = true
			return alias
		}
	}
	return word
}

// replaced are the aliases by word, without those that are the word.
func (d *dictionary) replaced() map[string]string {
	out := maps.Clone(d.aliases)
	maps.DeleteFunc(out, func(word, alias string) bool { return word == alias })
	return out
}

func (d *dictionary) count() (n int) {
	for _, t := range d.names {
		n += int(t & whole / whole)
	}
	return n
}
