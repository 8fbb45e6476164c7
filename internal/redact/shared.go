package redact

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/keys"
)

// Shared redacts the objects of a file. Secrets of some objects are hidden in all objects.
type Shared struct {
	values     map[string]bool // nil after Settle
	bytes      int
	index      map[string][]anchored
	isBinary   bool     // a secret in the index has other bytes than ASCII
	begins     []uint64 // a bit for each hash in the index: most offsets of a text have none
	Unsearched int      // number of values searched only in their own object

	fields           *fieldNames
	names            names
	shapeless, clean clean // after Settle: texts without a secret of their own, or of the index
}

// anchored is a secret with the bytes of its index key at offset at.
type anchored struct {
	text string
	at   int
}

// Limits of the search, in bytes.
const (
	Thorough      = largest // long texts too, with their parts: as long as a parsed text may be
	Brief         = 8 << 10 // for many objects: nothing is unpacked
	mostShared    = 64 << 20
	longestShared = 8 << 10 // private keys and tokens are shorter
	eachShared    = 200     // memory of the index for each secret
)

// host matches the name or address of a host, or the URL of a page: many objects have them.
var host = pattern.New(
	`^(?:[a-z]+://)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z][a-z-]*(?::[0-9]+)?(?:/(?:[a-z.-]*|[\w.-]{1,15}))*$`)

func isHost(text string) bool { return strings.Contains(text, ".") && host().MatchString(text) }

// NewShared returns an empty set: only secrets found by name or shape are redacted.
func NewShared() *Shared {
	return &Shared{values: map[string]bool{}, index: map[string][]anchored{}, names: classes()}
}

// Object redacts, in place, the JSON content of an object stored under key, and reports whether the
// object had secrets. An object of any kind under a key of credentials is redacted as a credential.
func (s *Shared) Object(key []byte, obj map[string]any) (changed bool) {
	w := newWalker(nil)
	w.clean = s.shapeless
	return w.redactObject(key, obj, s)
}

// Value reports whether to hide the raw bytes stored under key: objects that Object would change,
// all values stored among credentials, bootstrap keys of k3s, protobuf that does not decode (its
// fields have no names), and other unreadable values with a secret. Values encrypted at rest may be
// shown.
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
	case encoding.Detect(raw) == encoding.FormatProtobuf:
		return true
	}
	if v, err := encoding.Parse(raw); err == nil && v.GVK.Group == "" && v.GVK.Kind == "Secret" { // v does not decode
		return true
	}
	return s.within(string(raw))
}

// Text returns text, or its redacted length if text contains a secret.
func (s *Shared) Text(text string) string {
	if isRedacted(text) || !s.within(text) {
		return text
	}
	return redacted(len(text))
}

func (s *Shared) within(text string) bool {
	return holdsSecret(text) || len(s.index) > 0 && newWalker(nil).holdsKnown(text, s)
}

// SecretsIn returns the secret texts of an object stored under key, their parts that are secrets by
// themselves, and the credentials found inside them by name and shape. A text longer than most
// bytes has no parts. SecretsIn changes content.
func SecretsIn(key []byte, content map[string]any, most int) (secrets []Secret) {
	w := newWalker(nil)
	w.most, w.unpacker.left = most, 8*(most-Brief)
	w.note = noter(func(s Secret) { secrets = append(secrets, s) })
	w.redactOwn(key, content)
	slices.SortFunc(secrets, func(a, b Secret) int { return strings.Compare(a.Text, b.Text) })
	out := secrets[:0]
	for _, s := range secrets {
		if last := len(out) - 1; last < 0 || out[last].Text != s.Text {
			out = append(out, Secret{strings.Clone(s.Text), s.Named})
		} else {
			out[last].Named = out[last].Named || s.Named
		}
	}
	clear(secrets[len(out):]) // they hold the content in memory
	return out
}

// Add adds a secret to search in all objects, except possible words, hosts, times and certificates,
// and, if found.Named is false, names, addresses and sentences.
func (s *Shared) Add(found Secret) {
	secret := found.Text
	if _, has := s.values[secret]; has || secret == "" {
		return
	}
	isPublic := isCertificate(secret)
	if data, is := fromBase64(secret); is {
		isPublic = isPublic || isCertificate(data)
	}
	searched := len(secret) <= longestShared && found.mayBeSecret() && (found.Named || isPart(secret)) &&
		!isHost(secret) && !isPublic && !strings.HasPrefix(secret, "system:")
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

// Has reports whether a text was added. It must be called before Settle.
func (s *Shared) Has(text []byte) bool { return len(text) >= knownBegin && s.values[string(text)] }

// Settle builds the index of the added secrets, except those equal to names of objects. Add must
// not be called afterwards.
func (s *Shared) Settle(public map[string]bool) {
	s.fields = new(fieldNames)
	for _, secret := range slices.Sorted(maps.Keys(s.values)) {
		if public[secret] || !s.place(secret) {
			s.Unsearched++
		}
	}
	s.values = nil
	s.shapeless, s.clean = clean{newMemo[int]()}, clean{newMemo[int]()}
}

// place adds a secret to the index under its rarest bytes: many tokens and keys have the same
// beginning and end.
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
	s.isBinary = s.isBinary || utf8.RuneCountInString(secret) < len(secret) || !isText(secret)
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

// Holds reports whether a text, such as a key, contains a secret in plain form.
func (s *Shared) Holds(text string) bool { return s.in(text) != "" }

// in returns the first secret in a text, "" for none.
func (s *Shared) in(text string) string {
	for begin, end := range s.each(text) {
		return text[begin:end]
	}
	return ""
}

// each yields the begin and end offsets of the secrets in a text.
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

// Split yields the secrets of at most most bytes in a text, and the text between them. Overlapping
// secrets are joined.
func (s *Shared) Split(text string, most int) iter.Seq2[string, bool] {
	return func(yield func(part string, secret bool) bool) {
		ends := map[int]int{} // end of the longest secret by its beginning
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

// Replace replaces secrets of other objects in the JSON content of an object, plain or packed. A
// text with a packed secret is replaced as a whole.
func (s *Shared) Replace(content map[string]any, with Replace) (changed bool) {
	if len(s.index) == 0 {
		return false
	}
	changed = newWalker(with).redactKnown(content, s)
	unwrap(content)
	return changed
}

// binary implements searcher.
func (s *Shared) binary() bool { return s.isBinary }

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
