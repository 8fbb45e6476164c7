package redact

import "sync"

// sieve is an automaton over decoded bytes. It rejects most data without a text long enough for a
// secret; other data is decoded to look at it.
type sieve struct {
	values [256]uint8      // of base64 letters
	kinds  [256]uint8      // of bytes
	next   [256 << 4]uint8 // the next state by state and kind
}

// States of a sieve. A lower state is the length of the text so far, plus shortest for each missing
// byte of its last character.
const (
	atBegin   = 4*shortest + iota
	afterGzip // the first byte of gzip
	afterZip  // the third byte of zip
	isFull    // a text, or packed data
)

// Kinds of bytes. A lower kind is the first of a character, with that many more bytes.
const (
	textByte  = 4 + iota
	zlibByte  // a text too, at the beginning of zlib
	moreByte  // of a character
	gzip2Byte // of a character too
	gzipByte
	zip3Byte
	zip4Byte
	zeroByte = 1 << 4
)

var sieves = sync.OnceValue(func() *sieve {
	s := &sieve{}
	for i, letter := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		s.values[letter] = uint8(i)
	}
	s.values['-'], s.values['_'] = s.values['+'], s.values['/']
	for i := range s.kinds {
		c := byte(i)
		switch {
		case c == 0:
			s.kinds[c] = zeroByte
		case c >= 0xf0:
			s.kinds[c] = 3
		case c >= 0xe0:
			s.kinds[c] = 2
		case c >= 0xc0:
			s.kinds[c] = 1
		case c >= 0x80:
			s.kinds[c] = moreByte
		case isText(string(c)):
			s.kinds[c] = textByte
		}
	}
	s.kinds[zlibBegins], s.kinds[gzipBegins[0]], s.kinds[gzipBegins[1]] = zlibByte, gzipByte, gzip2Byte
	s.kinds[zipBegins[2]], s.kinds[zipBegins[3]] = zip3Byte, zip4Byte
	for state := range uint8(isFull + 1) {
		for kind := range uint8(16) {
			s.next[int(state)<<4|int(kind)] = nextState(state, kind)
		}
	}
	return s
})

func nextState(state, kind uint8) uint8 {
	size, missing := state%shortest, state/shortest
	if state >= atBegin {
		size, missing = 0, 0
	}
	more := kind == moreByte || kind == gzip2Byte
	switch {
	case state == isFull, state == atBegin && kind == zlibByte, state == afterGzip && kind == gzip2Byte,
		state == afterZip && kind == zip4Byte:
		return isFull
	case kind == gzipByte:
		return afterGzip
	case kind == zip3Byte:
		return afterZip
	case kind == 0, kind > gzipByte, more && missing == 0:
		return 0
	case more:
		missing--
	case missing > 0: // the last character is none
		size, missing = 0, 0
		fallthrough
	default:
		if kind < textByte {
			missing = kind
		}
	}
	if size++; size == shortest {
		return isFull
	}
	return missing*shortest + size
}

func (s *sieve) step(state uint8, c byte, zeros *int) uint8 {
	kind := s.kinds[c]
	*zeros += int(kind / zeroByte)
	return s.next[int(state)<<4|int(kind%zeroByte)]
}

// mayHold reports whether letters in base64, decoded from any of the first four on, may have a text
// as long as a secret, packed data or UTF-16.
func (s *sieve) mayHold(letters string) bool {
	// the last letter has 2, 4, 6 and none of the bits of the last byte
	var a, b, c, d uint8 = atBegin, atBegin, atBegin, atBegin
	zeros, word := 0, uint32(s.values[letters[0]])
	for i := 1; i < len(letters); i++ {
		word = word<<6 | uint32(s.values[letters[i]])
		a, b, c, d = d, s.step(a, byte(word>>4), &zeros), s.step(b, byte(word>>2), &zeros),
			s.step(c, byte(word), &zeros)
		if i == 2 { // data from the third and fourth letter on begins here
			a, d = atBegin, atBegin
		}
	}
	return a == isFull || b == isFull || c == isFull || d == isFull || zeros*4 >= (len(letters)-4)*3/4
}

// mayHoldHex is mayHold for hexadecimal, decoded from the first or second letter on.
func (s *sieve) mayHoldHex(letters string) bool {
	var a, b uint8 = atBegin, atBegin
	zeros, word := 0, byte(0)
	for i := range len(letters) {
		word = word<<4 | hexValue(letters[i])
		if i > 0 {
			a, b = b, s.step(a, word, &zeros)
		}
	}
	return a == isFull || b == isFull || zeros*4 >= (len(letters)-2)/2
}
