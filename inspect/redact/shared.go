package redact

import (
	"cmp"
	"encoding/base64"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Shared has the secrets of all objects of a file, to find them in other objects.
type Shared struct {
	values     map[string]bool // until Settle
	bytes      int
	index      map[string][]anchored
	Unsearched int // values that are searched in their own object alone
}

// anchored is a secret that has the bytes of its place in the index at at.
type anchored struct {
	text string
	at   int
}

// Limits of the search, in bytes.
const (
	mostShared    = 64 << 20
	longestShared = 8 << 10 // private keys and tokens are shorter
)

// host matches the name or the address of a host, which many objects have.
var host = regexp.MustCompile(`^(?:[a-z]+://)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z-]*(?::[0-9]+)?/?$`)

// NewShared returns a set without secrets.
func NewShared() *Shared {
	return &Shared{values: map[string]bool{}, index: map[string][]anchored{}}
}

// SecretsIn returns the texts that are secrets in an object stored under key, and the credentials
// in them by their names and shapes. It changes content.
func SecretsIn(key []byte, content map[string]any) (secrets []string) {
	in := begun(nil)
	in.note = noter(func(text string) { secrets = append(secrets, strings.Clone(text)) })
	With(key, content, func(part Part, value any) any {
		text, _ := value.(string)
		if data, err := base64.StdEncoding.DecodeString(text); part == Data && err == nil && isText(string(data)) {
			text = string(data)
		}
		in.note(text)
		in.holds(text)
		return ""
	})
	return secrets
}

// Add adds a secret. What may be a word, a host or a certificate is not searched.
func (s *Shared) Add(secret string) {
	if _, has := s.values[secret]; has || secret == "" {
		return
	}
	isPublic := strings.Contains(secret, "-----BEGIN CERTIFICATE") && !strings.Contains(secret, "PRIVATE KEY")
	searched := len(secret) >= knownBegin && len(secret) <= longestShared && !plainWord.MatchString(secret) &&
		isLiteral(secret) && !host.MatchString(secret) && !isPublic && !strings.HasPrefix(secret, "system:")
	if s.bytes += len(secret); s.bytes > mostShared || !searched {
		s.bytes -= len(secret)
		s.Unsearched++
		return
	}
	s.values[secret] = true
}

// Settle ends adding. Names of objects are not searched.
func (s *Shared) Settle(names map[string]bool) {
	for _, secret := range slices.Sorted(maps.Keys(s.values)) {
		if names[secret] || !s.place(secret) {
			s.Unsearched++
		}
	}
	s.values = nil
}

// place puts a secret where few others are: tokens and keys begin and end alike.
func (s *Shared) place(secret string) bool {
	const places = 8
	last := len(secret) - knownBegin
	best := 0
	for i := range places {
		at := last * i / (places - 1)
		if len(s.index[secret[at:at+knownBegin]]) < len(s.index[secret[best:best+knownBegin]]) {
			best = at
		}
	}
	place := secret[best : best+knownBegin]
	if len(s.index[place]) == mostAlike {
		return false
	}
	s.index[place] = append(s.index[place], anchored{secret, best})
	return true
}

// Holds reports whether a text, such as a key, has a secret as it is.
func (s *Shared) Holds(text string) bool { return s.in(text) != "" }

// in returns the first secret in a text, "" for none.
func (s *Shared) in(text string) string {
	for secret := range s.each(text) {
		return secret
	}
	return ""
}

// each yields the secrets in a text.
func (s *Shared) each(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := 0; at+knownBegin <= len(text); at++ {
			for _, a := range s.index[text[at:at+knownBegin]] {
				if at >= a.at && strings.HasPrefix(text[at-a.at:], a.text) && !yield(a.text) {
					return
				}
			}
		}
	}
}

// Replace replaces the secrets of other objects in an object in JSON content, also packed. A text
// that packs one is replaced as a whole.
func (s *Shared) Replace(content map[string]any, with Replace) (changed bool) {
	if len(s.index) == 0 {
		return false
	}
	changed = begun(with).sweep(content, s)
	unwrap(content)
	return changed
}

// without implements searcher. It replaces longer secrets first.
func (s *Shared) without(text string, with Replace) string {
	found := map[string]bool{}
	for secret := range s.each(text) {
		if found[secret] = true; len(found) > mostAlike {
			return text
		}
	}
	longer := func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }
	for _, secret := range slices.SortedFunc(maps.Keys(found), longer) {
		if alias, isText := with(Literal, secret).(string); isText {
			text = strings.ReplaceAll(text, secret, alias)
		}
	}
	return text
}
