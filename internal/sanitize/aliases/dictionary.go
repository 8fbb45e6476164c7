package aliases

import (
	"crypto/hmac"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Dictionary has the names of a snapshot. After Settle it is safe for concurrent use.
type Dictionary struct {
	key     []byte
	names   map[string]trait  // by their words, and those that names begin with
	phrases map[string]bool   // vocabulary
	exact   map[string]bool   // constants, which stay as they are spelled
	taken   map[string]bool   // words that are no alias
	words   map[string]string // aliases by word
	stay    map[string]bool   // words of names that stay
	kept    map[string]bool   // names that have no alias
}

// trait is what a sequence of words is.
type trait uint8

const (
	begins    trait = 1 << iota // a name begins with it, and goes on
	whole                       // it is a name
	namespace                   // of a namespace
	vague                       // it may mean something else
)

// New returns a dictionary whose aliases are derived from a key.
func New(key []byte) *Dictionary {
	d := &Dictionary{
		key: key, names: map[string]trait{}, phrases: map[string]bool{}, exact: map[string]bool{}, taken: map[string]bool{}, words: map[string]string{},
		stay: map[string]bool{}, kept: map[string]bool{},
	}
	for _, phrase := range vocabulary() {
		d.Vocabulary(phrase)
	}
	return d
}

// Name adds the name of an object that users named.
func (d *Dictionary) Name(name string) { d.add(name, whole) }

// Namespace adds the name of a namespace that users named.
func (d *Dictionary) Namespace(name string) { d.add(name, whole|namespace) }

func (d *Dictionary) add(name string, t trait) {
	if isSystem(name) {
		d.Keep(name)
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
			d.words[word], changes = "", true
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

// Keep adds a name that stays, wherever it is.
func (d *Dictionary) Keep(name string) {
	d.Vocabulary(name)
	d.stay[wordsOf(name)] = true
}

// Vocabulary adds a text that keeps its meaning only as it is.
func (d *Dictionary) Vocabulary(text string) { d.phrases[text] = true }

// Constant adds a text that users define. One with a capital letter stays where it is spelled so.
// No name of an object has one: a constant such as "Allow" keeps no name "allow".
func (d *Dictionary) Constant(text string) {
	if text != strings.ToLower(text) {
		d.exact[text] = true
	}
}

// Taken adds a text whose words are no alias.
func (d *Dictionary) Taken(text string) {
	for begin, end := wordAt(text, 0); begin < len(text); begin, end = wordAt(text, end) {
		if word := strings.ToLower(text[begin:end]); !d.taken[word] {
			d.taken[word] = true
		}
	}
}

// longestInTexts bounds the names that are looked for in texts, so that no text takes long: most
// have at most 253 letters. A longer one is replaced only in fields that hold names.
const longestInTexts = 256

// leastLetters is how long a name is that is replaced in any text.
const leastLetters = 5

// Settle makes the aliases, when all names are there.
func (d *Dictionary) Settle() {
	for sequence := range d.stay {
		d.names[sequence] &= begins
	}
	for sequence, t := range d.names {
		if t&whole != 0 && d.letters(sequence) < leastLetters {
			d.names[sequence] |= vague
		}
	}
	for phrase := range d.phrases {
		d.Taken(phrase)
		for at := range d.in(phrase) {
			d.names[at.sequence] |= vague
		}
	}
	for _, word := range slices.Sorted(maps.Keys(d.words)) {
		d.taken[word] = true
	}
	for _, word := range slices.Sorted(maps.Keys(d.words)) {
		d.words[word] = d.derive(word)
	}
}

// letters counts the letters and digits of words, but for numbers and versions.
func (d *Dictionary) letters(sequence string) (n int) {
	for word := range strings.FieldsSeq(sequence) {
		if !stays(word) || strings.Contains(stayingWords, " "+word+" ") {
			n += len(word)
		}
	}
	return n
}

// derive returns an alias that no other word has; the word itself where all of its shape are taken.
func (d *Dictionary) derive(word string) string {
	const most = 255
	for again := range most {
		mac := hmac.New(sha256.New, d.key)
		mac.Write(append([]byte("name\x00"), byte(again)))
		mac.Write([]byte(word))
		if alias := shaped(word, mac.Sum(nil), d.key); !d.taken[alias] && !stays(alias) {
			d.taken[alias] = true
			return alias
		}
	}
	return word
}

// shaped returns a word with letters where word has letters, and digits where it has digits.
func shaped(word string, sum, key []byte) string {
	out := []byte(word)
	for i := range out {
		if i > 0 && i%len(sum) == 0 {
			mac := hmac.New(sha256.New, key)
			mac.Write(sum)
			sum = mac.Sum(nil)
		}
		if c := sum[i%len(sum)]; out[i] >= 'a' {
			out[i] = 'a' + c%26
		} else {
			out[i] = '0' + c%10
		}
	}
	return string(out)
}

// Words are the aliases by word, without those that are the word.
func (d *Dictionary) Words() map[string]string {
	out := maps.Clone(d.words)
	maps.DeleteFunc(out, func(word, alias string) bool { return word == alias })
	return out
}

// Kept lists the names that are numbers or words of Kubernetes, and stay.
func (d *Dictionary) Kept() []string { return slices.Sorted(maps.Keys(d.kept)) }

// Count counts the names that have aliases.
func (d *Dictionary) Count() (n int) {
	for _, t := range d.names {
		n += int(t & whole / whole)
	}
	return n
}
