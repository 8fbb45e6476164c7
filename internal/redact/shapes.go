package redact

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shape recognizes a secret without its name. Only texts with all the marks are matched.
type shape struct {
	pattern pattern // nil if the marks suffice
	marks   []string
}

// pattern is a regular expression, compiled when it is first used: most programs need few.
type pattern func() *regexp.Regexp

func compiled(text string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

func mark(pattern string, marks ...string) shape {
	return shape{compiled(pattern), marks}
}

// shapes recognize secrets without a fixed prefix.
var shapes = []shape{
	{nil, []string{"PRIVATE KEY-----"}}, {nil, []string{"PRIVATE KEY BLOCK-----"}}, {nil, []string{"PuTTY-User-Key-File-"}},
	{nil, []string{"-----BEGIN OpenVPN Static key"}},
	mark(`eyJ[A-Za-z0-9_-]{6,}\.eyJ[A-Za-z0-9_-]`, ".eyJ"),                                                                  // a JSON web token
	mark(`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.`, "eyJ"),                             // an encrypted one
	mark(`(?ms)`+kindSecret+`.*`+dataField+`|`+dataField+`.*`+kindSecret, "kind", "Secret", "ata"),                          // a manifest
	mark(`K1[01][0-9a-f]{16,}::`, "::"),                                                                                     // a server token of k3s and RKE2
	mark(`A[KS]IA[0-9A-Z]{16}[^0-9A-Za-z/+]{1,4}(?:[a-z]+[^0-9A-Za-z/+]{1,4})?[0-9A-Za-z/+]{40}(?:[^0-9A-Za-z/+]|$)`, "IA"), // of AWS
	mark(`hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}`, "hooks.slack.com/"),
	mark(`discord(?:app)?\.com/api/webhooks/[0-9]+/[A-Za-z0-9_-]{20,}`, "/api/webhooks/"),
	mark(`webhook\.office\.com/webhookb2/\S{20,}`, "webhook.office.com/"), mark(`/v3/import/[A-Za-z0-9]{40,}_`, "/v3/import/"), // Teams, Rancher
	mark(`\bBearer\s+[A-Za-z._~+/-]{0,40}[0-9][A-Za-z0-9._~+/-]{8,}`, "Bearer"),
	mark(`(?i)\brouting_?key["']?\s*[:=]\s*["']?[0-9A-Z]{32}\b`, "outing"),                                                       // PagerDuty
	mark(`(?i)certificate-?key["']?[:=\s]+["']?[0-9a-f]{64}\b`, "ertificate"),                                                    // kubeadm
	mark(`\bencrypt["']?\s*[:=]\s*["'][A-Za-z0-9+/]{22,}==?["']`, "encrypt"),                                                     // Consul, Nomad
	mark(`\bBQIAAA[A-Za-z0-9+/]{24,}`, "BQIAAA"),                                                                                 // a keytab
	mark(`[?&]sig=[A-Za-z0-9%/+_-]{16,}`, "sig="), mark(`[?&](?:X-(?:Amz|Goog)-)?Signature=[A-Za-z0-9%/+_-]{16,}`, "Signature="), // a signed URL
	mark(`(?:\b|bot)[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}`, ":AA"),                                      // a bot of Telegram
	mark(`AQ[A-Za-z0-9+/]{36}==`, "AQ", "=="),                                                      // a keyring of Ceph
	mark(`\$(?:2[abxy]\$[0-9]{2}|apr1|[156y]|argon2[id]{1,2}|scrypt)\$[./A-Za-z0-9$=,]{16,}`, "$"), // crypt(3)
	mark(`\{(?:S?SHA|S?MD5|CRYPT)\}[A-Za-z0-9+/=]{16,}`, "{", "}"),                                 // RFC 2307
	mark(`SCRAM-SHA-(?:1|256|512)\$[0-9]+:`, "SCRAM-SHA-"),
	mark(`\b(?:machine\s+\S+|default\s+login\s+\S+)(?:\s+(?:login|account)\s+\S+)*\s+password\s+\S`, "password"), // netrc
	mark(pgpass, ":5432:"), mark(pgpass, ":5433:"), mark(pgpass, ":6432:"), mark(pgpass, ":*:"),
	mark(`(?m)^"[^"\n]+" "[^"\n]+"\s*$`, `" "`), // PgBouncer's list of users
	mark(`(?i)\bpassword\s+'[^'$]`, "'", "assword"), mark(`PASSWORD\s+'[^'$]`, "'", "PASSWORD"), mark(`(?i)identified by\s+'[^'$]`, "'", " BY "),
	mark(`\buser_\w+\s*=\s*"[^"$]`, "LoginModule"),                                                                      // users of JAAS
	mark(`\buser\s+\S+\s+o(?:n|ff)\s+(?:\S*[~+&@*-]\S*\s+)*>[^\s$]`, "user", " >"),                                      // users of Redis
	mark(`insecure-password\s+[^\s$"]`, "insecure-password"), mark(`\bstats\s+auth\s+[^\s:]+:[^\s$"]`, "stats", "auth"), // HAProxy
	mark(`\bneighbor\s+\S+\s+password\s+[^\s${"]`, "neighbor", "password"), // FRR
	mark(`\bpassword\s+"[^"$#{%<\s]+"\s*;`, "password"),                    // BIRD
	mark(`\becho\s+(?:-\w+\s+)?`+noVariable+`\|\s*(?:sudo\s+)?(?:chpasswd|kinit|.*--password-stdin)`, "echo", "|"),
	mark(`jdbc:oracle:[a-z]+:[^/\s:@$]+/[^@\s$]+@`, "jdbc:oracle"),
}

// commands are command lines with a secret. Each pattern ends in its first letter.
var commands = []shape{
	mark(`\bcurl\s.*(?:-u\s*|--user[ =])["']?[^\s:"'$]+:[^\s:"'$]`, "curl "),
	mark(`\bsshpass\s+-p\s*["']?[^\s"'$]`, "sshpass "),
	mark(`\bredis-cli\s(?:.*\s)?-a\s+["']?[^\s"'$]`, "redis-cli "),
	mark(mysql, "mysql", "-p"), mark(mysql, "mariadb", "-p"),
	mark(`\bdocker\s+login\s(?:.*\s)?-p\s+["']?[^\s"'$]`, "docker login "),
	mark(`\bopenssl\s.*[\s'"]pass:[^\s"'${]`, "openssl", "pass:"),
	mark(`\bvault\s+(?:operator\s+unseal|unseal|login)\s+["']?[A-Za-z0-9+/=.]{20,}`, "vault "),
	mark(`\brabbitmqctl\s+(?:add_user|change_password)\s+\S+\s+["']?[^\s"'${]`, "rabbitmqctl "),
	mark(`\bmc\s+(?:alias\s+set|config\s+host\s+add)\s+\S+\s+\S+\s+\S+\s+["']?[^\s"'${]`, "mc "),
	mark(`\bldap[a-z]+\s(?:.*\s)?-w\s*["']?[^\s"'$]`, "ldap", "-w"),
	mark(`\bsqlplus\s+(?:-\S+\s+)*["']?\w+/[^\s/@"'$]+@`, "sqlplus"),
	mark(`\bhtpasswd\s+(?:-\w*n\w*\s+\S+|-[a-mo-zA-Z]*b[a-mo-zA-Z]*\s+\S+\s+\S+)\s+["']?[^\s"'$>|]`, "htpasswd"),
	mark(`\bAuthorization["']?[ :]+["']?(?i:basic|bearer)\s+[^\s"'$<{%]`, "Authorization"),
}

const (
	kindSecret = `(?:^|[{,])[\s-]*"?kind"?\s*:\s*"?Secret"?\s*(?:$|[,}#])`
	dataField  = `\b(?:data|stringData)"?\s*:`
	pgpass     = `(?m)^[^:\s#]*[g-zG-Z.*][^:\s]*:(?:[0-9]{4,5}|\*):[^:\s]+:[^:\s]+:\S+$`
	mysql      = `\b(?:mysql|mariadb)[a-z-]*\s(?:[^|;&\n]*\s)?-p["']?[^\s"'$]`
	// noVariable is text of a command line without variables.
	noVariable = "[^$|\\n{<`]+"
)

// tokenPrefix begins tokens of a service. At least so many letters and digits follow, in a loose
// token also "-", "_" and ".". Some prefixes begin names and words too, such as npm_lifecycle.
type tokenPrefix struct {
	text  string
	least int
	loose bool
	words bool
}

// tokenPrefixes are by their first letter. A token with a prefix of its own is found at any length:
// it may be cut off.
var tokenPrefixes = byFirstLetter([]tokenPrefix{
	{text: "ghp_ gho_ ghu_ ghs_ ghr_", least: 1}, {text: "github_pat_", least: 1, loose: true}, // GitHub
	{text: "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- gloas- glsoat- glffct- glwt-", least: 1, loose: true}, // GitLab
	{text: "glagent-", least: 1, loose: true, words: true}, {text: "xapp-", least: 1, loose: true, words: true},        // and Slack
	{text: "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.", least: 1, loose: true},
	{text: "AGE-SECRET-KEY-", least: 1, loose: true}, {text: "AGE-PLUGIN-", least: 30, loose: true}, // age
	{text: "AKIA", least: 1}, {text: "ASIA", least: 12}, // AWS
	{text: "AIza ya29. GOCSPX-", least: 1, loose: true},                                                                      // Google
	{text: "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", least: 1},                                                           // Stripe
	{text: "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1-", least: 1, loose: true, words: true}, {text: "sk-", least: 40}, // of models
	{text: "hf_ r8_ gsk_", least: 24}, {text: "nvapi- pplx- xai-", least: 24, loose: true},
	{text: "npm_ rubygems_ pypi-", least: 1, words: true}, {text: "oy2", least: 40}, // of packages
	{text: "dckr_pat_ dckr_oat_", least: 1, loose: true},                        // Docker
	{text: "dop_v1_ doo_v1_ dor_v1_", least: 1}, {text: "dapi pul-", least: 32}, // DigitalOcean, Databricks, Pulumi
	{text: "hvs. hvb. hvr.", least: 1, loose: true},                                    // Vault
	{text: "SG.", least: 40, loose: true}, {text: "glsa_ glc_", least: 1, loose: true}, // SendGrid, Grafana
	{text: "tskey-", least: 1, loose: true, words: true}, {text: "sha256~", least: 1, loose: true}, // Tailscale, OpenShift
	{text: "shpat_ shpss_ shpca_ shppa_", least: 1}, {text: "lin_api_ sbp_ sgp_", least: 1, words: true},
	{text: "sntrys_ sntryu_ CFPAT- ATATT3 ATCTT3 pscale_pw_ pscale_tkn_ figd_", least: 1, loose: true},
	{text: "ops_eyJ", least: 1, loose: true}, {text: "dp.pt. dp.st. dp.sa.", least: 1, loose: true}, {text: "PMAK-", least: 1, loose: true},
	{text: "NRAK- NRII-", least: 1, loose: true}, {text: "dt0c01. dt0s01. dt0s16.", least: 1, loose: true},
})

// byFirstLetter splits rows of prefixes.
func byFirstLetter(rows []tokenPrefix) (out [256][]tokenPrefix) {
	for _, row := range rows {
		for text := range strings.FieldsSeq(row.text) {
			row.text = text
			out[text[0]] = append(out[text[0]], row)
		}
	}
	return out
}

// shortest is the length of the shortest secret with a shape.
const shortest = 8

// hasShape reports whether a text has a secret by its shape.
func hasShape(text string) bool {
	if len(text) < shortest {
		return hasToken(text) // cut off
	}
	fits := func(s shape) bool { return s.fits(text) }
	if slices.ContainsFunc(shapes, fits) || slices.ContainsFunc(commands, fits) {
		return true
	}
	return hasToken(text) || hasUserInfo(text)
}

func (s shape) fits(text string) bool {
	for _, mark := range s.marks {
		if !strings.Contains(text, mark) {
			return false
		}
	}
	return s.pattern == nil || s.pattern().MatchString(text)
}

// hostPort follows the "@" of a data source name without a scheme.
var hostPort = compiled(`^(?:(?:tcp|unix)\(|[A-Za-z0-9.-]+(?:/|:[0-9]{2,5}(?:\W|$)))`)

// tokenUser is a token in place of a URL's user: of GitHub, of a DSN of Sentry.
var tokenUser = compiled(`^[A-Za-z]*[0-9][A-Za-z0-9]*$`)

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
		if has && (inURL || user != "" && user != "mailto" && hostPort().MatchString(after)) && isLiteral(password) && !codeValue().MatchString(password) {
			return true
		}
		if inURL && len(info) >= 30 && tokenUser().MatchString(info) {
			return true
		}
		text = after
	}
}

// hasToken reports whether a word of a text is the token of a service.
func hasToken(text string) bool {
	before := byte(' ')
	for i := 0; i < len(text); i++ {
		if !isWordByte(before) {
			for _, p := range tokenPrefixes[text[i]] {
				if strings.HasPrefix(text[i:], p.text) && p.follows(text[i+len(p.text):]) {
					return true
				}
			}
		}
		before = text[i]
	}
	return false
}

// longestToken bounds the part of a token that is checked, in bytes.
const longestToken = 64

// longestWord bounds words in the names of things, in letters.
const longestWord = 15

// follows reports whether enough letters follow the prefix. "xxxx" is a placeholder, and so is
// "EXAMPLE" at the end. Words have no digit, and no capital letter but at the beginning; nor has a
// name, such as sk_live_demo_page.
func (p tokenPrefix) follows(rest string) bool {
	n, letters, varied, coded := 0, 0, false, false
	for n < min(len(rest), longestToken) && (isWordByte(rest[n]) && rest[n] != '_' || p.loose && strings.IndexByte("-_.", rest[n]) >= 0) {
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
	return n >= p.least && (varied || n == 1) && (coded || !p.words && !strings.HasPrefix(rest[n:], "_")) && !strings.HasSuffix(rest[:n], "EXAMPLE")
}

func isWordByte(c byte) bool {
	return isLower(c) || isUpper(c) || c >= '0' && c <= '9' || c == '_'
}

// plainValues are policies, never secrets.
var plainValues = append(strings.Fields(`
	true false yes no on off none null nil ~ enabled disabled required optional always never auto string str text integer int number
	boolean bool bytes object array any basic bearer jwt oidc ldap rbac webhook simple prompt not`), "")

// referenceBegins begin the location of a secret, or an encrypted secret.
var referenceBegins = []string{"$(", "${", "$__", "{{", "{%", "<redacted", "%(", "%{", "#{", "ENC(", "ENC[", "{cipher}", "vault:", "!vault", "ref+",
	"secretref", "env:", "file:", "op://", "id=", "arn:aws:", "@Microsoft.KeyVault", "kv://", "-----BEGIN CERTIFICATE", "-----BEGIN PUBLIC KEY",
	"ssh-rsa ", "ssh-ed25519 ", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"}

var (
	filePath    = compiled(`^(?:[~.]{0,2}(?:/[A-Za-z0-9._-]+){2,}/?|[A-Za-z0-9._/-]+\.(?:key|pem|crt|cer|txt|json|ya?ml|p12|jks|keytab|conf))$`)
	placeholder = compiled(`^(?:<[^<>]*>|\*+|[xX]{3,}|\.\.\.)$`)
	webAddress  = compiled(`^[a-z]+://[^@]*$`)
	number      = compiled(`^[0-9.]{1,9}(?:ms|[smhdw])?$`)
	variable    = compiled(`^\$[A-Za-z_][\w.:-]*\W?$`)
	// codeValue is a call, or a field of a program's settings.
	codeValue = compiled(`^(?:[A-Za-z_][\w.]*[(\[]|%[A-Z_]+%|%[sdv]|await$|new$|` +
		"`" + `|(?:var|local|data|module|self|this|os|process\.env|env|request|req|config|settings|params|inputs|ngx)\.[A-Za-z_])`)
	authScheme = compiled(`^(?i:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256)\s+(\S.*)$`)
	lowWord    = compiled(`^[a-z]+\.?$`)
)

// isSecret reports whether text is a secret by the sort of its name. References, placeholders and
// policies are none.
func (s sort) isSecret(text string) bool {
	switch s {
	case plainName:
		return false
	case headerName:
		if scheme := authScheme().FindStringSubmatch(text); scheme != nil {
			return isLiteral(scheme[1]) && !variable().MatchString(scheme[1])
		}
		return isLiteral(text) && len(text) >= shortest && strings.ContainsAny(text, "0123456789=") && !strings.Contains(text, " ")
	case tokenName:
		return isLiteral(text) && !number().MatchString(text) && !webAddress().MatchString(text)
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
	isPath := strings.ContainsAny(text, "./") && filePath().MatchString(text)
	return !isReference && !isPath && !placeholder().MatchString(text)
}
