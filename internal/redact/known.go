package redact

import (
	"cmp"
	"encoding/base64"
	"strings"
)

// known has the secrets of an object by their first bytes: what is hidden in one place of it is
// hidden in all.
type known map[string][]string

const (
	knownBegin = 8  // bytes: shorter secrets may be words
	mostAlike  = 64 // with the same begin
)

// Secret is a text that is a secret in an object.
type Secret struct {
	Text  string
	Named bool // by its name or its shape; others stand in a Secret, as do user names and times
}

// mayBeSecret reports whether a text may be searched in other places, where words would be found.
func (s Secret) mayBeSecret() bool {
	words := plainWord
	if s.Named {
		words = letters
	}
	return len(s.Text) >= knownBegin && !words().MatchString(s.Text) && !timeOf().MatchString(s.Text) &&
		isLiteral(s.Text)
}

// letters match words and numbers: what may be a word even where its name is that of a password.
var letters = compiled(`^(?:[a-z.-]{1,15}|[A-Za-z]{1,15}|[0-9.]*)$`)

// plainWord matches what may be a name or a word.
var plainWord = compiled(`^(?:[a-z0-9.-]{1,15}|[A-Za-z]{1,15}|[0-9.]*)$`)

// add adds a secret. Of too many that begin alike, the begin is one.
func (k known) add(s Secret) {
	if !s.mayBeSecret() {
		return
	}
	begin := s.Text[:knownBegin]
	if k[begin] = append(k[begin], s.Text); len(k[begin]) > mostAlike {
		k[begin] = []string{begin}
	}
}

// mostNoted bounds secrets that are searched for credentials in them, in bytes of one object.
const mostNoted = 8 << 20

// noter returns a note for a walker. It adds each secret, what it is in base64, the password of a
// URL in it, and one behind the name of a user.
func noter(note func(Secret)) func(value any, named bool) {
	left := mostNoted
	return func(value any, named bool) {
		add := func(text string) { note(Secret{text, named}) }
		text, _ := value.(string)
		add(strings.TrimSpace(text))
		if plain := unquoted(text); plain != text { // of code, or of JSON that is cut off
			add(strings.TrimSpace(plain))
		}
		if left -= len(text); left < 0 {
			return
		}
		if data, err := base64.StdEncoding.DecodeString(text); err == nil && isText(string(data)) {
			text = string(data)
			add(strings.TrimSpace(text))
		}
		if !strings.Contains(text, ":") {
			return
		}
		if of := userPassword().FindStringSubmatch(strings.TrimSpace(text)); of != nil {
			add(of[1])
		}
		for _, of := range urlPassword().FindAllStringSubmatch(text, -1) {
			note(Secret{of[1], true})
			note(Secret{unescapeURL(of[1]), true})
		}
	}
}

var (
	urlPassword  = compiled(`://[^\s/:@]*:([^\s/@]+)@`)
	userPassword = compiled(`^[\w.@+-]+:([^\s/]\S*)$`)
)

// in returns the first secret in a text, "" for none.
func (k known) in(text string) string {
	for at := 0; at+knownBegin <= len(text); at++ {
		for _, secret := range k[text[at:at+knownBegin]] {
			if strings.HasPrefix(text[at:], secret) {
				return secret
			}
		}
	}
	return ""
}

// searcher finds known secrets in a text.
type searcher interface {
	in(text string) string // the first one, "" for none
	// without returns the text with replacements for its secrets alone, or as it is if the whole
	// text is to be replaced.
	without(text string, with Replace) string
}

// both are the secrets of an object and shared ones. A text with one is hidden as a whole.
type both struct {
	own known
	*Shared
}

func (b both) in(text string) string { return cmp.Or(b.own.in(text), b.Shared.in(text)) }

// without implements searcher: nothing is known of the rest of a text.
func (b both) without(text string, _ Replace) string { return text }

// redactKnown hides the texts of an object that have a known secret, also packed. Names stay.
func (w walker) redactKnown(value any, k searcher) (changed bool) {
	Children(value, func(field string, child any) any {
		switch field {
		case "apiVersion", "kind", "name", "namespace", "uid", "key":
			if _, isText := child.(string); isText {
				return child
			}
		}
		shown := w.redactedKnown(child, k)
		if shown == nil {
			changed = w.redactKnown(child, k) || changed
			return child
		}
		changed = true
		return shown
	})
	return changed
}

// redactedKnown returns the hidden form of a text with a secret, or of a map with one in its names,
// nil for others.
func (w walker) redactedKnown(value any, k searcher) any {
	switch v := value.(type) {
	case string:
		if !isRedacted(v) && w.holdsKnown(v, k) {
			if out := k.without(v, w.with); out != v && !w.holdsKnown(out, k) {
				return replaced{out}
			}
			return w.hidden(Literal, v)
		}
	case map[string]any:
		walk := func(w walker, value any) bool { return w.redactKnown(value, k) }
		return w.hiddenKeys(v, walk, func(key string, _ bool) bool {
			return !fieldName().MatchString(key) &&
				w.holdsKnown(key, k)
		})
	}
	return nil
}

var fieldName = compiled(`^(?:f:)?[A-Za-z]*$`)

// holdsKnown reports whether a text has a secret, as it is or packed.
func (w walker) holdsKnown(text string, k searcher) bool {
	of := w.inner()
	of.find = func(plain string) bool {
		for range deepest {
			if k.in(plain) != "" {
				return true
			}
			if !strings.Contains(plain, `\`) {
				break
			}
			plain = unquoted(plain)
		}
		return false
	}
	return of.find(text) || of.holdsPacked(text)
}
