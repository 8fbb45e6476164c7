package redact

import (
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

// SecretsIn returns the texts that are secrets in an object stored under key, their parts that are
// secrets by themselves, and the credentials in them by their names and shapes. It changes content.
func SecretsIn(key []byte, content map[string]any) []string {
	found, w := map[string]bool{}, begun(nil)
	w.most = largest
	w.note = noter(func(text string) { found[strings.Clone(text)] = true })
	w.first(key, content)
	return slices.Sorted(maps.Keys(found))
}

// Add adds a secret. What may be a word, a host or a certificate is not searched.
func (s *Shared) Add(secret string) {
	if _, has := s.values[secret]; has || secret == "" {
		return
	}
	isPublic := isCertificate(secret)
	if data, err := base64.StdEncoding.DecodeString(secret); err == nil {
		isPublic = isPublic || isCertificate(string(data))
	}
	searched := len(secret) >= knownBegin && len(secret) <= longestShared && !plainWord.MatchString(secret) &&
		isLiteral(secret) && !host.MatchString(secret) && !isPublic && !strings.HasPrefix(secret, "system:")
	if s.bytes += len(secret); s.bytes > mostShared || !searched {
		s.bytes -= len(secret)
		s.Unsearched++
		return
	}
	s.values[secret] = true
}

func isCertificate(text string) bool {
	return strings.Contains(text, "-----BEGIN CERTIFICATE") && !strings.Contains(text, "PRIVATE KEY")
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
	for begin, end := range s.each(text) {
		return text[begin:end]
	}
	return ""
}

// each yields where the secrets in a text begin and end.
func (s *Shared) each(text string) iter.Seq2[int, int] {
	return func(yield func(begin, end int) bool) {
		for at := 0; at+knownBegin <= len(text); at++ {
			for _, a := range s.index[text[at:at+knownBegin]] {
				if begin := at - a.at; begin >= 0 && strings.HasPrefix(text[begin:], a.text) && !yield(begin, begin+len(a.text)) {
					return
				}
			}
		}
	}
}

// Split yields a text in parts: its secrets of so many bytes at most, and what is between them.
// Secrets that overlap are one.
func (s *Shared) Split(text string, most int) iter.Seq2[string, bool] {
	return func(yield func(part string, secret bool) bool) {
		ends := map[int]int{} // of the longest one that begins there
		for begin, end := range s.each(text) {
			if end-begin <= most {
				ends[begin] = max(ends[begin], end)
			}
		}
		begins, at := slices.Sorted(maps.Keys(ends)), 0
		for i := 0; i < len(begins); {
			begin, end := begins[i], ends[begins[i]]
			for i++; i < len(begins) && begins[i] < end; i++ {
				end = max(end, ends[begins[i]])
			}
			if at < begin && !yield(text[at:begin], false) || !yield(text[begin:end], true) {
				return
			}
			at = end
		}
		if at < len(text) {
			yield(text[at:], false)
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

// without implements searcher.
func (s *Shared) without(text string, with Replace) string {
	var out strings.Builder
	for part, secret := range s.Split(text, len(text)) {
		if secret {
			part, _ = with(Literal, part).(string)
		}
		out.WriteString(part)
	}
	return out.String()
}
