package sanitize

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// dictionary holds the names of a snapshot and the aliases of their words. After settle it is safe
// for concurrent use.
type dictionary struct {
	mask    masker
	names   map[string]trait  // by words; also holds the beginnings of names
	phrases map[string]bool   // vocabulary
	exact   map[string]bool   // constants, kept in this exact spelling
	taken   map[string]bool   // words that must not be aliases
	aliases map[string]string // by word
	kept    map[string]bool   // names without an alias
}

// trait describes a sequence of words.
type trait uint8

const (
	begins    trait = 1 << iota // the beginning of a longer name
	whole                       // a name
	namespace                   // the name of a namespace
	vague                       // may also be an ordinary word
	fixed                       // never replaced
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

// add adds a name that users chose, of an object or a namespace.
func (d *dictionary) add(name string, t trait) {
	if isSystem(name) {
		d.keep(name)
		return
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		d.kept[name] = true // at least a part stays
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

// keep adds a name that is never replaced.
func (d *dictionary) keep(name string) {
	d.vocabulary(name)
	d.names[wordsOf(name)] |= fixed
}

// vocabulary adds a text that must not change.
func (d *dictionary) vocabulary(text string) { d.phrases[text] = true }

// constant adds a text from an API definition. With a capital letter, it stays in that spelling
// only: names of objects have no capital letters, so "Allow" does not protect a name "allow".
func (d *dictionary) constant(text string) {
	if text != strings.ToLower(text) {
		d.exact[text] = true
	}
}

// take excludes the words of a text from the aliases.
func (d *dictionary) take(text string) {
	for begin, end := wordAt(text, 0); begin < len(text); begin, end = wordAt(text, end) {
		d.taken[strings.ToLower(text[begin:end])] = true
	}
}

// longestInTexts bounds the names searched in texts, to bound the time: most names have at most 253
// letters. A longer name is replaced only in fields for names.
const longestInTexts = 256

// leastLetters is the least length of names to replace in any text.
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

// letters counts the letters and digits of words, except numbers and versions.
func letters(sequence string) (n int) {
	for word := range strings.FieldsSeq(sequence) {
		if !isNumber(word) {
			n += len(word)
		}
	}
	return n
}

// derive returns an unused keyed hash of a word with the same shape: letters for letters, digits
// for digits. If all aliases of the shape are used, derive returns the word.
func (d *dictionary) derive(word string) string {
	for attempt := range uint64(255) {
		var out strings.Builder
		each(&out, word, lowerCase, d.mask.stream("name\x00"+word, attempt))
		if alias := out.String(); !d.taken[alias] && !stays(alias) {
			d.taken[alias] = true
			return alias
		}
	}
	return word
}

// replaced returns the aliases by word, without words that stay.
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

// wordAt returns the begin and end of the next word of a text, from an offset on.
func wordAt(s string, from int) (begin, end int) {
	for begin = from; begin < len(s) && !inWord(s[begin]); {
		begin++
	}
	return begin, wordEnd(s, begin)
}

func wordEnd(s string, end int) int {
	for end < len(s) && inWord(s[end]) {
		end++
	}
	return end
}

func inWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }

// wordsOf returns the words of a name in lower case, separated by spaces.
func wordsOf(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || !inWord(byte(r)) })
	return strings.ToLower(strings.Join(words, " "))
}

// found is a name in a text.
type found struct {
	begin, end int
	trait      trait
	sequence   string
}

// in yields the names at each word of a text, shorter names first.
func (d *dictionary) in(s string) iter.Seq[found] {
	return func(yield func(found) bool) {
		var buffer [256]byte
		for begin, end := wordAt(s, 0); begin < len(s); begin, end = wordAt(s, end) {
			if !d.at(s, begin, end, buffer[:0], yield) {
				return
			}
			if from := escaped(s, begin, end); from != begin && !d.at(s, from, end, buffer[:0], yield) {
				return
			}
		}
	}
}

// at yields the names that begin at a word of a text.
func (d *dictionary) at(s string, begin, end int, words []byte, yield func(found) bool) bool {
	for words = append(words, strings.ToLower(s[begin:end])...); ; {
		t := d.names[string(words)]
		if t&whole != 0 && !yield(found{begin, end, t, string(words)}) {
			return false
		}
		if t&begins == 0 {
			return true
		}
		next := end
		for next < len(s) && next < end+2 && strings.IndexByte("-._:", s[next]) >= 0 {
			next++
		}
		if next == end || next == len(s) || !inWord(s[next]) {
			return true
		}
		end = wordEnd(s, next)
		words = append(append(words, ' '), strings.ToLower(s[next:end])...)
	}
}

// escaped returns the offset after the rest of an escape such as "\n" or "%20" at the beginning of
// a word.
func escaped(s string, begin, end int) int {
	switch {
	case begin == 0:
	case s[begin-1] == '\\' && s[begin] == 'u':
		return min(begin+5, end)
	case s[begin-1] == '\\' && strings.IndexByte("ntrbf", s[begin]) >= 0:
		return begin + 1
	case s[begin-1] == '%':
		return min(begin+2, end)
	}
	return begin
}

// longEnough is a length at which names do not occur in encoded data by chance.
const longEnough = 8

// encoded reports whether a short name in a text is probably a part of encoded data.
func encoded(s string, begin, end int) bool {
	if end-begin >= longEnough {
		return false
	}
	from, to := begin, end
	for from > max(begin-64, 0) && inBase64(s[from-1]) {
		from--
	}
	for to < min(end+64, len(s)) && inBase64(s[to]) {
		to++
	}
	run := s[from:to]
	return len(run) >= 24 && strings.ContainsAny(run, "0123456789") && strings.ToLower(run) != run &&
		strings.ToUpper(run) != run
}

func inBase64(c byte) bool { return inWord(c) || c == '+' || c == '/' || c == '=' }

// inText replaces the unambiguous names in a text, and calls unsure with each other name.
func (d *dictionary) inText(s string, unsure func(name string)) string {
	var out []byte
	copied, pending := 0, found{}
	for at := range d.in(s) {
		if pending.begin != at.begin && pending.end > copied {
			unsure(s[pending.begin:pending.end])
		}
		pending = found{}
		switch {
		case at.end <= copied && copied > 0:
		case at.trait&vague != 0 || d.exact[s[at.begin:at.end]]:
			pending = at
		case !encoded(s, at.begin, at.end):
			begin := max(at.begin, copied)
			out = append(out, s[copied:begin]...)
			out, copied = d.appendAlias(out, s[begin:at.end]), at.end
		}
	}
	if pending.end > copied {
		unsure(s[pending.begin:pending.end])
	}
	if copied == 0 {
		return s
	}
	return string(append(out, s[copied:]...))
}

func (d *dictionary) alias(name string) (alias string, is bool) {
	if d.names[wordsOf(name)]&whole == 0 {
		return name, false
	}
	return string(d.appendAlias(nil, name)), true
}

// appendAlias appends a text with all words replaced. Capital letters stay capital.
func (d *dictionary) appendAlias(to []byte, s string) []byte {
	copied := 0
	for begin, end := wordAt(s, 0); begin < len(s); begin, end = wordAt(s, end) {
		alias := d.aliases[strings.ToLower(s[begin:end])]
		if alias == "" {
			continue
		}
		to = append(to, s[copied:begin]...)
		for i := range len(alias) {
			c := alias[i]
			if old := s[begin+i]; old >= 'A' && old <= 'Z' {
				c -= 'a' - 'A'
			}
			to = append(to, c)
		}
		copied = end
	}
	return append(to, s[copied:]...)
}
