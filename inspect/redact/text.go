package redact

import (
	"regexp"
	"strings"
)

// The shapes of what must not be shown. They are never written after this.
var (
	redacted = regexp.MustCompile(`^<redacted(?: [0-9]+ bytes)?>$`)
	webToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*`)
	// a bootstrap token (kubeadm) where it is called one
	joinToken = regexp.MustCompile(`(?i)token[\s"'=:]+[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	// a manifest of a Secret, in YAML or JSON
	secretManifest = regexp.MustCompile(`(?m)(?:^|[{,])[\s-]*"?kind"?\s*:\s*"?Secret"?\s*(?:$|[,}#])`)
	kubeconfig     = regexp.MustCompile(`(?m)(?:client-key-data|"?kind"?\s*:\s*"?Config"?\s*(?:$|[,}]))`)
	filePath       = regexp.MustCompile(`^(?:/[A-Za-z0-9._-]+){2,}/?$`)
	serverToken    = regexp.MustCompile(`K1[01][0-9a-f]{16,}::`) // of k3s and RKE2
	// a line of a file of settings
	secretLine = regexp.MustCompile(`(?im)^[ \t"'-]*[a-z0-9_.-]*(?:password|passwd|secret_access_key|secret_key|api_key)["']?[ \t]*[:=][ \t]*["']?[^\s$"']` +
		`|authorization["']?[ \t]*:[ \t]*["']?(?:bearer|basic)[ \t]+[^\s$]` +
		`|(?:^|\s)--(?:[a-z0-9]+-)*(?:password|passwd|token|secret)[= ]["']?[^\s$"'/-]`)
	urlPassword = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^/\s:@'"]*:[^/\s@'"]+@`)
	// names of fields and of ConfigMap entries, with dashes, dots and underscores taken out
	secretName = regexp.MustCompile(`(?i)^(?:.*(?:password|passwd|passphrase|privatekey)s?` +
		`|(?:.*(?:auth|authorize|access|bearer|refresh|api|id|join|agent|server|bot|client|secret))?tokens?` +
		`|.*(?:secretkey|secretaccesskey|accesskeysecret|clientsecret|sharedsecret|apikey|encryptionkey|hmackey)s?)$`)
	// names of environment variables
	secretVariable = regexp.MustCompile(`(?i)(?:^|[_.-])(?:password|passwd|passphrase|pass|pwd|token|secret|credentials?` +
		`|api_?key|private_key|secret_key|access_key|encryption_key)$`)
	secretFlagName = regexp.MustCompile(`(?i)^--?(?:[a-z0-9.]+[-_])*(?:password|passwd|passphrase|token|secret` +
		`|api[-_]?key|secret[-_]key|access[-_]key)$`)
)

// separators stand between the words of a name.
var separators = strings.NewReplacer("-", "", "_", "", ".", "")

func isRedacted(text string) bool {
	return strings.HasPrefix(text, "<redacted") && redacted.MatchString(text)
}

// namedSecret tells by the name of a field whether its text is a secret.
func namedSecret(field string) bool {
	return mayNameSecret(field) && secretName.MatchString(separators.Replace(field))
}

func namedSecretVariable(name string) bool {
	return mayNameSecret(name) && (secretVariable.MatchString(name) || namedSecret(name))
}

// mayNameSecret looks for the words that all those names have: it is asked of every field, and nearly all have none.
func mayNameSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"pass", "pwd", "token", "secret", "key", "credential"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// isLiteral tells the secret itself from a reference to it: a path of two steps or more, a variable, or nothing.
func isLiteral(text string) bool {
	switch {
	case text == "", text == "true", text == "false":
		return false
	case strings.HasPrefix(text, "$(") || strings.HasPrefix(text, "${"):
		return false
	}
	return !filePath.MatchString(text)
}

// holdsSecret tells by its shape whether there is a secret in a text.
func holdsSecret(text string) bool {
	has := func(part string) bool { return strings.Contains(text, part) }
	return has("PRIVATE KEY-----") ||
		has(".eyJ") && webToken.MatchString(text) ||
		has("Secret") && has("kind") && secretManifest.MatchString(text) ||
		has("clusters") && has("users") && kubeconfig.MatchString(text) ||
		has("::") && serverToken.MatchString(text) ||
		mayHoldLine(text) && secretLine.MatchString(text) ||
		has("://") && has("@") && urlPassword.MatchString(text) ||
		(has("token") || has("TOKEN") || has("Token")) && joinToken.MatchString(text)
}

// mayHoldLine spares most texts the search for a line.
func mayHoldLine(text string) bool {
	if !strings.ContainsAny(text, ":= ") {
		return false
	}
	lower := strings.ToLower(text)
	for _, word := range []string{"passw", "secret", "api_key", "authorization", "--"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// secretFlag tells whether a word of a command line is a flag with a secret.
func secretFlag(word string) bool {
	if !strings.HasPrefix(word, "-") {
		return false
	}
	name, value, hasValue := strings.Cut(word, "=")
	return hasValue && isLiteral(value) && secretFlagName.MatchString(name)
}

// secretFlagBefore tells whether the word before is a flag whose value is a word of its own.
func secretFlagBefore(word any) bool {
	name, isText := word.(string)
	return isText && strings.HasPrefix(name, "-") && secretFlagName.MatchString(name)
}

// Text is text, or the mark of its length where it has the shape of a secret.
func Text(text string) string {
	if isRedacted(text) || !holdsSecret(text) {
		return text
	}
	return mark(len(text))
}
