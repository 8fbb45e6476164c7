package redact

import (
	"iter"
	"strings"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// scan yields named secrets in a text other than JSON and YAML: "name=value", "name: value",
// <name>value, "--name value" or, on a separate line, "name value".
func scan(text string) iter.Seq[string] {
	return func(yield func(secret string) bool) {
		for i := range len(text) {
			if strings.IndexByte("=:>", text[i]) >= 0 && assigns(text, i, false) && !yield(valueAfter(text, i).text) {
				return
			}
		}
		for line := range strings.Lines(text) {
			fields := strings.Fields(line)
			if endsInPair(fields) && !yield(strings.Trim(fields[len(fields)-1], `"';`)) {
				return
			}
			if secret := flagSecret(fields); secret != "" && !yield(secret) {
				return
			}
		}
		for _, pair := range tables().pairs {
			if !pair.fits(text) {
				continue
			}
			for _, m := range pair.pattern().FindAllStringSubmatch(text, -1) {
				if classify(m[1]).isSecret(m[2]) && !variable().MatchString(m[2]) && !yield(m[2]) {
					return
				}
			}
		}
	}
}

// scanComments scans the comments of YAML. The value must be the last word of a comment.
func scanComments(text string) bool {
	for line := range strings.Lines(text) {
		_, comment, _ := strings.Cut(line, "#")
		for i := 0; i < len(comment); i++ {
			if (comment[i] == '=' || comment[i] == ':') && assigns(comment, i, true) {
				return true
			}
		}
	}
	return false
}

// assigns reports whether the separator at i stands between the name of a secret and the secret.
func assigns(text string, i int, comment bool) bool {
	before := nameBefore
	if text[i] == '>' {
		before = elementBefore
	}
	name, keyed := before(text[:i])
	s := classify(name)
	if s == plainName {
		return false
	}
	v := valueAfter(text, i)
	switch {
	case v.text == "" || !s.isSecret(v.text):
		return false
	case v.quote == 0 && (codeValue().MatchString(v.text) || strings.HasPrefix(v.text, name+")")),
		v.quote != '\'' && variable().MatchString(v.text):
		return false
	case comment:
		return v.alone
	case text[i] == '=' && strings.HasPrefix(name, "$"):
		return v.quote != 0
	case text[i] == ':' && v.quote == 0 && !v.apart: // "image:tag"
		return keyed && !strings.Contains(name, "/") && !version().MatchString(v.text)
	case text[i] == ':' && !keyed: // in a sentence
		return v.alone && !lowWord().MatchString(v.text)
	}
	return true
}

var version = pattern.New(`^(?:v?[0-9][0-9.]*\b|latest|[a-z]+$)`)

// nameBefore returns the name at the end of text, without quotes, brackets and spaces. keyed is
// false if a word of a sentence precedes the name.
func nameBefore(text string) (name string, keyed bool) {
	end := strings.TrimRight(text, " \t")
	if strings.HasSuffix(end, ":") { // :=
		end = strings.TrimRight(end[:len(end)-1], " \t")
	}
	end = strings.TrimRight(end, "\"'`]\\")
	begin := len(end)
	for begin > 0 && isNameByte(end[begin-1]) && len(end)-begin < longestChecked {
		begin--
	}
	name = strings.TrimLeft(end[begin:], "-/.")
	before := end[:begin]
	if strings.EqualFold(name, "key") && strings.HasSuffix(before, " ") { // "API key"
		word := before[max(0, len(before)-longestChecked) : len(before)-1]
		name = word[strings.LastIndexAny(word, " \t\n\"'")+1:] + "-" + name
	}
	if strings.HasSuffix(before, "$") {
		name = "$" + name
	}
	before = strings.TrimRight(before, "\"'`\\")
	line := strings.TrimRight(before, " \t")
	return name, line == "" || strings.IndexByte("\n{[(,;|&?#>-*!", line[len(line)-1]) >= 0
}

// elementBefore returns the name of the XML element whose opening tag ends after text.
func elementBefore(text string) (name string, keyed bool) {
	text = text[max(0, len(text)-2*longestChecked):]
	open := strings.LastIndexByte(text, '<')
	tag := text[open+1:]
	if open < 0 || strings.HasPrefix(tag, "/") || strings.HasPrefix(tag, "!") || strings.HasSuffix(tag, "/") {
		return "", true
	}
	name, _, _ = strings.Cut(tag, " ")
	return name, true
}

// value is the text after a separator.
type value struct {
	text  string
	quote byte // opening quote, 0 for none
	apart bool // a space precedes it
	alone bool // the value ends its line or a quoted text
}

// longestValue bounds the checked part of a value, in bytes: one long line may have many names.
const longestValue = 1 << 10

func valueAfter(text string, i int) (v value) {
	rest := text[i+1 : min(len(text), i+1+longestValue)]
	switch c := text[i]; {
	case c == '=' && i > 0 && strings.IndexByte("=!<>~+", text[i-1]) >= 0, strings.HasPrefix(rest, "="),
		strings.HasPrefix(rest, "~"):
		return v // a comparison, or :=, which is handled at its "="
	case c == ':' && strings.HasPrefix(rest, "//"):
		return v
	case c == '=' && strings.HasPrefix(rest, ">"), c == ':' && strings.HasPrefix(rest, ":"):
		rest = rest[1:]
	}
	rest = strings.TrimPrefix(rest, "<![CDATA[")
	trimmed := strings.TrimLeft(rest, " \t")
	apart := len(trimmed) < len(rest) || strings.HasPrefix(trimmed, "\n")
	rest = strings.TrimLeft(trimmed, "\\")
	if text[i] == ':' {
		rest = blockAfter(rest)
	}
	if rest != "" && strings.IndexByte("\"'`", rest[0]) >= 0 {
		v = quotedValue(rest)
	} else {
		v = bareValue(rest)
	}
	v.apart = apart
	return v
}

// quotedValue reads up to the closing quote or the end of the line. After three quotes the value
// may begin on the next line.
func quotedValue(text string) value {
	inner := strings.TrimLeft(text, text[:1])
	switch len(text) - len(inner) {
	case 2: // an empty value
		return value{}
	case 3:
		inner = strings.TrimLeft(inner, " \t\r\n")
	}
	end := strings.IndexAny(inner+"\n", text[:1]+"\n")
	return value{text: strings.TrimRight(inner[:end], "\\"), quote: text[0], alone: endsLine(inner[end:])}
}

// bareValue reads a value without quotes; in a header, without the scheme before it.
func bareValue(text string) value {
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimRight(line, " \t\r")
	if strings.HasPrefix(line, "<") && !strings.HasPrefix(line, "<<") { // <placeholder>, <element>
		return value{}
	}
	if strings.HasPrefix(line, "{{") || strings.HasPrefix(line, "ssh-") {
		return value{text: line}
	}
	length := func(s string) int {
		if end := strings.IndexAny(s, " \t;&<\"',}"); end >= 0 && !strings.HasPrefix(s, "<<") {
			return end
		}
		return len(s)
	}
	end := length(line)
	if scheme := authScheme().FindStringSubmatchIndex(line); scheme != nil {
		end = scheme[2] + length(line[scheme[2]:])
	}
	rest := line[end:]
	return value{text: line[:end], alone: endsLine(rest) || rest[0] == '"' || rest[0] == '\''}
}

func endsLine(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, "\"' \t\r,;.}])") == ""
}

// blockAfter skips the text between a colon and a value in YAML: a tag, or the head of a block.
func blockAfter(rest string) string {
	if strings.HasPrefix(rest, "!!") {
		_, rest, _ = strings.Cut(rest, " ")
	}
	if rest != "" && (rest[0] == '|' || rest[0] == '>') {
		head, block, _ := strings.Cut(rest, "\n")
		if len(strings.TrimSpace(head)) <= 3 {
			return strings.TrimLeft(block, " \t\r\n")
		}
	}
	return rest
}

// endsInPair reports whether a line ends with the name of a secret and the secret, as in settings
// of Redis, Apache and Fluent Bit. In a longer line, perhaps a sentence, the secret has a digit.
func endsInPair(fields []string) bool {
	if len(fields) < 2 {
		return false
	}
	name, text := strings.TrimLeft(fields[len(fields)-2], "$"), strings.Trim(fields[len(fields)-1], `"';`)
	s := classify(name)
	if s == plainName || strings.ContainsFunc(name, func(r rune) bool { return r > 'z' || !isNameByte(byte(r)) }) {
		return false
	}
	compound := strings.Count(words(name), "-") > 1 // two words or more
	hasDigit := len(text) >= shortest && strings.ContainsAny(text, "0123456789")
	switch {
	case strings.HasPrefix(text, "$"), strings.HasPrefix(text, "="),
		strings.ContainsAny(strings.TrimRight(text, "="), "=:|(,"):
		return false
	case name == "requirepass", name == "masterauth":
		return s.isSecret(text)
	case s == secretName && len(fields) == 2 && !lowWord().MatchString(text),
		hasDigit && (s == secretName || len(fields) == 2):
		return (compound || isLower(name[0])) && s.isSecret(text)
	}
	return hasDigit && compound && s.isSecret(text)
}

// flagSecret returns the secret after a flag in a line: "--password x"; "" for none.
func flagSecret(fields []string) string {
	for i := 1; i < len(fields); i++ {
		flag, text := strings.TrimLeft(fields[i-1], "[({`\"'"), strings.Trim(fields[i], `"'`)
		if strings.HasPrefix(flag, "-") && !strings.ContainsAny(flag, "=:\"'") && !strings.HasPrefix(text, "-") &&
			!strings.HasPrefix(text, "$") && classify(flag).isSecret(text) {
			return text
		}
	}
	return ""
}
