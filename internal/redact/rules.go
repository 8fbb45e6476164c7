package redact

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

//go:embed rules.txt
var rulesText string

// rules holds the tables of rules.txt, described there.
type rules struct {
	shapes, commands, pairs          []shape
	tokens                           [256][]tokenPrefix // by first letter
	secretEndings, harmlessEndings   endings
	headerEndings, pointerEndings    []string
	neutral, measures, pointerFields []string
	keyFiles, plainValues            []string
	references                       []string
	alphabet                         *alphabet
}

var tables = sync.OnceValue(func() *rules {
	lines, table := map[string][]string{}, ""
	for line := range strings.Lines(rulesText) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case line == "", line[0] == '#':
		case line[0] == '[':
			table = strings.Trim(line, "[]")
		default:
			lines[table] = append(lines[table], line)
		}
	}
	words := func(table string) []string { return strings.Fields(strings.Join(lines[table], " ")) }
	r := &rules{
		shapes: shapesOf(lines["shapes"]), commands: shapesOf(lines["commands"]), pairs: shapesOf(lines["pairs"]),
		tokens:        tokensOf(lines["tokens"]),
		secretEndings: byLastLetter(words("secret endings")), harmlessEndings: byLastLetter(words("harmless endings")),
		headerEndings: words("header endings"), pointerEndings: words("pointer endings"),
		neutral: words("neutral"), measures: words("measures"), pointerFields: words("pointer fields"),
		keyFiles: words("key files"), plainValues: words("plain values"),
	}
	r.references, _ = quoted(strings.Join(lines["references"], " "))
	r.alphabet = alphabetOf(r)
	return r
})

func traitsOf(text string) traits { return tables().alphabet.traits(text) }

// quoted returns the quoted texts at the beginning of a line, and the rest.
func quoted(line string) (texts []string, rest string) {
	for {
		text, err := strconv.QuotedPrefix(line)
		if err != nil {
			return texts, line
		}
		line = strings.TrimPrefix(line[len(text):], " ")
		text, _ = strconv.Unquote(text)
		texts = append(texts, text)
	}
}

// shape recognizes a secret without its name. Only texts with all marks are matched.
type shape struct {
	pattern pattern.Lazy // nil: the marks suffice
	marks   []string
	pairs   pairSet // of the marks
}

// pairSet has a bit for each hash of two neighboring bytes in a text.
type pairSet [4]uint64

func (s *pairSet) add(text string) {
	for i := 1; i < len(text); i++ {
		h := text[i-1]*31 + text[i]
		s[h/64] |= 1 << (h % 64)
	}
}

func (s *pairSet) has(part *pairSet) bool {
	return part[0]&^s[0]|part[1]&^s[1]|part[2]&^s[2]|part[3]&^s[3] == 0
}

func shapesOf(lines []string) (out []shape) {
	for _, line := range lines {
		s := shape{}
		if s.marks, line = quoted(line); line != "" {
			s.pattern = pattern.New(strings.TrimPrefix(line, ": "))
		}
		for _, mark := range s.marks {
			s.pairs.add(mark)
		}
		out = append(out, s)
	}
	return out
}

// tokenPrefix is the beginning of a service's tokens.
type tokenPrefix struct {
	text         string
	least        int  // number of following letters and digits
	loose, words bool // loose: "-", "_" and "." may follow too; words: names and words begin like this too
}

func tokensOf(lines []string) (out [256][]tokenPrefix) {
	for _, line := range lines {
		kind, texts, _ := strings.Cut(line, ": ")
		least, _, _ := strings.Cut(kind, " ")
		row := tokenPrefix{loose: strings.Contains(kind, "loose"), words: strings.Contains(kind, "words")}
		row.least, _ = strconv.Atoi(least)
		for row.text = range strings.FieldsSeq(texts) {
			out[row.text[0]] = append(out[row.text[0]], row)
		}
	}
	return out
}
