package sanitize

import (
	"regexp"
	"strings"
)

// isType reports whether a text in a field names a type or is made by a server. A label may have
// the name of such a field: what is no type there is a text like others.
func isType(field, text string) bool {
	switch field {
	case "kind":
		return text != "" && text[0] >= 'A' && text[0] <= 'Z'
	case "uid":
		return len(text) == len("00000000-0000-0000-0000-000000000000") && strings.Count(text, "-") == 4
	}
	return strings.Contains(" apiVersion apiGroup apiGroups verbs resourceVersion fieldsType creationTimestamp ", " "+field+" ")
}

// localNames are the fields of things with a name that only their own object knows.
const localNames = ` containers initContainers ephemeralContainers containerStatuses initContainerStatuses ephemeralContainerStatuses ports port env httpHeaders
	sysctls conditions versions names webhooks variables matchConditions metric resource container claims resourceClaims drivers options listeners
	additionalPrinterColumns params parameters headers tags devices requests rules `

// nameFields hold the name of an object, as those do that end in "name" or "namespace". With a
// label the same fields are in all selectors.
const nameFields = ` app k8s-app instance release subdomain holderidentity selected-node nodeid resourcenames namespaces ingress.class storage-class leader `

// otherNames end in "name", and hold no name of an object.
const otherNames = " portname containername schedulername sectionname controllername drivername signername scopename username filename "

// holdsName reports whether a field holds the name of an object.
func holdsName(field, parent string) bool {
	if field == "name" && strings.Contains(localNames, " "+parent+" ") {
		return false
	}
	field = strings.ToLower(field[strings.LastIndexByte(field, '/')+1:])
	if strings.HasSuffix(field, "name") || strings.HasSuffix(field, "namespace") {
		return !strings.Contains(otherNames, " "+field+" ")
	}
	return field != "" && strings.Contains(nameFields, " "+field+" ")
}

var (
	serviceHost    = regexp.MustCompile(`\b[a-z0-9.-]+\.svc\b`)
	serviceAccount = regexp.MustCompile(`\bsystem:serviceaccounts?:[a-z0-9.:-]+`)
	storageQuota   = regexp.MustCompile(`^[a-z0-9.-]+\.storageclass\.storage\.k8s\.io/`)
	// selectors in texts, as those of Calico: app == 'web', app in {'web', 'db'}
	selectorTerm   = regexp.MustCompile(`([A-Za-z0-9./_-]+)( *[!=]=? *| +(?:not +)?in *)(\{[^{}]*\}|\([^()]*\)|'[^']*'|"[^"]*"|[A-Za-z0-9._-]+)`)
	selectorValue  = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._-]*`)
	namespacedName = regexp.MustCompile(`^[a-z0-9-]+/[a-z0-9.-]+$`)
)

// places replaces names where the rest of a text tells that they are names.
func (e *editor) places(s string) string {
	if strings.Contains(s, ".svc") {
		s = serviceHost.ReplaceAllStringFunc(s, func(host string) string { return e.each(host, ".", strings.Count(host, ".")) })
	}
	if strings.Contains(s, "system:serviceaccount") {
		s = serviceAccount.ReplaceAllStringFunc(s, func(user string) string {
			_, names, _ := strings.Cut(strings.TrimPrefix(user, "system:"), ":")
			return strings.TrimSuffix(user, names) + e.each(names, ":", 2)
		})
	}
	if storageQuota.MatchString(s) {
		class, rest, _ := strings.Cut(s, ".storageclass.")
		alias, _ := e.alias(class)
		s = alias + ".storageclass." + rest
	}
	if len(s) <= longestSelector && (strings.Contains(s, "=") || strings.Contains(s, " in ")) {
		s = e.selector(s)
	}
	if namespacedName.MatchString(s) {
		ns, name, _ := strings.Cut(s, "/")
		if e.names[wordsOf(ns)]&namespace != 0 && !e.phrases[ns] {
			if alias, is := e.alias(name); is {
				ns, _ = e.alias(ns)
				return ns + "/" + alias
			}
		}
	}
	return s
}

// longestSelector is how many bytes a text may have to be searched for terms of a selector.
const longestSelector = 4096

// selector replaces names where a text compares a label that holds one.
func (e *editor) selector(s string) string {
	return selectorTerm.ReplaceAllStringFunc(s, func(term string) string {
		of := selectorTerm.FindStringSubmatch(term)
		if !holdsName(of[1], "") {
			return term
		}
		return of[1] + of[2] + selectorValue.ReplaceAllStringFunc(of[3], func(name string) string {
			alias, _ := e.alias(name)
			return alias
		})
	})
}

// each replaces the first n parts of a text that are names.
func (e *editor) each(s, separator string, n int) string {
	parts := strings.Split(s, separator)
	for i := range min(n, len(parts)) {
		parts[i], _ = e.alias(parts[i])
	}
	return strings.Join(parts, separator)
}
