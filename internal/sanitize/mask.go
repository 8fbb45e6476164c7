package sanitize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/redact"
)

// masker derives replacements of the same shape and length from secrets and a key. Equal secrets
// have equal replacements in all objects.
type masker struct {
	key      []byte
	unpacker *redact.Unpacker // of an object
	secrets  *redact.Shared   // of all objects
}

// deepest bounds the levels of nested texts, such as JSON in base64.
const deepest = 8

func (m masker) replace(part redact.Part, value any) any {
	switch v := value.(type) {
	case string:
		switch part {
		case redact.Data:
			return m.data(v)
		case redact.Name:
			return m.name(v)
		}
	}
	return m.value(value, 0)
}

// data replaces base64; any other text is replaced as plain text.
func (m masker) data(text string) string {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return m.text(text, 0)
	}
	return base64.StdEncoding.EncodeToString([]byte(m.bytes(string(plain), 0)))
}

func (m masker) bytes(plain string, texts int) string {
	if isText(plain) {
		return m.text(plain, texts)
	}
	if out, is := m.packed(plain, texts+1); is {
		return out
	}
	out := make([]byte, len(plain))
	stream := m.stream(plain, 0)
	for i := range out {
		out[i] = byte(stream.Uint64())
	}
	return string(out)
}

// isText distinguishes text from binary data that is valid UTF-8 by chance: substitute would not
// change its control characters.
func isText(plain string) bool {
	return utf8.ValidString(plain) && !strings.ContainsFunc(plain,
		func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune("\t\n\r", r) })
}

// name replaces a map key; in managedFields, the part after "f:", "v:" or "k:".
func (m masker) name(key string) string {
	if strings.HasPrefix(key, "v:") || strings.HasPrefix(key, "k:") {
		list := "[" + key[2:] + "]"
		out, err := redact.EditJSON(list, func(content any) any { return m.value(content, 0) })
		if err == nil {
			return key[:2] + strings.TrimSuffix(strings.TrimPrefix(out, "["), "]")
		}
	}
	if field, is := strings.CutPrefix(key, "f:"); is {
		return "f:" + m.text(field, 0)
	}
	return m.text(key, 0)
}

// value replaces all strings and numbers in JSON content, and names that are data.
func (m masker) value(value any, texts int) any {
	switch v := value.(type) {
	case string:
		return m.text(v, texts)
	case int64:
		n, err := strconv.ParseInt(m.digits(strconv.FormatInt(v, 10)), 10, 64)
		if err != nil { // out of range
			return v / 10
		}
		return n
	case float64:
		n, _ := strconv.ParseFloat(m.digits(strconv.FormatFloat(v, 'f', -1, 64)), 64)
		return n
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, child := range v {
			if !fieldName().MatchString(name) {
				name = m.text(name, deepest)
			}
			out[name] = m.value(child, texts)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = m.value(child, texts)
		}
		return out
	}
	return value
}

// fieldName matches field names; other keys may be hosts or users.
var fieldName = pattern.New(`^[A-Za-z][A-Za-z_-]{0,39}$`)

func (m masker) digits(number string) string {
	stream := m.stream(number, 0)
	out := []byte(number)
	for i, c := range out {
		switch {
		case c < '0' || c > '9':
		case i > 0 && (out[i-1] >= '0' && out[i-1] <= '9' || out[i-1] == '.') || len(out) == 1:
			out[i] = '0' + byte(stream.Uint64()%10)
		case c != '0': // a number begins with 0 only before a decimal point
			out[i] = '1' + byte(stream.Uint64()%8)
		}
	}
	return string(out)
}

// text replaces a secret text completely. texts is the number of enclosing texts.
func (m masker) text(text string, texts int) string {
	text = strings.ToValidUTF8(text, "?")
	if texts < deepest {
		for _, form := range []func(string, int) (string, bool){m.json, m.token, m.packed, m.pem} {
			if out, is := form(text, texts+1); is {
				return out
			}
		}
	}
	for attempt := uint64(0); ; attempt++ {
		out := m.words(text, m.stream(text, attempt), texts)
		if out != text || !strings.ContainsFunc(text, func(r rune) bool {
			return unicode.IsLetter(r) ||
				unicode.IsDigit(r)
		}) || attempt > 8 {
			return out
		}
	}
}

// words replaces the words of a text. Known secrets get the same replacement as elsewhere.
func (m masker) words(text string, stream *rand.ChaCha8, texts int) string {
	if m.secrets == nil || texts > deepest {
		return substitute(text, stream)
	}
	var out strings.Builder
	for part, secret := range m.secrets.Split(text, len(text)-1) {
		if secret && part != text {
			out.WriteString(m.text(part, texts+1))
		} else {
			out.WriteString(substitute(part, stream))
		}
	}
	return out.String()
}

func (m masker) json(text string, texts int) (string, bool) {
	out, err := redact.EditJSON(text, func(content any) any { return m.value(content, texts) })
	return out, err == nil
}

func (m masker) token(text string, texts int) (string, bool) {
	parts := strings.Split(text, ".")
	if !strings.HasPrefix(text, "eyJ") || len(parts) != 3 {
		return "", false
	}
	for i, part := range parts {
		plain, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return "", false
		}
		if i < 2 {
			plain = []byte(m.text(string(plain), texts))
		} else {
			plain = []byte(m.bytes(string(plain), texts))
		}
		parts[i] = base64.RawURLEncoding.EncodeToString(plain)
	}
	return strings.Join(parts, "."), true
}

// packed replaces the content of a text that is escaped, in base64, hexadecimal or UTF-16, or
// compressed. In base64 inside text, binary data is replaced only if packed: many words look like
// base64.
func (m masker) packed(text string, texts int) (string, bool) {
	if texts > deepest {
		return text, false
	}
	encoded := isText(text)
	out, is, err := m.unpacker.Repack(text, func(plain string) string {
		switch {
		case encoded && len(plain) < 6:
			return plain
		case encoded && !isText(plain):
			out, _ := m.packed(plain, texts+1)
			return out
		}
		if out, is := m.release(plain, texts); is {
			return out
		}
		return m.bytes(plain, texts)
	})
	return out, is && err == nil
}

// pem replaces all lines of PEM except the first and last line of each block.
func (m masker) pem(text string, texts int) (string, bool) {
	if !strings.Contains(text, "-----BEGIN ") {
		return "", false
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !pemLine().MatchString(line) {
			line = m.text(line, deepest)
		}
		out.WriteString(line)
	}
	return out.String(), true
}

var pemLine = pattern.New(`^\s*-----(?:BEGIN|END) [A-Z0-9 ]{1,40}-----\s*$`)

// stream returns a random stream determined by the key and the text.
func (m masker) stream(text string, attempt uint64) *rand.ChaCha8 {
	mac := hmac.New(sha256.New, m.key)
	mac.Write(binary.BigEndian.AppendUint64(nil, attempt))
	mac.Write([]byte(text))
	return rand.NewChaCha8([32]byte(mac.Sum(nil)))
}

// hexRun matches hexadecimal numbers and UUIDs.
var hexRun = pattern.New(
	`\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{8,}|[0-9A-F]{8,})\b`)

const lowerCase = "abcdefghijklmnopqrstuvwxyz"

// substitute replaces each letter and digit by another of its class. Hexadecimal numbers stay
// hexadecimal.
func substitute(text string, stream *rand.ChaCha8) string {
	var out strings.Builder
	for _, run := range hexRun().FindAllStringIndex(text, -1) {
		if !strings.ContainsAny(text[run[0]:run[1]], "0123456789") {
			continue
		}
		each(&out, text[out.Len():run[0]], lowerCase, stream)
		each(&out, text[run[0]:run[1]], "abcdef", stream)
	}
	each(&out, text[out.Len():], lowerCase, stream)
	return out.String()
}

// each replaces the runes of a text by runes of equal length.
func each(out *strings.Builder, text, letters string, stream *rand.ChaCha8) {
	of := func(class string) { out.WriteByte(class[stream.Uint64()%uint64(len(class))]) }
	between := func(first, last rune) { out.WriteRune(first + rune(stream.Uint64()%uint64(last-first+1))) }
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z':
			of(letters)
		case r >= 'A' && r <= 'Z':
			of(strings.ToUpper(letters))
		case r >= '0' && r <= '9':
			of("0123456789")
		case r < utf8.RuneSelf && strings.ContainsRune("!#$%^&*~?|;", r):
			of("!^~?")
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case utf8.RuneLen(r) == 2:
			between('à', 'ö')
		case utf8.RuneLen(r) == 3:
			between('一', '鿿')
		default:
			between('𠀀', '𪛖')
		}
	}
}

// shownOfRelease returns the fields of a Helm release (helm.sh/helm/v3/pkg/release) to keep: users
// who install a chart write none of them.
func shownOfRelease() map[string]any {
	return map[string]any{
		"name": true, "namespace": true, "version": true,
		"info": map[string]any{"first_deployed": true, "last_deployed": true, "deleted": true, "status": true},
		"chart": map[string]any{"metadata": map[string]any{
			"name": true, "version": true, "appVersion": true, "apiVersion": true, "type": true, "kubeVersion": true,
		}},
	}
}

// release replaces the values of a Helm release and removes templates, files and manifests. The
// kinds in the manifest stay, so that Helm can read the release.
func (m masker) release(plain string, texts int) (string, bool) {
	var of struct {
		Name     *string          `json:"name"`
		Chart    *json.RawMessage `json:"chart"`
		Manifest *string          `json:"manifest"`
	}
	var content map[string]any
	if json.Unmarshal([]byte(plain), &of) != nil || of.Name == nil || of.Chart == nil || of.Manifest == nil ||
		json.Unmarshal([]byte(plain), &content) != nil {
		return "", false
	}
	out := shown(content, shownOfRelease())
	out["manifest"] = kindsOf(*of.Manifest)
	if chart, is := out["chart"].(map[string]any); is {
		from, _ := content["chart"].(map[string]any)
		chart["values"] = m.value(from["values"], texts+1)
		chart["templates"], chart["files"] = []any{}, []any{}
	}
	if config := content["config"]; config != nil {
		out["config"] = m.value(config, texts+1)
	}
	encoded, err := json.Marshal(out)
	return string(encoded), err == nil
}

// shown returns the fields of content that are in pattern.
func shown(content, pattern map[string]any) map[string]any {
	out := map[string]any{}
	for name, child := range content {
		switch want := pattern[name].(type) {
		case bool:
			out[name] = child
		case map[string]any:
			if fields, is := child.(map[string]any); is {
				out[name] = shown(fields, want)
			}
		}
	}
	return out
}

var kindLine = pattern.New(`^(?:apiVersion|kind): *["']?[A-Za-z0-9./-]{1,253}["']?$`)

func kindsOf(manifest string) string {
	var out strings.Builder
	for line := range strings.Lines(manifest) {
		word := strings.TrimRight(line, "\r\n")
		if word == "---" || kindLine().MatchString(word) {
			out.WriteString(word + "\n")
		}
	}
	return out.String()
}
