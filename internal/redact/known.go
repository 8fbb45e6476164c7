package redact

import (
	"cmp"
	"strings"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// known holds the secrets of an object by their first bytes. A secret found in one place of an
// object is hidden in all places.
type known map[string][]string

const (
	knownBegin = 8  // bytes: shorter secrets may be words
	mostAlike  = 64 // secrets with the same beginning
)

// Secret is a secret text of an object.
type Secret struct {
	Text  string
	Named bool // found by its name or shape; otherwise an entry of a Secret, perhaps a user name or a time
}

// mayBeSecret reports whether to search a text in other places. Common words are not searched.
func (s Secret) mayBeSecret() bool {
	words := plainWord
	if s.Named {
		words = letters
	}
	return len(s.Text) >= knownBegin && !words().MatchString(s.Text) && !timeOf().MatchString(s.Text) &&
		isLiteral(s.Text)
}

// letters matches words and numbers. They may be words even in a password field.
var letters = pattern.New(`^(?:[a-z.-]{1,15}|[A-Za-z]{1,15}|[0-9.]*)$`)

// plainWord matches possible names and words.
var plainWord = pattern.New(`^(?:[a-z0-9.-]{1,15}|[A-Za-z]{1,15}|[0-9.]*)$`)

// add adds a secret. More than mostAlike secrets with the same beginning are replaced by the
// beginning.
func (k known) add(s Secret) {
	if !s.mayBeSecret() {
		return
	}
	begin := s.Text[:knownBegin]
	if k[begin] = append(k[begin], s.Text); len(k[begin]) > mostAlike {
		k[begin] = []string{begin}
	}
}

// mostNoted bounds the bytes of secrets of one object to search for credentials.
const mostNoted = 8 << 20

// noter returns a note function for a walker. It adds each secret, its decoded base64, the password
// of a URL in it, and a password after a user name.
func noter(note func(Secret)) func(value any, named bool) {
	left := mostNoted
	return func(value any, named bool) {
		add := func(text string) { note(Secret{text, named}) }
		text, _ := value.(string)
		add(strings.TrimSpace(text))
		if plain := unquoted(text); plain != text { // of source code, or of truncated JSON
			add(strings.TrimSpace(plain))
		}
		if left -= len(text); left < 0 {
			return
		}
		if data, is := fromBase64(text); is && isText(data) {
			text = data
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
	urlPassword  = pattern.New(`://[^\s/:@]*:([^\s/@]+)@`)
	userPassword = pattern.New(`^[\w.@+-]+:([^\s/]\S*)$`)
)

// in returns the first secret in a text, "" for none.
func (k known) in(text string) string {
	for at := 0; len(k) > 0 && at+knownBegin <= len(text); at++ {
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
	in(text string) string // the first secret, "" for none
	// without returns text with only its secrets replaced, or text unchanged if the whole text must
	// be replaced.
	without(text string, with Replace) string
	binary() bool // a secret has other bytes than ASCII
}

// both holds the secrets of an object and shared secrets. A text with one is hidden as a whole.
type both struct {
	own known
	*Shared
}

func (b both) in(text string) string { return cmp.Or(b.own.in(text), b.Shared.in(text)) }

// binary implements searcher. The own secrets are few, and not looked at.
func (b both) binary() bool { return len(b.own) > 0 || b.Shared.binary() }

// without implements searcher. Texts are always replaced as a whole.
func (b both) without(text string, _ Replace) string { return text }

// redactKnown hides the texts of an object with a known secret, plain or packed. Names stay.
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

// redactedKnown returns the hidden form of a text with a secret or of a map with secrets in its
// keys, nil for other values.
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
			return !isFieldName(key) && w.holdsKnown(key, k)
		})
	}
	return nil
}

// isFieldName reports whether a key is the name of a field, also in managedFields.
func isFieldName(key string) bool {
	for _, c := range []byte(strings.TrimPrefix(key, "f:")) {
		if !isLower(c | 0x20) {
			return false
		}
	}
	return true
}

// holdsKnown reports whether a text contains a secret of k, plain, quoted, encoded or packed.
func (w walker) holdsKnown(text string, k searcher) bool {
	return w.clean.holds(w.unpacker, text, nil, func(text string) bool { return searchKnown(w, text, k) })
}

func searchKnown(w walker, text string, k searcher) bool {
	of := w.inner()
	of.binary, of.find = k.binary(), finder(k)
	return of.find(text) || of.holdsPacked(text, traitsOf(text))
}

// finder returns a function that reports whether a text contains a secret of k, plain or quoted.
func finder(k searcher) func(text string) bool {
	return func(plain string) bool {
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
}

// others looks for shared secrets while an object is searched for its own: if none is met, and the
// object has no secrets of its own, redactKnown would find nothing. It may meet more: texts that
// redactKnown shows.
type others struct {
	*Shared
	met *bool
}

func (o *others) meet() {
	if o != nil {
		*o.met = true
	}
}

func (o *others) lookAt(text string) {
	if o != nil && !*o.met {
		*o.met = finder(o.Shared)(text)
	}
}

// lookAtPacked looks at an encoded part of a text that is too short for a secret of the object.
func (o *others) lookAtPacked(w walker, part encoded) {
	if !*o.met {
		w.find, w.others = finder(o.Shared), nil
		*o.met = part.err == ErrPacked || len(part.plain) >= shortest && w.holds(part.plain)
	}
}

func (o *others) lookAtKey(w walker, key string) {
	if w.note = nil; o != nil && !*o.met && !isFieldName(key) && w.holds(key) {
		*o.met = true
	}
}
