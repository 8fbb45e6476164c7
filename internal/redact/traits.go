package redact

import (
	"slices"
	"strings"
)

// byteKind has a bit for each class of bytes.
type byteKind uint16

const (
	letterByte   byteKind = 1 << iota // a-z and A-Z
	wordByte                          // letters, digits and "_"
	otherByte                         // between names
	base64Byte                        // of either alphabet
	escapeByte                        // of URLs and XML
	breakByte                         // line breaks and backslashes
	rawByte                           // control characters, and bytes other than ASCII
	userInfoByte                      // between a user and a host
	singleByte                        // a shape whose marks have one byte each has this one
)

// pairBits has a bit for each second byte of a pair. Bytes with equal low bits share a bit.
type pairBits uint64

func (p *pairBits) add(second byte)         { *p |= 1 << (second & 63) }
func (p pairBits) has(second byte) pairBits { return p >> (second & 63) } // in the lowest bit

// alphabet has the classes of bytes, and the pairs of bytes in marks of shapes, at the beginning of
// tokens and in names of secrets.
type alphabet struct {
	kinds [256]byteKind
	pairs [256]struct{ marks, tokens, names pairBits } // by the first byte
}

func alphabetOf(r *rules) *alphabet {
	a := &alphabet{}
	for i := range a.kinds {
		c := byte(i)
		for kind, is := range map[byteKind]bool{
			letterByte: isLower(c | 0x20), wordByte: isWordByte(c), otherByte: !isNameByte(c), base64Byte: isLetter(c),
			escapeByte: c == '%' || c == '&', breakByte: c == '\n' || c == '\r' || c == '\\',
			rawByte: !isText(string([]byte{c})), userInfoByte: c == '@',
		} {
			if is {
				a.kinds[i] |= kind
			}
		}
		for _, token := range r.tokens[i] {
			a.pairs[i].tokens.add(token.text[1])
		}
	}
	for _, s := range slices.Concat(r.shapes, r.commands) {
		if pair := rarest(s.marks); pair != "" {
			a.pairs[pair[0]].marks.add(pair[1])
		} else {
			a.kinds[s.marks[0][0]] |= singleByte
		}
	}
	a.pairs['k'].marks.add('t') // kty
	for pair := range strings.FieldsSeq("pa pw ps se to ke cr au pi sa si co mn jw be") {
		for _, first := range []byte{pair[0], pair[0] &^ 0x20} {
			a.pairs[first].names.add(pair[1])
			a.pairs[first].names.add(pair[1] &^ 0x20)
		}
	}
	return a
}

// rarest returns a pair of bytes of the marks that few texts have, "" for none.
func rarest(marks []string) (pair string) {
	const common = " -eacdfbtpoinsrhlumgwyvkxjqz" // the most common bytes first
	rank := func(c byte) int {
		if at := strings.IndexByte(common, c); at >= 0 {
			return at
		}
		return len(common)
	}
	best := 0
	for _, mark := range marks {
		for i := 1; i < len(mark); i++ {
			if n := 1 + rank(mark[i-1]) + rank(mark[i]); n > best {
				best, pair = n, mark[i-1:i+1]
			}
		}
	}
	return pair
}

// traits are the findings of one pass over a text: most texts lack what a secret needs.
type traits struct {
	kinds                byteKind // of all bytes
	run                  int      // the longest run of base64 letters, without line breaks
	marks, tokens, names bool     // a pair of a mark, the beginning of a token, a pair of a name
}

func (a *alphabet) traits(text string) (t traits) {
	var marks, tokens, names, before, last pairBits = 0, 0, 0, 1, 1
	run, of := 0, &a.pairs[0]
	for i := range len(text) {
		c := text[i]
		kind := a.kinds[c]
		t.kinds |= kind
		run = (run + 1) & -int(kind/base64Byte&1)
		t.run = max(t.run, run)
		marks |= of.marks.has(c)
		names |= of.names.has(c) & pairBits(kind/letterByte)
		tokens |= of.tokens.has(c) & before // behind a byte that is not of a word
		before, last = last, pairBits(^kind/wordByte)
		of = &a.pairs[c]
	}
	t.marks, t.tokens, t.names = marks&1 > 0, tokens&1 > 0, names&1 > 0
	return t
}

// mayShape reports whether a text may have a secret with a shape.
func (t traits) mayShape() bool { return t.marks || t.tokens || t.kinds&(userInfoByte|singleByte) != 0 }

// mayPack reports whether a text may have an encoded part, of least letters in base64.
func (t traits) mayPack(least int) bool {
	return t.run >= least || t.kinds&(escapeByte|breakByte|rawByte) != 0
}

// mayName reports whether a text may have the name of a secret beside other words.
func (t traits) mayName() bool { return t.kinds&otherByte != 0 && (t.names || t.marks) }

func (t traits) isText(text string) bool { return t.kinds&rawByte == 0 || isText(text) }
