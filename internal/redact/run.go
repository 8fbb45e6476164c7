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
	letters    []byte // without line breaks, indentation and quotes
	lines      int    // number of line breaks
	plain      []byte // decoded letters
}

func (r *run) next(text string) bool {
	at := r.end
	for at < len(text) && !isLetter(text[at]) {
		at++
	}
	r.begin, r.letters, r.lines = at, r.letters[:0], 0
	for begin := at; at < len(text); begin = at {
		for at < len(text) && isLetter(text[at]) {
			at++
		}
		r.letters = append(r.letters, text[begin:at]...)
		next := behindBreak(text, at)
		if next == at || next == len(text) || !isLetter(text[next]) {
			break
		}
		r.lines++
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
		of, u.spare = u.spare, run{}
		defer func() { u.spare = of }()
	}
	for of.end = 0; of.next(text); {
		if len(of.letters) < least {
			continue
		}
		for i, c := range of.letters {
			of.letters[i] = standard(c)
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
		for offset := range offsets {
			of.decode(offset)
			longest, one := textsIn(of.plain)
			if !texts || !u.skip(of.plain, longest) {
				f := encoded{begin: of.begin, end: of.end, plain: string(of.plain), brief: brief}
				if offset == 0 {
					f.edit = reencode(old, f.plain, func(plain string) string { return encodeAs(old, plain) })
				}
				if !u.spend(f, yield) {
					return false
				}
			}
			if one {
				break
			}
			if offset == 0 {
				if !u.spend(encoded{begin: of.begin, end: of.end, plain: u.inflate(of.plain), brief: brief}, yield) {
					return false
				}
			}
		}
	}
	return true
}

func (u *Unpacker) decodeHex(of *run, old string, least int, texts bool, yield func(encoded) bool) bool {
	for begin, end := 0, 0; end < len(of.letters); begin = end + 1 {
		for end = begin; end < len(of.letters) && isHex(of.letters[end]); {
			end++
		}
		for ; end-begin >= least; begin++ { // also from odd offsets
			of.plain, _ = hex.AppendDecode(of.plain[:0], of.letters[begin:end-(end-begin)%2])
			longest, one := textsIn(of.plain)
			if !texts || !u.skip(of.plain, longest) {
				f := encoded{begin: of.begin, end: of.end, plain: string(of.plain), brief: end-begin < leastNamed}
				if end-begin == len(of.letters) {
					f.edit = reencode(old, f.plain, func(plain string) string { return hexAs(old, plain) })
				}
				if !u.spend(f, yield) {
					return false
				}
			}
			if one || begin%2 == 1 {
				break
			}
		}
	}
	return true
}

// skip reports whether data, whose longest text has the given length, has no text long enough for a
// secret, and is neither packed nor UTF-16. The budget is lowered like by spend.
func (u *Unpacker) skip(data []byte, longest int) bool {
	if longest >= shortest || len(data) >= u.budget() || len(data) >= shortest &&
		(bytes.Count(data, []byte{0})*4 >= len(data) || packedAt(string(data)) >= 0) {
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

// decode decodes a run in base64, beginning at the letter offset.
func (r *run) decode(offset int) {
	letters := r.letters[min(offset, len(r.letters)):]
	if len(letters)%4 == 1 { // six bits are no byte
		letters = letters[:len(letters)-1]
	}
	r.plain, _ = base64.RawStdEncoding.AppendDecode(r.plain[:0], letters)
}

// standard translates a letter of the URL-safe alphabet into the standard alphabet.
func standard(c byte) byte {
	switch c {
	case '-':
		return '+'
	case '_':
		return '/'
	}
	return c
}

// isLetter reports whether either base64 alphabet has a letter.
func isLetter(c byte) bool {
	const digits = 0x3ff<<'0' | 1<<'+' | 1<<'-' | 1<<'/'
	const letters = 0x3ffffff<<('A'-64) | 0x3ffffff<<('a'-64) | 1<<('_'-64)
	return c < 64 && uint64(digits)>>c&1 != 0 || c >= 64 && c < 128 && uint64(letters)>>(c-64)&1 != 0
}
