package redact

import (
	"regexp"
	"slices"
	"strings"
)

// plainValues are those of policies: no secret, whatever the field is called.
var plainValues = []string{"", "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "~", "enabled", "disabled", "required",
	"optional", "always", "never", "auto", "string", "str", "text", "integer", "int", "number", "boolean", "bool", "bytes", "object", "array", "any",
	"basic", "bearer", "jwt", "oidc", "ldap", "rbac", "webhook", "simple", "prompt", "not"}

// referenceBegins begin what says where a secret is, or is one that is encrypted.
var referenceBegins = []string{"$(", "${", "$__", "{{", "{%", "<redacted", "%(", "%{", "#{", "ENC(", "ENC[", "{cipher}", "vault:", "!vault", "ref+",
	"secretref", "env:", "file:", "op://", "id=", "arn:aws:", "@Microsoft.KeyVault", "kv://", "-----BEGIN CERTIFICATE", "-----BEGIN PUBLIC KEY",
	"ssh-rsa ", "ssh-ed25519 ", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"}

var (
	filePath    = regexp.MustCompile(`^(?:[~.]{0,2}(?:/[A-Za-z0-9._-]+){2,}/?|[A-Za-z0-9._/-]+\.(?:key|pem|crt|cer|txt|json|ya?ml|p12|jks|keytab|conf))$`)
	placeholder = regexp.MustCompile(`^(?:<[^<>]*>|\*+|[xX]{3,}|\.\.\.)$`)
	webAddress  = regexp.MustCompile(`^[a-z]+://[^@]*$`)
	number      = regexp.MustCompile(`^[0-9.]{1,9}(?:ms|[smhdw])?$`)
	variable    = regexp.MustCompile(`^\$[A-Za-z_][\w.:-]*\W?$`)
	// references of programs: a call, a field of what programs read their settings from
	codeValue = regexp.MustCompile(`^(?:[A-Za-z_][\w.]*[(\[]|%[A-Z_]+%|%[sdv]|await$|new$|` +
		"`" + `|(?:var|local|data|module|self|this|os|process\.env|env|request|req|config|settings|params|inputs|ngx)\.[A-Za-z_])`)
	authScheme = regexp.MustCompile(`^(?i:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256)\s+(\S.*)$`)
	lowWord    = regexp.MustCompile(`^[a-z]+\.?$`)
)

// isSecret tells whether text is a secret where its name has the sort given, and not a reference, a placeholder or a policy.
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

// isLiteral tells a value from a reference to it, a placeholder and a policy.
func isLiteral(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) <= len("optional") && slices.Contains(plainValues, strings.ToLower(text)) {
		return false
	}
	for _, begin := range referenceBegins {
		if strings.HasPrefix(text, begin) {
			return false
		}
	}
	return !filePath.MatchString(text) && !placeholder.MatchString(text)
}
