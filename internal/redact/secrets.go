package redact

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Secrets holds the secret values of objects, to hide them in texts derived from the objects, also
// in part and in base64.
type Secrets struct {
	shared *Shared
	parts  map[int]map[string]bool // by length, in lower case
}

// Quoted returns an empty set of secrets. Its Hide also hides the shared secrets.
func (s *Shared) Quoted() *Secrets { return &Secrets{shared: s, parts: map[int]map[string]bool{}} }

// Lengths in bytes of parts that reveal a value. A long text has many ordinary words.
const (
	leastPart = 4
	shortPart = 6
	longPart  = 24
	longText  = 128

	mostQuotes = 3 // searched levels of quoting, the unquoted text included
)

// Add adds the secrets of an object stored under key.
func (s *Secrets) Add(key []byte, content map[string]any) {
	content = runtime.DeepCopyJSON(content)
	s.shared.Replace(content, func(_ Part, value any) any {
		text, _ := value.(string)
		s.addText(text)
		return ""
	})
	for _, secret := range SecretsIn(key, content, Thorough) {
		s.addText(secret.Text)
	}
}

func (s *Secrets) addText(text string) {
	if text = strings.TrimSpace(text); len(text) < leastPart || !isLiteral(text) {
		return
	}
	for range mostQuotes {
		s.addParts(strings.ToLower(text))
		quoted := strconv.Quote(text)
		if quoted = quoted[1 : len(quoted)-1]; quoted == text {
			return
		}
		text = quoted
	}
}

func (s *Secrets) addParts(text string) {
	size := min(len(text), shortPart)
	if len(text) > longText {
		size = longPart
	}
	if s.parts[size] == nil {
		s.parts[size] = map[string]bool{}
	}
	for at := 0; at+size <= len(text); at++ {
		s.parts[size][text[at:at+size]] = true
	}
}

// Hide replaces secrets in a text by their lengths: secrets of s, and texts hidden by Shared.Text.
func (s *Secrets) Hide(text string) string {
	hidden := s.marked(text)
	(&Unpacker{left: mostUnpacked}).decodeRuns(text, shortPart*4/3, false, func(f encoded) bool {
		if f.err != nil || s.within(f.plain) {
			markBytes(hidden, f.begin, f.end)
		}
		return true
	})
	var out strings.Builder
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && hidden[end] == hidden[at] {
			end++
		}
		if hidden[at] {
			out.WriteString(redacted(end - at))
		} else {
			out.WriteString(text[at:end])
		}
		at = end
	}
	return s.shared.Text(out.String())
}

func (s *Secrets) marked(text string) []bool {
	hidden, lower := make([]bool, len(text)), strings.ToLower(text)
	if len(lower) != len(text) { // lower case changed the length of letters
		lower = text
	}
	for size, parts := range s.parts {
		for at := 0; at+size <= len(lower); at++ {
			if parts[lower[at:at+size]] {
				markBytes(hidden, at, at+size)
			}
		}
	}
	return hidden
}

func (s *Secrets) within(text string) bool {
	for _, hidden := range s.marked(text) {
		if hidden {
			return true
		}
	}
	return false
}

func markBytes(hidden []bool, begin, end int) {
	for at := begin; at < end; at++ {
		hidden[at] = true
	}
}
