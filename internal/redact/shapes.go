package redact

import (
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/pattern"
)

// shortest is the length of the shortest secret with a shape.
const shortest = 8

func hasShape(text string) bool { return traitsOf(text).hasShape(text) }

func (t traits) hasShape(text string) bool {
	if t.tokens && hasToken(text) { // perhaps truncated
		return true
	}
	if len(text) < shortest {
		return false
	}
	if t.marks || t.kinds&singleByte != 0 {
		var pairs pairSet
		pairs.add(text)
		for _, shapes := range [][]shape{tables().shapes, tables().commands} {
			for i := range shapes {
				if pairs.has(&shapes[i].pairs) && shapes[i].fits(text) { // most texts lack a pair of a mark
					return true
				}
			}
		}
	}
	return t.kinds&userInfoByte != 0 && hasUserInfo(text)
}

func (s shape) fits(text string) bool {
	for _, mark := range s.marks {
		if !strings.Contains(text, mark) {
			return false
		}
	}
	return s.pattern == nil || s.pattern().MatchString(text)
}

// hostPort matches the text after "@" in a data source name without a scheme.
var hostPort = pattern.New(`^(?:(?:tcp|unix)\(|[A-Za-z0-9.-]+(?:/|:[0-9]{2,5}(?:\W|$)))`)

// tokenUser matches a token in place of a URL's user, as in GitHub URLs and Sentry DSNs.
var tokenUser = pattern.New(`^[A-Za-z]*[0-9][A-Za-z0-9]*$`)

// hasUserInfo reports whether a text has "user:password@" in a URL or before a host and port, or
// "token@" in a URL.
func hasUserInfo(text string) bool {
	for {
		info, after, found := strings.Cut(text, "@")
		if !found {
			return false
		}
		inURL := false
		if start := strings.LastIndexAny(info, "/ \t\n\"'`"); start >= 0 {
			inURL = strings.HasSuffix(info[:start+1], "://")
			info = info[start+1:]
		}
		user, password, has := strings.Cut(info, ":")
		if has && (inURL || user != "" && user != "mailto" && hostPort().MatchString(after)) && isLiteral(password) &&
			!codeValue().MatchString(password) {
			return true
		}
		if inURL && len(info) >= 30 && tokenUser().MatchString(info) {
			return true
		}
		text = after
	}
}

func hasToken(text string) bool {
	before, tokens := byte(' '), &tables().tokens
	for i := 0; i < len(text); i++ {
		if !isWordByte(before) {
			for _, p := range tokens[text[i]] {
				if strings.HasPrefix(text[i:], p.text) && p.follows(text[i+len(p.text):]) {
					return true
				}
			}
		}
		before = text[i]
	}
	return false
}

// longestToken bounds the checked part of a token, in bytes.
const longestToken = 64

// longestWord bounds words in names, in letters.
const longestWord = 15

// follows reports whether enough letters follow the prefix. Placeholders are excluded: "xxxx", and
// "EXAMPLE" at the end. Words are excluded: no digit, no capital letter except the first. Names
// such as sk_live_demo_page are excluded too.
func (p tokenPrefix) follows(rest string) bool {
	n, letters, varied, coded := 0, 0, false, false
	for n < min(len(rest), longestToken) && (isWordByte(rest[n]) && rest[n] != '_' || p.loose &&
		strings.IndexByte("-_.", rest[n]) >= 0) {
		varied = varied || rest[n] != rest[0]
		switch c := rest[n]; {
		case strings.IndexByte("-_.", c) >= 0:
			letters = 0
		default:
			coded = coded || c < 'A' || isUpper(c) && letters > 0 || letters == longestWord
			letters++
		}
		n++
	}
	return n >= p.least && (varied || n == 1) && (coded || !p.words && !strings.HasPrefix(rest[n:], "_")) &&
		!strings.HasSuffix(rest[:n], "EXAMPLE")
}

func isWordByte(c byte) bool {
	return isLower(c) || isUpper(c) || c >= '0' && c <= '9' || c == '_'
}

var (
	filePath = pattern.New(
		`^(?:[~.]{0,2}(?:/[A-Za-z0-9._-]+){2,` +
			`}/?|[A-Za-z0-9._/-]+\.(?:key|pem|crt|cer|txt|json|ya?ml|p12|jks|keytab|conf))$`)
	placeholder = pattern.New(`^(?:<[^<>]*>|\*+|[xX]{3,}|\.\.\.)$`)
	webAddress  = pattern.New(`^[a-z]+://[^@]*$`)
	number      = pattern.New(`^[0-9.]{1,9}(?:ms|[smhdw])?$`)
	variable    = pattern.New(`^\$[A-Za-z_][\w.:-]*\W?$`)
	// codeValue matches a call, or a setting of a program.
	codeValue = pattern.New(`^(?:[A-Za-z_][\w.]*[(\[]|%[A-Z_]+%|%[sdv]|await$|new$|` +
		"`" +
		`|(?:var|local|data|module|self|this|os|process\.env` +
		`|env|request|req|config|settings|params|inputs|ngx)\.[A-Za-z_])`)
	authScheme = pattern.New(`^(?i:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256)\s+(\S.*)$`)
	lowWord    = pattern.New(`^[a-z]+\.?$`)
)

// isSecret reports whether text is a secret under a name of class s. References, placeholders and
// policies are not secrets.
func (s nameClass) isSecret(text string) bool {
	switch s {
	case plainName:
		return false
	case headerName:
		if scheme := authScheme().FindStringSubmatch(text); scheme != nil {
			return isLiteral(scheme[1]) && !variable().MatchString(scheme[1])
		}
		return isLiteral(text) && len(text) >= shortest && strings.ContainsAny(text, "0123456789=") &&
			!strings.Contains(text, " ")
	case tokenName:
		return isLiteral(text) && !number().MatchString(text) && !webAddress().MatchString(text)
	}
	return isLiteral(text)
}

// isLiteral reports whether text is no reference, placeholder or policy.
func isLiteral(text string) bool {
	text = strings.TrimSpace(text)
	if text == "" || len(text) <= len("optional") && slices.Contains(tables().plainValues, strings.ToLower(text)) {
		return false
	}
	isReference := slices.ContainsFunc(tables().references,
		func(begin string) bool { return strings.HasPrefix(text, begin) })
	isPath := strings.ContainsAny(text, "./") && filePath().MatchString(text)
	return !isReference && !isPath && !placeholder().MatchString(text)
}
