package redact

import (
	"strings"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// parts calls yield with the parts of a secret value that are secrets by themselves: leaves of JSON
// and YAML, values after "=" in lines, words of lines. levels bounds nested texts.
func parts(value any, levels int, yield func(part string)) {
	switch v := value.(type) {
	case map[string]any, []any:
		Children(v, func(_ string, child any) any {
			parts(child, levels, yield)
			return child
		})
	case string:
		if levels == 0 || len(v) > largest {
			return
		}
		if mayParse(v) {
			if documents, err := parse(v); err == nil {
				parts(documents, levels-1, yield)
				v = comments(v)
			}
		}
		partsOfLines(v, func(part string) {
			if isPart(part) {
				yield(part)
			}
		})
	}
}

func comments(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		_, comment, _ := strings.Cut(line, "#")
		out.WriteString(comment + "\n")
	}
	return out.String()
}

// partsOfLines yields the value after "=" and the words of each line outside PEM: certificates are
// public, and private keys are secrets as a whole.
func partsOfLines(text string, yield func(part string)) {
	pem := false
	for line := range strings.Lines(text) {
		if begins := strings.Contains(line, "-----BEGIN "); pem || begins {
			pem = !strings.Contains(line, "-----END ")
			continue
		}
		if _, value, has := strings.Cut(line, "="); has {
			yield(strings.Trim(value, partEnds))
		}
		whole := strings.Trim(line, partEnds)
		if yield(whole); !strings.ContainsAny(whole, partSeparators) {
			continue
		}
		for _, word := range strings.FieldsFunc(line,
			func(r rune) bool { return strings.ContainsRune(partSeparators, r) }) {
			yield(word)
		}
	}
}

const (
	partEnds       = " \t\r\n\"'`;,"
	partSeparators = separators + "<>()[]{}|&"
)

// isPart reports whether a part of a secret is a secret by itself: no word, name, address or time.
// Several words are several parts.
func isPart(text string) bool {
	return len(text) >= knownBegin && !strings.ContainsAny(text, " \t\n") && !plainWord().MatchString(text) &&
		isLiteral(text) &&
		(len(text) > longestPublic || !isHost(text) && !publicPart().MatchString(text))
}

// longestPublic bounds names, addresses and times, in bytes.
const longestPublic = 300

// publicPart matches URLs of pages and databases, and the forms named below
var publicPart = pattern.New(`^(?:(?:[a-z]{2,15}:)?[a-z][a-z0-9+.-]*://[^@/?#]*(?:/(?:[a-z._-]*|[\w.*:-]{1,15}))*` +
	`|` + timeText + `|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}` +
	`|arn:[\w:/.*-]+|v?[0-9]+(?:\.[0-9]+)+(?:[+-][\w.]+)?` + // a resource, a version
	`|[a-z]{2,15}[0-9]{0,2}[a-z]{0,3}[0-9]{0,2}(?:_[a-z]{2,15}[0-9]{0,2})+` + // the name of a program
	`|[0-9.]+[:/][0-9]+|(?:[0-9a-f]{0,4}:){2,7}[0-9a-f.]*(?:/[0-9]+)?` + // an address
	`|[a-z0-9.:-]+(?:/[a-z0-9._+-]+)+(?::[\w.-]+)?(?:@sha256:[0-9a-f]+)?` + // an image, a path, a type of media
	`|[a-z][a-z0-9-]{1,30}:v?[0-9]{1,4}(?:\.[0-9]{1,4})*(?:-[a-z0-9.]{1,12})*` + // an image
	// a mail address, a class, a template
	`|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:[a-z][a-z0-9_]{0,15}\.){2,}\w{1,40}|(?:\.\w{1,40})+` +
	`|(?:[a-z]{2,15}[0-9]{0,2}|v?[0-9]{1,3})(?:[._-](?:[a-z]{2,15}[0-9]{0,2}|v?[0-9]{1,3}))*` + // a name
	`|\W*` + camelCase + `(?:\W+` + camelCase + `|_+` + camelCase + `|-[0-9]{1,3})*\W*)$`)

const timeText = `[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?`

var timeOf = pattern.New(`^` + timeText + `$`)

// camelCase matches words without digits.
const camelCase = `(?:[A-Z]{1,15}|[A-Z]?[a-z]{2,15}(?:[A-Z][a-z]{2,15})*)`
