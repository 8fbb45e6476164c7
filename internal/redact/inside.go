package redact

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// inside returns a text without the secrets that holds finds. The walker of edits parsed content.
func inside(w walker, text string, of walker) string {
	if of.texts <= deepest && len(text) <= largest && mayParse(text) {
		if out, ok := insideJSON(of, text); ok {
			return out
		}
		if out, ok := insideYAML(of, text); ok {
			return out
		}
		if _, err := parse(text); err == nil { // a line alone does not show the value of an alias
			return w.literal(text)
		}
	}
	if of.texts <= deepest {
		if out, ok := insidePacked(of, text); ok {
			return out
		}
	}
	if out, ok := insideLines(w, text); ok {
		return out
	}
	return w.literal(text)
}

func (w walker) literal(text string) string {
	out, _ := w.with(Literal, text).(string)
	return out
}

func insideJSON(w walker, text string) (string, bool) {
	changed := false
	out, err := EditJSON(text, func(content any) any {
		changed = w.walk(content, "") || changed
		unwrap(content)
		return content
	})
	return out, err == nil && changed && !across(text, out)
}

// insidePacked edits a text encoded as a whole, or a data URL.
func insidePacked(w walker, text string) (string, bool) {
	head := text[:strings.Index(text, ";base64,")+1]
	if head != "" && strings.HasPrefix(text, "data:") {
		head += "base64,"
	} else {
		head = ""
	}
	left := false
	out, is, err := w.unpacker.Repack(text[len(head):], func(plain string) string {
		if !w.holds(plain) {
			return plain
		}
		if isText(plain) {
			return inside(w, plain, w.inner())
		}
		out, is := insidePacked(w.inner(), plain)
		left = left || !is
		return out
	})
	return head + out, is && err == nil && !left
}

// across reports whether the edited text still has a secret across several values.
func across(text, edited string) bool {
	left := func(s shape) bool {
		// the Secret of a manifest was edited
		if s.pattern == nil || len(s.marks) > 0 && s.marks[0] == "kind" || !s.fits(edited) {
			return false
		}
		return strings.Contains(text, s.pattern().FindString(edited))
	}
	return slices.ContainsFunc(tables().shapes, left) || slices.ContainsFunc(tables().commands, left)
}

// insideLines replaces the words of lines with a secret, except the first word. It fails if a
// secret may continue on the next line.
func insideLines(w walker, text string) (string, bool) {
	if slices.ContainsFunc(tables().shapes, func(s shape) bool { return s.pattern == nil && s.fits(text) }) ||
		packsLines(w, text) {
		return "", false
	}
	var out, rest strings.Builder
	changed := false
	for line := range strings.Lines(text) {
		if !w.holds(line) {
			out.WriteString(line)
			rest.WriteString(line)
			continue
		}
		if strings.Count(line, `"`)%2+strings.Count(line, "'")%2+strings.Count(line, "`")%2 > 0 ||
			strings.HasSuffix(strings.TrimSpace(line), `\`) {
			return "", false
		}
		changed = true
		out.WriteString(insideLine(w, line))
		rest.WriteString("\n")
	}
	return out.String(), changed && !w.holds(rest.String())
}

// packsLines reports whether base64 with a secret spans several lines.
func packsLines(w walker, text string) bool {
	return !w.unpacker.decodeRuns(text, leastNamed, false, func(f encoded) bool {
		return f.err == nil && !(strings.ContainsAny(text[f.begin:f.end], "\n\\") && w.inner().holds(f.plain))
	})
}

// insideLine keeps the name at the beginning of a line.
func insideLine(w walker, line string) string {
	begin := strings.IndexFunc(line, func(r rune) bool { return r < utf8.RuneSelf && isWordByte(byte(r)) })
	end := 0
	if begin >= 0 {
		end = begin + len(line[begin:]) - len(strings.TrimLeftFunc(line[begin:],
			func(r rune) bool { return r < utf8.RuneSelf && isNameByte(byte(r)) }))
	}
	if end == len(line) || w.holds(line[:end]) || !strings.ContainsAny(line[end:end+1], "=: ") {
		end = 0
	}
	var out strings.Builder
	out.WriteString(line[:end])
	for _, word := range wordsOf(line[end:]) {
		if strings.Trim(word, separators) != "" {
			word = w.literal(word)
		}
		out.WriteString(word)
	}
	return out.String()
}

// separators stand between the words of a line.
const separators = " \t\r\n\"'`;,="

func wordsOf(text string) (words []string) {
	begin := 0
	for i := range len(text) {
		if strings.IndexByte(separators, text[i]) >= 0 {
			words = append(words, text[begin:i], text[i:i+1])
			begin = i + 1
		}
	}
	return append(words, text[begin:])
}
