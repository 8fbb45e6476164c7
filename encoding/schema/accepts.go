package schema

import (
	"bytes"
	"slices"
	"strings"
)

// maxAccepted is the size of the values that Accepts looks at: none of them takes maxChecks.
const maxAccepted = 16 << 10

// Accepts reports, without decoding a JSON value, that the object is the one its key names, that
// Rewrite changes no more than its apiVersion, and that Validate, Refused and CheckApply then find
// nothing. False means that it has to be decoded to be sure: the answer is never wrong.
func (c *CRD) Accepts(value []byte, namespace, name string) bool {
	at, found := bytes.CutPrefix(value, []byte(`{"apiVersion":"`+c.v1.Spec.Group+"/"))
	end := bytes.IndexByte(at, '"')
	if !found || end < 0 || len(value) > maxAccepted || !isPlainName(name, ".", 253) || namespace != "" && !isPlainName(namespace, "", 63) {
		return false
	}
	stored, storage := c.versions[string(at[:end])], c.versions[c.StorageVersion()]
	if stored == nil || storage == nil || stored != storage && c.Webhook() || (c.v1.Spec.Scope == "Namespaced") != (namespace != "") {
		return false
	}
	a := accepter{crd: c, versions: []*Version{storage}}
	for _, v := range slices.Compact([]*Version{stored, storage}) {
		root := v.settled()
		if root == nil || root.mode != fullPruning {
			return false
		}
		as := *root
		as.apiVersion = stored.gvk().GroupVersion().String()
		s := settler{canonical: canonical{text: value}, root: &as, anyManager: true, namespace: namespace, name: name}
		if !s.object(as.shape, as.mode, true) || string(s.text[s.at:]) != "\n" {
			return false
		}
	}
	for i := 0; i < len(a.versions); i++ { // managedFields may name more
		rules := a.versions[i].rules()
		a.canonical = canonical{text: value}
		if rules == nil || !a.object(rules, true) {
			return false
		}
	}
	return true
}

// isPlainName accepts DNS names of at most so many lower-case letters; a label has no dot.
func isPlainName(name, more string, most int) bool {
	return len(name) > 0 && len(name) <= most && isEdge(name[0]) && isEdge(name[len(name)-1]) &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-"+more) == ""
}

func isEdge(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// accepter passes over a value that is settled at its own and at the storage version.
type accepter struct {
	canonical
	crd      *CRD
	versions []*Version // to check against
}

// object passes an object; root marks the resource itself.
func (a *accepter) object(of *rules, root bool) bool {
	required := 0
	ok := a.members(func(name []byte) bool {
		if slices.Contains(of.required, string(name)) {
			required++
		}
		if root && string(name) == "metadata" {
			return a.members(a.metadata)
		}
		child := of.properties[string(name)]
		switch {
		case child != nil:
			return a.value(child)
		case of.additional != nil:
			return a.value(of.additional)
		}
		return (of.open || root && isMetaField(string(name))) && a.any()
	})
	return ok && required == len(of.required)
}

// value passes any value.
func (a *accepter) value(of *rules) bool {
	switch of.kind {
	case anyValue:
		return a.any()
	case "object":
		return a.peek() == '{' && a.object(of, false)
	case "array":
		return a.peek() == '[' && a.list(func() bool { return a.value(of.items) })
	case "boolean":
		return a.word("true") || a.word("false")
	case "string":
		text, ok := a.str()
		return ok && of.acceptsText(text)
	case "integer":
		digits, ok := a.integer()
		b := a.peek()
		return ok && b != '.' && b != 'e' && b != 'E' && of.acceptsInteger(digits)
	case "number":
		return a.peek() != 'n' && a.peek() != 't' && a.peek() != 'f' && a.number()
	}
	return false
}

// metadata passes a field of the metadata, as validateMeta does.
func (a *accepter) metadata(name []byte) bool {
	switch string(name) {
	case "labels":
		return a.members(func(name []byte) bool {
			value, ok := a.str()
			return ok && isQualified(name) && (len(value) == 0 || isLabel(value))
		})
	case "annotations":
		return a.members(func(name []byte) bool { return isQualified(name) && a.anyString() })
	case "finalizers":
		return a.list(func() bool {
			text, ok := a.str()
			return ok && bytes.IndexByte(text, '/') > 0 && isQualified(text)
		})
	case "generation":
		return a.peek() != '-' && a.number()
	case "ownerReferences":
		controllers := 0
		return a.list(func() bool { return a.members(func(name []byte) bool { return a.owner(name, &controllers) }) })
	case "managedFields":
		return a.list(a.entry)
	case "name", "namespace", "uid", "creationTimestamp":
		return a.anyString()
	}
	return false
}

// owner passes a field of an owner reference.
func (a *accepter) owner(name []byte, controllers *int) bool {
	switch string(name) {
	case "controller":
		if a.peek() == 't' {
			*controllers++
		}
		return *controllers < 2 && a.any()
	case "blockOwnerDeletion":
		return a.any()
	}
	text, ok := a.str()
	return ok && len(text) > 0 && string(text) != "Event" && bytes.Count(text, []byte("/")) < 2 && text[len(text)-1] != '/'
}

// entry passes an entry of managedFields that a server reads.
func (a *accepter) entry() bool {
	required := 0
	ok := a.members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion":
			text, ok := a.str()
			group, version, _ := bytes.Cut(text, []byte("/"))
			v := a.crd.versions[string(version)]
			if !ok || v == nil || string(group) != a.crd.v1.Spec.Group {
				return false
			}
			if !slices.Contains(a.versions, v) {
				a.versions = append(a.versions, v)
			}
			required++
			return true
		case "fieldsType":
			required++
			text, ok := a.str()
			return ok && string(text) == "FieldsV1"
		case "operation":
			required++
			text, ok := a.str()
			return ok && (string(text) == "Apply" || string(text) == "Update")
		case "fieldsV1":
			return a.fields(nil)
		}
		return a.anyString()
	})
	return ok && required == 3
}

// fields passes a set of fields: f:NAME, and nothing that names items of lists.
func (a *accepter) fields([]byte) bool {
	return a.peek() == '{' && a.members(func(name []byte) bool {
		if string(name) == "." {
			return a.word("{}")
		}
		return bytes.HasPrefix(name, []byte("f:")) && bytes.IndexByte(name, '\\') < 0 && a.fields(nil)
	})
}

// isQualified accepts names of labels as they usually are: a DNS name of few parts and a label.
func isQualified(name []byte) bool {
	prefix, label, found := bytes.Cut(name, []byte("/"))
	if !found {
		return isLabel(name)
	}
	if len(prefix) > 63 {
		return false
	}
	for part := range bytes.SplitSeq(prefix, []byte(".")) {
		if !isPlainName(string(part), "", 63) {
			return false
		}
	}
	return isLabel(label)
}

// isLabel accepts the value of a label that is not empty.
func isLabel(text []byte) bool {
	if len(text) == 0 || len(text) > 63 {
		return false
	}
	letter := func(b byte) bool { return isEdge(b) || b >= 'A' && b <= 'Z' }
	for _, b := range text {
		if !letter(b) && b != '-' && b != '_' && b != '.' {
			return false
		}
	}
	return letter(text[0]) && letter(text[len(text)-1])
}
