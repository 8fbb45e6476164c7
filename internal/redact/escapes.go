package redact

import (
	"encoding/hex"
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// unescape yields the decoded forms of a text with URL, XML or JSON escapes; in URLs, "+" is read
// as "+" and as a space. It returns false if no further decoding is needed.
func (u *Unpacker) unescape(text string, yield func(encoded) bool) bool {
	decoded := func(plain string, encode func(string) string) bool {
		return u.spend(encoded{end: len(text), plain: plain, edit: reencode(text, plain, encode)}, yield)
	}
	if plain := unescapeURL(text); plain != text {
		spaced := strings.ReplaceAll(text, "+", " ")
		more := decoded(plain, url.PathEscape) && (spaced == text || decoded(unescapeURL(spaced), url.QueryEscape))
		return more && u.spend(encoded{end: len(text), plain: jsonIn(plain)}, yield) && false
	}
	if plain := html.UnescapeString(text); plain != text {
		return decoded(plain, html.EscapeString) && false
	}
	if strings.Contains(text, `\u00`) {
		return u.spend(encoded{end: len(text), plain: jsonEscape().ReplaceAllStringFunc(text, unquotedEnd)}, yield) &&
			false
	}
	return true
}

// jsonEscape matches an unnecessary escape of an ASCII letter, also in JSON in JSON.
var jsonEscape = pattern.New(`\\+u00(?:0[9AaDd]|[2-7][0-9A-Fa-f])`)

func unquotedEnd(escape string) string { return unquoted(escape[len(escape)-len(`\u0041`):]) }

// jsonIn returns a map or list inside a text, such as a parameter of a URL.
func jsonIn(text string) string {
	begin, end := strings.IndexAny(text, "{["), strings.LastIndexAny(text, "}]")+1
	if begin <= 0 || end <= begin {
		return ""
	}
	return text[begin:end]
}

// unescapeURL decodes escapes such as "%7B" and keeps invalid ones.
func unescapeURL(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "%")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		text = after
		if c, err := hex.DecodeString(after[:min(2, len(after))]); err == nil && len(c) == 1 {
			out.Write(c)
			text = after[2:]
		} else {
			out.WriteByte('%')
		}
	}
}

// unquoted decodes the escapes of JSON and of source code.
func unquoted(text string) string {
	var out strings.Builder
	for {
		at := strings.IndexByte(text, '\\')
		if at < 0 {
			return out.String() + text
		}
		out.WriteString(text[:at])
		c, _, rest, err := strconv.UnquoteChar(text[at:], '"')
		if text = text[at+1:]; err == nil {
			out.WriteRune(c)
			text = rest
		}
	}
}
