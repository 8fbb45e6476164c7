package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Lengths of base64 and hexadecimal, in letters.
const (
	leastNamed = 16 // with a secret's name or shape inside
	leastKnown = 11 // with a known secret inside
	leastWhole = 8  // a whole text, from its first letter on
	longestGap = 256
)

// run is a sequence of base64 letters in a text, of either alphabet and over several lines, or of
// hexadecimal letters.
type run struct {
	begin, end int    // offsets in the text, with padding
	letters    string // without line breaks, indentation and quotes
	plain      []byte // decoded letters
}

func (r *run) next(text string) bool {
	at, kinds := r.end, &tables().alphabet.kinds
	for at < len(text) && kinds[text[at]]&base64Byte == 0 {
		at++
	}
	r.begin, r.letters = at, ""
	var lines strings.Builder
	for begin := at; at < len(text); begin = at {
		for at < len(text) && kinds[text[at]]&base64Byte != 0 {
			at++
		}
		next := behindBreak(text, at)
		more := next > at && next < len(text) && kinds[text[next]]&base64Byte != 0
		if !more && lines.Len() == 0 {
			r.letters = text[begin:at]
			break
		}
		if lines.WriteString(text[begin:at]); !more {
			r.letters = lines.String()
			break
		}
		at = next
	}
	for pad := 0; pad < 2 && at < len(text) && text[at] == '='; pad++ {
		at++
	}
	r.end = at
	return len(r.letters) > 0
}

// behindBreak returns the offset of the next line, after its indentation and quotes, if a line ends
// at at; otherwise at. In JSON a line ends in "\n" with a backslash. In source code a text may end
// before the line does: "abc\n" +.
func behindBreak(text string, at int) int {
	next, found := at, false
	for next < min(len(text), at+longestGap) {
		switch c := text[next]; {
		case c == '\n', c == '\r', c == '\\' && next+1 < len(text) && (text[next+1] == 'n' || text[next+1] == 'r'):
			if found = true; c == '\\' {
				next++
			}
		case strings.IndexByte(" \t\"'\\", c) >= 0, found && strings.IndexByte(">#*|", c) >= 0,
			!found && next > at && strings.IndexByte("+,;.", c) >= 0:
		case found:
			return next
		default:
			return at
		}
		next++
	}
	return at
}

// decodeRuns decodes the runs of a text as base64 and as hexadecimal, and yields the results; if
// texts is true, only those with a text or packed data in them.
func (u *Unpacker) decodeRuns(text string, least int, texts bool, yield func(encoded) bool) bool {
	if len(text) < least {
		return true
	}
	var of run
	if u != nil { // texts inside take new memory
		of.plain, u.spare = u.spare, nil
		defer func() { u.spare = of.plain }()
	}
	for of.next(text) {
		if len(of.letters) < least {
			continue
		}
		old := text[of.begin:of.end]
		if !u.decodeHex(&of, old, least, texts, yield) {
			return false
		}
		brief := len(of.letters) < leastNamed
		offsets := 4
		if least == leastWhole {
			offsets = 1
		}
		empty := texts && !sieves().mayHold(of.letters)
		for offset := range offsets {
			if offset > 0 && empty && u.pass(of.size(offset)) {
				continue
			}
			of.decode(offset)
			if !texts || !u.skip(of.plain, empty) {
				f := encoded{begin: of.begin, end: of.end, plain: string(of.plain), brief: brief}
				if offset == 0 {
					f.edit = reencode(old, f.plain, func(plain string) string { return encodeAs(old, plain) })
				}
				if !u.spend(f, yield) {
					return false
				}
			}
			if isNearlyText(of.plain, empty) {
				break
			}
			if offset > 0 {
				continue
			}
			if plain := u.inflate(of.plain); plain != "" &&
				!u.spend(encoded{begin: of.begin, end: of.end, plain: plain, brief: brief}, yield) {
				return false
			}
		}
	}
	return true
}

func (u *Unpacker) decodeHex(of *run, old string, least int, texts bool, yield func(encoded) bool) bool {
	for begin, end := 0, 0; begin+least <= len(of.letters); begin = end + 1 {
		if end = lastOther(of.letters[begin : begin+least]); end >= 0 { // most letters are not hexadecimal
			end += begin
			continue
		}
		for end = begin + least; end < len(of.letters) && isHex(of.letters[end]); {
			end++
		}
		empty := texts && !sieves().mayHoldHex(of.letters[begin:end])
		for ; end-begin >= least; begin++ { // also from odd offsets
			if empty && u.pass((end-begin)/2) {
				if begin%2 == 1 {
					break
				}
				continue
			}
			of.decodeHex(of.letters[begin:end])
			if !texts || !u.skip(of.plain, empty) {
				f := encoded{begin: of.begin, end: of.end, plain: string(of.plain), brief: end-begin < leastNamed}
				if end-begin == len(of.letters) {
					f.edit = reencode(old, f.plain, func(plain string) string { return hexAs(old, plain) })
				}
				if !u.spend(f, yield) {
					return false
				}
			}
			if begin%2 == 1 || isNearlyText(of.plain, empty) {
				break
			}
		}
	}
	return true
}

// lastOther returns the offset of the last letter that is not hexadecimal, -1 for none.
func lastOther(letters string) int {
	at := len(letters) - 1
	for at >= 0 && isHex(letters[at]) {
		at--
	}
	return at
}

// pass reports whether data of a size needs no decoding, rejected by a sieve and too long for
// isNearlyText. The budget is lowered like by spend.
func (u *Unpacker) pass(size int) bool {
	if size < leastRejected || size >= u.budget() {
		return false
	}
	u.take(size)
	return true
}

// skip reports whether data has no text long enough for a secret, and is neither packed nor UTF-16;
// empty means that a sieve has rejected it. The budget is lowered like by spend.
func (u *Unpacker) skip(data []byte, empty bool) bool {
	if len(data) >= u.budget() || !empty && (longestText(data) >= shortest || len(data) >= shortest &&
		(bytes.Count(data, []byte{0})*4 >= len(data) || packedAt(string(data)) >= 0)) {
		return false
	}
	u.take(len(data))
	return true
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

// hexAs encodes data in hexadecimal with the case and line breaks of old.
func hexAs(old, data string) string {
	out := hex.EncodeToString([]byte(data))
	if strings.ContainsAny(old, "ABCDEF") {
		out = strings.ToUpper(out)
	}
	return wrapAs(old, out)
}

// encodeAs encodes data in base64 with the alphabet, padding and line breaks of old. Padding is
// ambiguous if old has no "=" at the end and a length that is a multiple of four; then only the
// URL-safe alphabet, used for tokens, has no padding.
func encodeAs(old, data string) string {
	var of run
	of.next(old)
	encoding, padded := base64.StdEncoding, len(of.letters)%4 == 0
	if strings.ContainsAny(old, "-_") {
		encoding, padded = base64.URLEncoding, false
	}
	if !padded && !strings.HasSuffix(old, "=") {
		encoding = encoding.WithPadding(base64.NoPadding)
	}
	return wrapAs(old, encoding.EncodeToString([]byte(data)))
}

// wrapAs breaks out into lines like old.
func wrapAs(old, out string) string {
	width := strings.IndexFunc(old, func(c rune) bool { return c != '=' && !isLetter(byte(c)) })
	if width <= 0 {
		return out
	}
	gap := old[width:behindBreak(old, width)]
	var wrapped strings.Builder
	for ; len(out) > width; out = out[width:] {
		wrapped.WriteString(out[:width] + gap)
	}
	return wrapped.String() + out
}

// decode decodes a run in base64 of either alphabet, beginning at the letter offset.
func (r *run) decode(offset int) {
	values, letters := &sieves().values, r.letters[min(offset, len(r.letters)):]
	r.plain = r.plain[:0]
	for ; len(letters) >= 4; letters = letters[4:] {
		a, b, c, d := values[letters[0]], values[letters[1]], values[letters[2]], values[letters[3]]
		r.plain = append(r.plain, a<<2|b>>4, b<<4|c>>2, c<<6|d)
	}
	for i := 1; i < len(letters); i++ {
		r.plain = append(r.plain, values[letters[i-1]]<<(2*i)|values[letters[i]]>>(6-2*i))
	}
}

// size returns the length of decoded data.
func (r *run) size(offset int) int { return max(len(r.letters)-offset, 0) * 3 / 4 }

func (r *run) decodeHex(letters string) {
	r.plain = r.plain[:0]
	for i := 1; i < len(letters); i += 2 {
		r.plain = append(r.plain, hexValue(letters[i-1])<<4|hexValue(letters[i]))
	}
}

func hexValue(letter byte) byte { return letter&15 + letter>>6*9 }

// isLetter reports whether either base64 alphabet has a letter.
func isLetter(c byte) bool {
	const digits = 0x3ff<<'0' | 1<<'+' | 1<<'-' | 1<<'/'
	const letters = 0x3ffffff<<('A'-64) | 0x3ffffff<<('a'-64) | 1<<('_'-64)
	return c < 64 && uint64(digits)>>c&1 != 0 || c >= 64 && c < 128 && uint64(letters)>>(c-64)&1 != 0
}
