package redact

import (
	"regexp"
	"slices"
	"strings"
)

// plainValues are policies, never secrets.
var plainValues = append(strings.Fields(`
	true false yes no on off none null nil ~ enabled disabled required optional always never auto string str text integer int number
	boolean bool bytes object array any basic bearer jwt oidc ldap rbac webhook simple prompt not`), "")

// referenceBegins begin the location of a secret, or an encrypted secret.
var referenceBegins = []string{"$(", "${", "$__", "{{", "{%", "<redacted", "%(", "%{", "#{", "ENC(", "ENC[", "{cipher}", "vault:", "!vault", "ref+",
	"secretref", "env:", "file:", "op://", "id=", "arn:aws:", "@Microsoft.KeyVault", "kv://", "-----BEGIN CERTIFICATE", "-----BEGIN PUBLIC KEY",
	"ssh-rsa ", "ssh-ed25519 ", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"}

var (
	filePath    = regexp.MustCompile(`^(?:[~.]{0,2}(?:/[A-Za-z0-9._-]+){2,}/?|[A-Za-z0-9._/-]+\.(?:key|pem|crt|cer|txt|json|ya?ml|p12|jks|keytab|conf))$`)
	placeholder = regexp.MustCompile(`^(?:<[^<>]*>|\*+|[xX]{3,}|\.\.\.)$`)
	webAddress  = regexp.MustCompile(`^[a-z]+://[^@]*$`)
	number      = regexp.MustCompile(`^[0-9.]{1,9}(?:ms|[smhdw])?$`)
	variable    = regexp.MustCompile(`^\$[A-Za-z_][\w.:-]*\W?$`)
	// codeValue is a call, or a field of a program's settings.
	codeValue = regexp.MustCompile(`^(?:[A-Za-z_][\w.]*[(\[]|%[A-Z_]+%|%[sdv]|await$|new$|` +
		"`" + `|(?:var|local|data|module|self|this|os|process\.env|env|request|req|config|settings|params|inputs|ngx)\.[A-Za-z_])`)
	authScheme = regexp.MustCompile(`^(?i:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256)\s+(\S.*)$`)
	lowWord    = regexp.MustCompile(`^[a-z]+\.?$`)
)

// isSecret reports whether text is a secret by the sort of its name. References, placeholders and
// policies are none.
func (s sort) isSecret(text string) bool {
	switch s {
	case plainName:
		return false
	case headerName:
		if scheme := authScheme.FindStringSubmatch(text); scheme != nil {
			return isLiteral(scheme[1]) && !variable.MatchString(scheme[1])
		}
		return isLiteral(text) && len(text) >= shortest && strings.ContainsAny(text, "0123456789=") && !strings.Contains(text, " ")
	case tokenName:
		return isLiteral(text) && !number.MatchString(text) && !webAddress.MatchString(text)
	}
	return isLiteral(text)
}

// isLiteral excludes references, placeholders and policies.
func isLiteral(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) <= len("optional") && slices.Contains(plainValues, strings.ToLower(text)) {
		return false
	}
	isReference := slices.ContainsFunc(referenceBegins, func(begin string) bool { return strings.HasPrefix(text, begin) })
	return !isReference && !filePath.MatchString(text) && !placeholder.MatchString(text)
}
