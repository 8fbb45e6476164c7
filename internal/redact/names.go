package redact

import (
	"slices"
	"strings"
)

// endings holds name endings by their last letter.
type endings map[byte][]string

func byLastLetter(table []string) endings {
	out := endings{}
	for _, ending := range table {
		last := ending[len(ending)-1]
		out[last] = append(out[last], ending)
	}
	return out
}

// longest returns the length of the longest ending of a dashed name, 0 for none.
func (e endings) longest(dashed string) (length int) {
	for _, ending := range e[dashed[len(dashed)-1]] {
		if len(ending) > length && endsIn(dashed, ending) {
			length = len(ending)
		}
	}
	return length
}

// endsIn reports whether a dashed name ends with the words of ending.
func endsIn(dashed, ending string) bool {
	i, e := len(dashed)-1, len(ending)-1
	for ; e >= 0 && i >= 0; i-- {
		switch {
		case dashed[i] == ending[e]:
			e--
		case dashed[i] != '-':
			return false
		}
	}
	return e < 0
}

// longestChecked bounds the checked part of a name, in bytes from its end.
const longestChecked = 128

// words splits a name like the tables: words in lower case, each after a dash, without digits at
// the end. "/" is kept.
func words(name string) string {
	name = name[max(0, len(name)-longestChecked):]
	out := make([]byte, 0, len(name)+8)
	word := false // the last byte belongs to a word
	for i := 0; i < len(name); i++ {
		c := name[i]
		lower := c | 0x20
		letter := lower >= 'a' && lower <= 'z'
		switch {
		case !letter && (c < '0' || c > '9'):
			if word = false; c == '/' {
				out = append(out, '/')
			}
			continue
		case !word || c != lower && letter && i > 0 && (isLower(name[i-1]) || i+1 < len(name) && isLower(name[i+1]) &&
			isUpper(name[i-1])):
			out = append(out, '-')
		}
		if word = true; letter {
			c = lower
		}
		out = append(out, c)
	}
	return strings.TrimRight(string(out), "0123456789-")
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// nameClass classifies a name by its probable values.
type nameClass int

const (
	plainName  nameClass = iota
	headerName           // a secret if the value looks like one
	tokenName            // a secret, unless the value is a number
	secretName
)

func classify(name string) nameClass {
	if !mayName(name) || strings.HasSuffix(name, ")") { // "def login(password):"
		return plainName
	}
	dashed := words(name)
	for dashed != "" {
		last := dashed[strings.LastIndexByte(dashed, '-')+1:]
		if !slices.Contains(tables().neutral, last) {
			break
		}
		dashed = strings.TrimRight(dashed[:len(dashed)-len(last)-1], "0123456789-")
	}
	if class := classifyWords(dashed); class != plainName {
		return class
	}
	return classifyWords(strings.TrimSuffix(dashed, "s"))
}

func classifyWords(dashed string) nameClass {
	if dashed == "" {
		return plainName
	}
	secret := tables().secretEndings.longest(dashed)
	if secret <= tables().harmlessEndings.longest(dashed) {
		secret = 0
	}
	first, _, _ := strings.Cut(dashed[1:], "-")
	switch {
	case slices.Contains(tables().measures, first):
		return plainName
	case secret > 0:
		if strings.Contains(dashed, "pass") && dashed != "-pass" || strings.HasSuffix(dashed, "pwd") {
			return secretName
		}
		return tokenName
	case slices.ContainsFunc(tables().headerEndings, func(e string) bool { return endsIn(dashed, e) }):
		return headerName
	}
	return plainName
}

// mayName reports whether a name has a letter pair of secret names. It is a fast filter: most names
// have none.
func mayName(name string) bool {
	a := tables().alphabet
	for i := 1; i < len(name); i++ {
		if a.pairs[name[i-1]].names.has(name[i])&pairBits(a.kinds[name[i]]/letterByte)&1 > 0 {
			return true
		}
	}
	return false
}

// isPointer reports whether a field is no secret although its object has the name of a secret.
func isPointer(name string) bool {
	dashed := words(name)
	return slices.ContainsFunc(tables().pointerEndings, func(e string) bool { return endsIn(dashed, e) })
}

// isKeyFile reports whether files of that name hold a private key or certificate.
func isKeyFile(name string) bool {
	name = strings.ToLower(name)
	return !strings.Contains(name, "trust") && slices.ContainsFunc(tables().keyFiles,
		func(end string) bool { return strings.HasSuffix(name, end) })
}
