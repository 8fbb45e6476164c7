package redact

import (
	"iter"
	"unicode/utf8"
)

// segments yields the texts in binary data, of one byte or more.
func segments[T string | []byte](data T) iter.Seq2[int, int] {
	return func(yield func(begin, end int) bool) {
		begin := 0
		for begin < len(data) {
			end := begin + textSize(data[begin:])
			if end > begin && !yield(begin, end) {
				return
			}
			begin = end + 1
		}
	}
}

// textSize returns the length of the text at the beginning of data, 0 for none.
func textSize[T string | []byte](data T) (size int) {
	for size < len(data) {
		switch c := data[size]; {
		case c >= ' ' && c < 0x7f, c == '\t', c == '\n', c == '\r':
			size++
			continue
		case c < utf8.RuneSelf, size+1 == len(data), data[size+1]&0xc0 != 0x80:
			return size
		}
		r, of := utf8.DecodeRuneInString(string(data[size:min(len(data), size+utf8.UTFMax)]))
		if r == utf8.RuneError {
			return size
		}
		size += of
	}
	return size
}

func isText(data string) bool { return textSize(data) == len(data) }

// longestText returns the length of the longest text in data.
func longestText(data []byte) (longest int) {
	for begin := 0; begin < len(data); begin++ {
		size := textSize(data[begin:])
		longest = max(longest, size)
		begin += size
	}
	return longest
}

const (
	few           = 3 // bytes at the ends of a text
	leastRejected = 2*few + shortest
)

// isNearlyText reports whether data is a text except for a few bytes at both ends. Data rejected by
// a sieve is none if it is long.
func isNearlyText(data []byte, rejected bool) bool {
	if rejected && len(data) >= leastRejected {
		return false
	}
	for begin := range min(few+1, len(data)) {
		if size := textSize(data[begin:]); size > 0 {
			return begin+size >= len(data)-few
		}
	}
	return false
}
