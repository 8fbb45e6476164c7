package redact

import (
	"regexp"
	"strings"
)

// Pairs of a name and its value that stand apart from each other in text that is neither JSON nor YAML.
var pairs = []*regexp.Regexp{
	regexp.MustCompile(`<name>\s*([^<]*?)\s*</name>\s*<value>\s*([^<]*?)\s*</value>`),
	regexp.MustCompile(`(?:name|key)="([^"]*)"\s+value="([^"]*)"`),
	regexp.MustCompile(`\bname:[ \t]*["']?([^\s"']+)["']?[ \t]*\n[ \t]*value:[ \t]*["']?([^\s"']+)`),
	regexp.MustCompile(`"name"\s*:\s*"([^"]*)"\s*,\s*"value"\s*:\s*"([^"]*)"`),
	regexp.MustCompile(`(?i)define\(\s*['"]([^'"]*)['"]\s*,\s*['"]([^'"]*)['"]`),
}

// scan tells whether a text that is neither JSON nor YAML gives a secret after its name: "name=value", "name: value", <name>value,
// "--name value" and, on a line of its own, "name value".
func scan(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '=', ':', '>':
			if assigns(text, i, false) {
				return true
			}
		}
	}
	for line := range strings.Lines(text) {
		if lineOfTwo(line) || flagInLine(line) {
			return true
		}
	}
	if strings.Contains(text, "value") || strings.Contains(text, "efine") || strings.Contains(text, "DEFINE") {
		for _, pair := range pairs {
			for _, m := range pair.FindAllStringSubmatch(text, -1) {
				if sortOf(m[1]).isSecret(m[2]) {
					return true
				}
			}
		}
	}
	return false
}

// scanComments is scan for the comments of YAML, in which a value is a word with nothing behind it.
func scanComments(text string) bool {
	if !strings.Contains(text, "#") {
		return false
	}
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

// assigns tells whether the separator at i gives a secret to a name. A comment gives it one word.
func assigns(text string, i int, comment bool) bool {
	var name string
	var keyed bool
	if text[i] == '>' {
		name, keyed = elementBefore(text[:i]), true
	} else {
		name, keyed = nameBefore(text[:i])
	}
	s := sortOf(name)
	if s == plainName {
		return false
	}
	v := valueAfter(text, i)
	switch {
	case v.text == "" || !s.isSecret(v.text):
		return false
	case v.quote == 0 && codeValue.MatchString(v.text), v.quote != '\'' && variable.MatchString(v.text):
		return false
	case comment:
		return v.alone
	case text[i] == '=' && strings.HasPrefix(name, "$"):
		return v.quote != 0
	case text[i] == ':' && v.quote == 0 && !v.apart: // "image:tag"
		return keyed && !strings.Contains(name, "/") && !version.MatchString(v.text)
	case text[i] == ':' && !keyed: // in a sentence
		return v.alone && !lowWord.MatchString(v.text)
	}
	return true
}

var version = regexp.MustCompile(`^(?:v?[0-9][0-9.]*\b|latest|[a-z]+$)`)

// nameBefore is the name that text ends with, but for quotes, brackets and spaces. keyed says that no word of a sentence stands before.
func nameBefore(text string) (name string, keyed bool) {
	end := strings.TrimRight(text, " \t")
	if strings.HasSuffix(end, ":") { // :=
		end = strings.TrimRight(end[:len(end)-1], " \t")
	}
	end = strings.TrimRight(end, "\"'`]\\")
	begin := len(end)
	for begin > 0 && isNameByte(end[begin-1]) && len(end)-begin < longestTold {
		begin--
	}
	name = strings.TrimLeft(end[begin:], "-/.")
	before := end[:begin]
	if strings.EqualFold(name, "key") && strings.HasSuffix(before, " ") { // "API key"
		word := before[max(0, len(before)-longestTold) : len(before)-1]
		name = word[strings.LastIndexAny(word, " \t\n\"'")+1:] + "-" + name
	}
	if strings.HasSuffix(before, "$") {
		name = "$" + name
	}
	before = strings.TrimRight(before, "\"'`\\")
	line := strings.TrimRight(before, " \t")
	return name, line == "" || strings.IndexByte("\n{[(,;|&?#>-*!", line[len(line)-1]) >= 0
}

// elementBefore is the name of the XML element whose opening tag text ends with, but for ">".
func elementBefore(text string) string {
	text = text[max(0, len(text)-2*longestTold):]
	open := strings.LastIndexByte(text, '<')
	if open < 0 {
		return ""
	}
	tag := text[open+1:]
	if strings.HasPrefix(tag, "/") || strings.HasPrefix(tag, "!") || strings.HasSuffix(tag, "/") {
		return ""
	}
	name, _, _ := strings.Cut(tag, " ")
	return name
}

// value is what stands behind a separator.
type value struct {
	text  string
	quote byte // before it
	apart bool // space stands before it
	alone bool // the line, or a text in quotes, ends behind it
}

// longestValue is how much of a value is looked at, in bytes: a line may be as long as the text, and have as many names.
const longestValue = 1 << 10

// valueAfter reads the value behind the separator at i.
func valueAfter(text string, i int) (v value) {
	rest := text[i+1 : min(len(text), i+1+longestValue)]
	switch c := text[i]; {
	case c == '=' && i > 0 && strings.IndexByte("=!<>~+", text[i-1]) >= 0, strings.HasPrefix(rest, "="), strings.HasPrefix(rest, "~"):
		return v // a comparison, or := which is read at its "="
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

// quotedValue reads up to the quote that text begins with, or the line's end. Of three quotes the value may begin on the next line.
func quotedValue(text string) value {
	quote := text[0]
	inner := strings.TrimLeft(text, text[:1])
	switch len(text) - len(inner) {
	case 2: // an empty one
		return value{}
	case 3:
		inner = strings.TrimLeft(inner, " \t\r\n")
	}
	end := strings.IndexAny(inner, text[:1]+"\n")
	if end < 0 {
		end = len(inner)
	}
	return value{text: strings.TrimRight(inner[:end], "\\"), quote: quote, alone: endsLine(inner[end:])}
}

// bareValue reads up to a space, or what ends a value without quotes; a scheme stands before a value in a header.
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
	if scheme := authScheme.FindStringSubmatchIndex(line); scheme != nil {
		end = scheme[2] + length(line[scheme[2]:])
	}
	rest := line[end:]
	return value{text: line[:end], alone: endsLine(rest) || rest[0] == '"' || rest[0] == '\''}
}

// endsLine tells whether nothing but punctuation stands before the line's end.
func endsLine(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(line, "\"' \t\r,;.}])") == ""
}

// blockAfter steps over what YAML may have between a colon and a value: a tag, and "|" or ">" and a line's end.
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

// lineOfTwo tells whether a line is the name of a password and the password, as in settings of Redis and Fluentd.
func lineOfTwo(line string) bool {
	line = strings.TrimSpace(line)
	blank := strings.IndexAny(line, " \t")
	if blank < 0 {
		return false
	}
	name, text := line[:blank], line[blank:]
	if sortOf(name) == plainName || !isLower(name[0]) {
		return false
	}
	text = strings.Trim(strings.TrimSpace(text), `"';`)
	explicit := name == "requirepass" || name == "masterauth"
	return (explicit || sortOf(name) == secretName && !lowWord.MatchString(text)) && !strings.ContainsAny(text, " \t=:|(") &&
		!strings.HasPrefix(text, "$") && isLiteral(text)
}

// flagInLine tells whether a flag with a secret is in a line: "--password x".
func flagInLine(line string) bool {
	for {
		_, after, found := strings.Cut(line, "--")
		if !found {
			return false
		}
		line = after
		name, text, has := strings.Cut(after[:min(len(after), longestValue)], " ")
		if has && sortOf(name) != plainName && !strings.ContainsAny(name, "=:\"'") {
			text = strings.TrimLeft(text, " \"'")
			end := strings.IndexAny(text, " \t\r\n\"'")
			if end < 0 {
				end = len(text)
			}
			if text = text[:end]; !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "$") && sortOf(name).isSecret(text) {
				return true
			}
		}
	}
}
