package sanitize

import (
	"iter"
	"strings"
	"unicode"
)

// wordAt returns where the next word of a text begins and ends, from an offset on.
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

// wordsOf are the words of a name, in lower case, with a space between.
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

// in yields the names at each word of a text, the shorter ones first.
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

// at yields the names that begin with a word of a text.
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

// escaped returns where a word begins whose first letters are the rest of "\n" or "%20".
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

// longEnough is the length from which no name is in encoded data by chance.
const longEnough = 8

// encoded reports whether a short name in a text is a part of encoded data by chance.
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
	return len(run) >= 24 && strings.ContainsAny(run, "0123456789") && strings.ToLower(run) != run && strings.ToUpper(run) != run
}

func inBase64(c byte) bool { return inWord(c) || c == '+' || c == '/' || c == '=' }

// inText replaces the names in a text that can be nothing else, and calls unsure with each other
// name.
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

// appendAlias appends a text with all of its words replaced. A capital letter stays one.
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
