package redact

import (
	"encoding/base64"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
)

// Shared redacts the objects of a file. It has the secrets of some, to hide them in all.
type Shared struct {
	values     map[string]bool // until Settle
	bytes      int
	index      map[string][]anchored
	begins     []uint64 // a bit for each hash of a place in the index: most places of a text have none
	Unsearched int      // values that are searched in their own object alone
}

// anchored is a secret that has the bytes of its place in the index at at.
type anchored struct {
	text string
	at   int
}

// Limits of the search, in bytes.
const (
	Thorough      = largest // texts with parts: as long as any that is parsed
	Brief         = 8 << 10 // for many objects: nothing is unpacked
	mostShared    = 64 << 20
	longestShared = 8 << 10 // private keys and tokens are shorter
	eachShared    = 200     // that the index takes for a secret
)

// host matches the name or the address of a host, which many objects have, and the URL of a page.
var host = compiled(
	`^(?:[a-z]+://)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z-]*(?::[0-9]+)?(?:/(?:[a-z.-]*|[\w.-]{1,15}))*$`)

// NewShared returns a set without secrets: what it redacts is a secret by its name or shape.
func NewShared() *Shared {
	return &Shared{values: map[string]bool{}, index: map[string][]anchored{}}
}

// Object redacts, in place, an object in JSON content stored under key, and reports whether it had
// secrets. An object of any kind among credentials is redacted as one of them.
func (s *Shared) Object(key []byte, obj map[string]any) (changed bool) {
	return newWalker(nil).redactObject(key, obj, s)
}

// Value reports whether the raw bytes stored under key must be hidden: objects that Object would
// change, everything stored among credentials, bootstrap keys of k3s, and unreadable values with
// a secret. Values that are encrypted at rest may be shown.
func (s *Shared) Value(key, raw []byte) bool {
	if keys.IsBootstrap(key) || keys.HoldsCredentials(key) && encoding.Detect(raw) != encoding.FormatEncrypted {
		return true
	}
	content, err := native.Decode(raw)
	switch {
	case err == nil:
		return s.Object(key, content)
	case errors.Is(err, encoding.ErrEncrypted):
		return false
	}
	if v, err := encoding.Parse(raw); err == nil && v.GVK.Group == "" && v.GVK.Kind == "Secret" { // it does not decode
		return true
	}
	return s.within(string(raw))
}

// Text returns text, or its redacted length if it holds a secret.
func (s *Shared) Text(text string) string {
	if isRedacted(text) || !s.within(text) {
		return text
	}
	return redacted(len(text))
}

func (s *Shared) within(text string) bool {
	return holdsSecret(text) || len(s.index) > 0 && newWalker(nil).holdsKnown(text, s)
}

// SecretsIn returns the texts that are secrets in an object stored under key, their parts that are
// secrets by themselves, and the credentials in them by their names and shapes. Of a longer text
// than most bytes it returns no parts. It changes content.
func SecretsIn(key []byte, content map[string]any, most int) (secrets []Secret) {
	found, w := map[string]bool{}, newWalker(nil)
	w.most, w.unpacker.left = most, 8*(most-Brief)
	w.note = noter(func(s Secret) { found[strings.Clone(s.Text)] = s.Named || found[s.Text] })
	w.redactOwn(key, content)
	for _, text := range slices.Sorted(maps.Keys(found)) {
		secrets = append(secrets, Secret{text, found[text]})
	}
	return secrets
}

// Add adds a secret. What may be a word, a host, a time or a certificate is not searched; nor are
// names, addresses and sentences in an entry without the name of a secret.
func (s *Shared) Add(found Secret) {
	secret := found.Text
	if _, has := s.values[secret]; has || secret == "" {
		return
	}
	isPublic := isCertificate(secret)
	if data, err := base64.StdEncoding.DecodeString(secret); err == nil {
		isPublic = isPublic || isCertificate(string(data))
	}
	searched := len(secret) <= longestShared && found.mayBeSecret() && (found.Named || isPart(secret)) &&
		!host().MatchString(secret) && !isPublic && !strings.HasPrefix(secret, "system:")
	if inParts := !found.Named && !isPublic && strings.ContainsAny(secret, " \t\n"); inParts && !searched {
		return
	}
	if !searched || s.bytes+len(secret)+eachShared > mostShared {
		s.Unsearched++
		return
	}
	s.bytes += len(secret) + eachShared
	s.values[secret] = true
}

func isCertificate(text string) bool {
	return strings.Contains(text, "-----BEGIN CERTIFICATE") && !strings.Contains(text, "PRIVATE KEY")
}

// Has reports whether a text was added, before Settle.
func (s *Shared) Has(text []byte) bool { return len(text) >= knownBegin && s.values[string(text)] }

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
	if s.begins == nil {
		s.begins = make([]uint64, 1<<(hashBits-6))
	}
	h := hash(wordAt(place))
	s.begins[h/64] |= 1 << (h % 64)
	return true
}

// hashBits is the length of a hash of knownBegin bytes.
const hashBits = 20

func hash(word uint64) uint64 { return word * 0x9e3779b97f4a7c15 >> (64 - hashBits) }

func wordAt(text string) (word uint64) {
	for i := range knownBegin {
		word |= uint64(text[i]) << (8 * i)
	}
	return word
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
		if s.begins == nil || len(text) < knownBegin {
			return
		}
		word := wordAt(text) << 8
		for at := 0; at+knownBegin <= len(text); at++ {
			word = word>>8 | uint64(text[at+knownBegin-1])<<56
			if h := hash(word); s.begins[h/64]&(1<<(h%64)) == 0 {
				continue
			}
			for _, a := range s.index[text[at:at+knownBegin]] {
				if begin := at - a.at; begin >= 0 && strings.HasPrefix(text[begin:], a.text) &&
					!yield(begin, begin+len(a.text)) {
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
	changed = newWalker(with).redactKnown(content, s)
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
