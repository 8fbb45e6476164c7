package redact

import (
	"slices"
	"strings"
)

// Names are compared in lower case and without what separates words, so that clientSecret, CLIENT_SECRET and client-secret are one.
// Of a name its end decides: passwordFile is a file. In these tables "-" stands before what must be a word of its own.
var (
	// secretEndings end names of secrets.
	secretEndings = byLastLetter(
		"password", "passwd", "passphrase", "passcode", "pass", "pwd", "passwordhash", "passwdhash", "pincode", "-pw", "bindpw", "rootpw",
		"userpw", "adminpw", "psk", "secret", "token", "authtok", "-creds", "credential", "bindcredentials", "-credentials",
		"privatekey", "secretkey", "apikey", "accesskey", "sharedkey", "accountkey", "storagekey", "encryptionkey", "decryptionkey",
		"signingkey", "signaturekey", "masterkey", "hmackey", "cryptkey", "cipherkey", "jwtkey", "sessionkey", "cookiekey", "authkey",
		"authenticationkey", "loggedinkey", "noncekey", "-appkey", "applicationkey", "clientkey", "clientkeydata", "serverkey",
		"sshkey", "deploykey", "rsakey", "aeskey", "rootkey", "adminkey", "servicekey", "integrationkey", "licensekey", "subscriptionkey",
		"ingestkey", "writekey", "fernetkey", "-seckey", "unsealkey", "recoverykey", "functionkey", "saskey", "symmetrickey", "restuserkey", "keymaterial",
		"sharedaccesssignature", "erlangcookie", "mnemonic", "seedphrase", "-salt", "-jwt", "-pat", "-bearer", "redisauth", "rediscliauth", "masterauth",
		"applicationcredentialsecret", "securejson", "keytab", "passwordsha", "passworddoublesha", "communitystring", "vaultsecretid", "snmpcommunity",
	)
	// harmlessEndings end names that one of the endings above would hide: those of references, of paging and of other things. The longer ending wins.
	harmlessEndings = byLastLetter(
		"existingsecret", "pullsecret", "tlssecret", "sslsecret", "casecret", "certsecret", "certificatesecret", "sourcesecret",
		"targetsecret", "configsecret", "kubeconfigsecret", "credentialsecret", "credentialssecret", "passwordsecret", "fromsecret",
		"registrysecret", "externalsecret", "sealedsecret", "/auth-secret", "checksum/secret", "usesecret", "createsecret",
		"pagetoken", "continuetoken", "nexttoken", "synctoken", "usetoken", "publictoken", "csrftoken", "bypass", "compass", "encompass",
		"trespass", "proxypass", "fastcgipass", "uwsgipass", "grpcpass", "scgipass", "publicapikey", "existingcredential",
	)
	// headerEndings end names of headers whose value is a secret where it has the form of one: "authorization: enabled" is none.
	headerEndings = []string{"authorization", "cookie", "-auth"}
	// neutralWords at the end of a name say nothing of what it names.
	neutralWords = []string{"value", "text", "txt", "string", "plain", "plaintext", "clear", "cleartext", "raw", "literal", "base", "b",
		"encoded", "hex", "pem", "data", "old", "new", "current", "previous", "default", "prod", "production", "dev", "staging",
		"test", "live", "primary", "secondary"}
	// measures begin names of numbers.
	measures = []string{"max", "min", "num", "total", "count"}
	// pointerEndings end names of what stands beside a secret, or says where it is, in an object with the name of a secret.
	pointerEndings = []string{"name", "namespace", "key", "keys", "kind", "version", "group", "type", "source", "from", "path", "file", "ref",
		"mode", "property", "provider", "engine", "store", "mount", "role", "audience", "url", "uri", "host", "port", "format", "encoding",
		"algorithm", "-id", "user", "account", "description", "title", "pattern", "policy", "region", "endpoint", "scheme", "issuer", "prefix", "header",
		"location", "-in", "scope", "time", "-at", "status", "reason", "message"}
	// pointerFields stand beside a field "secretKey" or "passwordKey" that names an entry of a Secret.
	pointerFields = []string{"remoteRef", "secretRef", "secretName", "secretPath", "objectName", "sourceRef", "existingSecret"}
	// keyFiles are names of files that hold private keys, and their endings.
	keyFiles = []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".key", ".pem", ".p12", ".pfx", ".jks", ".keystore", ".keytab", ".ppk"}
)

// endings are those of a table by their last letter.
type endings map[byte][]string

func byLastLetter(table ...string) endings {
	out := endings{}
	for _, ending := range table {
		last := ending[len(ending)-1]
		out[last] = append(out[last], ending)
	}
	return out
}

// longest is the length of the longest of them that a name ends in, as words makes it, 0 for none.
func (e endings) longest(dashed string) (length int) {
	for _, ending := range e[dashed[len(dashed)-1]] {
		if len(ending) > length && endsIn(dashed, ending) {
			length = len(ending)
		}
	}
	return length
}

// endsIn tells whether the words of a name end in an ending, in which a dash at the beginning is the start of a word.
func endsIn(dashed, ending string) bool {
	i, e := len(dashed)-1, len(ending)-1
	for ; e >= 0 && i >= 0; i-- {
		switch {
		case dashed[i] == ending[e]:
			e--
		case dashed[i] != '-':
			return false
		}
	}
	return e < 0
}

// longestTold is how much of the end of a name is looked at, in bytes.
const longestTold = 128

// words is a name as the tables have it: its words in lower case, a dash before each, without digits at the end. "/" is kept.
func words(name string) string {
	name = name[max(0, len(name)-longestTold):]
	out := make([]byte, 0, len(name)+8)
	word := false // the last byte belongs to a word
	for i := 0; i < len(name); i++ {
		c := name[i]
		lower := c | 0x20
		letter := lower >= 'a' && lower <= 'z'
		switch {
		case !letter && (c < '0' || c > '9'):
			if word = false; c == '/' {
				out = append(out, '/')
			}
			continue
		case !word || c != lower && letter && i > 0 && (isLower(name[i-1]) || i+1 < len(name) && isLower(name[i+1]) && isUpper(name[i-1])):
			out = append(out, '-')
		}
		if word = true; letter {
			c = lower
		}
		out = append(out, c)
	}
	return strings.TrimRight(string(out), "0123456789-")
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// sort is what a name says of its value.
type sort int

const (
	plainName  sort = iota
	headerName      // a secret where the value has the form of one
	tokenName       // a secret, unless it is a number
	secretName
)

// sortOf tells by its name what a value is.
func sortOf(name string) sort {
	if !mayName(name) || strings.HasSuffix(name, ")") { // "def login(password):"
		return plainName
	}
	dashed := words(name)
	for {
		if dashed == "" {
			return plainName
		}
		last := dashed[strings.LastIndexByte(dashed, '-')+1:]
		if !slices.Contains(neutralWords, last) {
			break
		}
		dashed = strings.TrimRight(dashed[:len(dashed)-len(last)-1], "0123456789-")
	}
	if sort := sortOfWords(dashed); sort != plainName {
		return sort
	}
	return sortOfWords(strings.TrimSuffix(dashed, "s"))
}

func sortOfWords(dashed string) sort {
	if dashed == "" {
		return plainName
	}
	secret := secretEndings.longest(dashed)
	if secret <= harmlessEndings.longest(dashed) {
		secret = 0
	}
	first, _, _ := strings.Cut(dashed[1:], "-")
	switch {
	case slices.Contains(measures, first):
		return plainName
	case secret > 0:
		if strings.Contains(dashed, "pass") && dashed != "-pass" || strings.HasSuffix(dashed, "pwd") {
			return secretName
		}
		return tokenName
	case slices.ContainsFunc(headerEndings, func(e string) bool { return endsIn(dashed, e) }):
		return headerName
	}
	return plainName
}

// mayName looks for the letters that all names of secrets have: it is asked of every field, and nearly all have none.
func mayName(name string) bool {
	for i := 0; i+1 < len(name); i++ {
		switch [2]byte{name[i] | 0x20, name[i+1] | 0x20} {
		case [2]byte{'p', 'a'}, [2]byte{'p', 'w'}, [2]byte{'p', 's'}, [2]byte{'s', 'e'}, [2]byte{'t', 'o'}, [2]byte{'k', 'e'},
			[2]byte{'c', 'r'}, [2]byte{'a', 'u'}, [2]byte{'p', 'i'}, [2]byte{'s', 'a'}, [2]byte{'s', 'i'}, [2]byte{'c', 'o'},
			[2]byte{'m', 'n'}, [2]byte{'j', 'w'}, [2]byte{'b', 'e'}:
			return true
		}
	}
	return false
}

// isPointer tells whether a field of an object with the name of a secret holds no secret.
func isPointer(name string) bool {
	dashed := words(name)
	return slices.ContainsFunc(pointerEndings, func(e string) bool { return endsIn(dashed, e) })
}

// isKeyFile tells by its name whether a file holds a private key, or a certificate.
func isKeyFile(name string) bool {
	name = strings.ToLower(name)
	return !strings.Contains(name, "trust") && slices.ContainsFunc(keyFiles, func(end string) bool { return strings.HasSuffix(name, end) })
}
