package sanitize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/redact"
)

// editor replaces names in the content of objects.
type editor struct {
	*dictionary
	replaced int            // number of texts
	left     map[string]int // ambiguous names, with the number of texts that keep them
	depth    int            // levels of nested texts
	unpacker *redact.Unpacker
	wrong    error // first failed search
}

// edit returns an editor with its own counters.
func (d *dictionary) edit() *editor {
	return &editor{dictionary: d, left: map[string]int{}, unpacker: redact.NewUnpacker()}
}

// deepestNames bounds the levels of nested texts, such as JSON in base64, that are searched for
// names.
const deepestNames = 5

// errNames is returned for a map with two names of the same alias.
var errNames = errors.New("two names become one")

func (e *editor) object(content map[string]any) error {
	return cmp.Or(e.fields(content, ""), e.wrong)
}

func (e *editor) fields(m map[string]any, parent string) (err error) {
	label, _ := m["key"].(string) // of a requirement
	if m["scopeName"] != nil {
		label = "name"
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		child := m[name]
		if name == "resources" && m["apiGroups"] != nil {
			continue
		}
		field := name
		switch name {
		case "values":
			field = cmp.Or(label, name)
		case "default", "enum", "example": // in a schema: the values that objects have in this field
			if _, is := m["type"].(string); is {
				field = parent
			}
		}
		if child, err = e.value(child, field, parent); err != nil {
			return err
		}
		alias := e.text(name)
		if alias != name {
			if _, twice := m[alias]; twice {
				return fmt.Errorf("%w: %s", errNames, parent)
			}
			delete(m, name)
		}
		m[alias] = child
	}
	return nil
}

func (e *editor) value(value any, field, parent string) (any, error) {
	switch v := value.(type) {
	case string:
		if isType(field, v) {
			return v, nil
		}
		if holdsName(field, parent) {
			return e.name(v), nil
		}
		return e.text(v), nil
	case map[string]any:
		return v, e.fields(v, field)
	case []any:
		for i, child := range v {
			var err error
			if v[i], err = e.value(child, field, parent); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// name replaces the value of a name field, also with an added suffix, as in generateName, the
// holder of a lease, or an Event.
func (e *editor) name(s string) string {
	if alias, is := e.alias(s); is {
		return e.count(s, alias)
	}
	if at := strings.LastIndexAny(s, "-_."); at > 0 {
		if alias, is := e.alias(s[:at]); is {
			return e.count(s, alias+e.inText(s[at:], e.leave))
		}
	}
	return e.text(s)
}

func (e *editor) leave(name string) { e.left[strings.ToLower(name)]++ }

func (e *editor) count(before, after string) string {
	if before != after {
		e.replaced++
	}
	return after
}

// text replaces the names in a text, also inside JSON and encoded data.
func (e *editor) text(s string) string {
	if len(s) < 2 {
		return s
	}
	if e.depth < deepestNames {
		e.depth++
		defer func() { e.depth-- }()
		if s[0] == '{' || s[0] == '[' {
			if out, is := e.json(s); is {
				return out
			}
		}
		out, is, err := e.unpacker.Repack(s, e.text)
		if e.wrong = cmp.Or(e.wrong, err); is {
			return e.count(s, out)
		}
	}
	return e.count(s, e.inText(e.places(s), e.leave))
}

// json edits JSON. It returns false for other texts, and if names would collide.
func (e *editor) json(s string) (string, bool) {
	inner := &editor{dictionary: e.dictionary, left: map[string]int{}, depth: e.depth, unpacker: e.unpacker}
	failed := false
	out, err := redact.EditJSON(s, func(content any) any {
		content, err := inner.value(content, "", "")
		failed = failed || err != nil
		return content
	})
	e.wrong = cmp.Or(e.wrong, inner.wrong)
	if err != nil || failed {
		return "", false
	}
	for name, n := range inner.left {
		e.left[name] += n
	}
	if inner.replaced == 0 {
		return s, true
	}
	e.replaced += inner.replaced
	return out, true
}

// isType reports whether a field's text is a type name or is written by the server. Labels may have
// such a field's name; their other values are ordinary texts.
func isType(field, text string) bool {
	switch field {
	case "kind":
		return text != "" && text[0] >= 'A' && text[0] <= 'Z'
	case "uid":
		return len(text) == len("00000000-0000-0000-0000-000000000000") && strings.Count(text, "-") == 4
	}
	return strings.Contains(" apiVersion apiGroup apiGroups verbs resourceVersion fieldsType creationTimestamp ",
		" "+field+" ")
}

// localNames lists the fields whose items have names with a meaning only in their object.
const localNames = " containers initContainers ephemeralContainers containerStatuses initContainerStatuses " +
	"ephemeralContainerStatuses ports port env httpHeaders sysctls conditions versions names webhooks " +
	"variables matchConditions metric resource container claims resourceClaims drivers options listeners " +
	"additionalPrinterColumns params parameters headers tags devices requests rules "

// nameFields lists fields and labels with names of objects, besides those that end in "name" or
// "namespace". Selectors with these labels have the same fields.
const nameFields = ` app k8s-app instance release subdomain holderidentity selected-node nodeid resourcenames ` +
	`namespaces ingress.class storage-class leader `

// otherNames lists fields that end in "name" without the name of an object.
const otherNames = " portname containername schedulername sectionname controllername drivername signername scopename " +
	"username filename "

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
	serviceHost    = pattern.New(`\b[a-z0-9.-]+\.svc\b`)
	serviceAccount = pattern.New(`\bsystem:serviceaccounts?:[a-z0-9.:-]+`)
	storageQuota   = pattern.New(`^[a-z0-9.-]+\.storageclass\.storage\.k8s\.io/`)
	// a term of a selector in a text, as in Calico: app == 'web', app in {'web', 'db'}
	selectorTerm = pattern.New(
		`([A-Za-z0-9./_-]+)( *[!=]=? *| +(?:not +)?in *)(\{[^{}]*\}|\([^()]*\)|'[^']*'|"[^"]*"|[A-Za-z0-9._-]+)`)
	selectorValue  = pattern.New(`[A-Za-z0-9][A-Za-z0-9._-]*`)
	namespacedName = pattern.New(`^[a-z0-9-]+/[a-z0-9.-]+$`)
)

// places replaces names recognized by the text around them.
func (e *editor) places(s string) string {
	if strings.Contains(s, ".svc") {
		s = serviceHost().ReplaceAllStringFunc(s, func(host string) string {
			return e.each(host, ".",
				strings.Count(host, "."))
		})
	}
	if strings.Contains(s, "system:serviceaccount") {
		s = serviceAccount().ReplaceAllStringFunc(s, func(user string) string {
			_, names, _ := strings.Cut(strings.TrimPrefix(user, "system:"), ":")
			return strings.TrimSuffix(user, names) + e.each(names, ":", 2)
		})
	}
	if storageQuota().MatchString(s) {
		class, rest, _ := strings.Cut(s, ".storageclass.")
		alias, _ := e.alias(class)
		s = alias + ".storageclass." + rest
	}
	if len(s) <= longestSelector && (strings.Contains(s, "=") || strings.Contains(s, " in ")) {
		s = e.selector(s)
	}
	if namespacedName().MatchString(s) {
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

// longestSelector bounds the texts to search for terms of selectors, in bytes.
const longestSelector = 4096

// selector replaces names that a text compares with a name label.
func (e *editor) selector(s string) string {
	return selectorTerm().ReplaceAllStringFunc(s, func(term string) string {
		of := selectorTerm().FindStringSubmatch(term)
		if !holdsName(of[1], "") {
			return term
		}
		return of[1] + of[2] + selectorValue().ReplaceAllStringFunc(of[3], func(name string) string {
			alias, _ := e.alias(name)
			return alias
		})
	})
}

// each replaces the names among the first n parts of a text.
func (e *editor) each(s, separator string, n int) string {
	parts := strings.Split(s, separator)
	for i := range min(n, len(parts)) {
		parts[i], _ = e.alias(parts[i])
	}
	return strings.Join(parts, separator)
}
