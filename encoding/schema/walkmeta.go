package schema

import "bytes"

// metaMember consumes apiVersion, kind or metadata of the resource, or of an embedded resource.
func (w *walker) metaMember(name []byte, root bool) bool {
	switch {
	case string(name) == "metadata":
		return w.metadata(root)
	case !root:
		return w.Str()
	case string(name) == "kind":
		return w.is(w.crd.GroupKind().Kind)
	}
	version, ok := w.groupVersion()
	return ok && string(version) == w.stored
}

// is consumes the string want.
func (w *walker) is(want string) bool {
	got, ok := w.str()
	return ok && string(got) == want
}

// metadata consumes metadata; false unless a server's decoder and encoder leave the metadata
// unchanged. Metadata of the resource must fit its key, and must have no fields that a server
// clears.
func (w *walker) metadata(root bool) bool {
	required := 0
	ok := w.Members(func(name []byte) bool {
		switch string(name) {
		case "name", "namespace", "generation":
			required++
		case "selfLink", "resourceVersion":
			return !root && w.filled()
		}
		switch {
		case root && string(name) == "name":
			return w.is(w.name)
		case root && string(name) == "namespace":
			return w.namespace != "" && w.is(w.namespace)
		}
		return w.metaField(name, root)
	})
	return ok && (!root || required == 3 || required == 2 && w.namespace == "")
}

// metaField consumes a field of metadata, and notes whether validateMeta accepts the field.
func (w *walker) metaField(name []byte, root bool) bool {
	switch string(name) {
	case "uid":
		return w.filled()
	case "name", "namespace", "generateName": // those of the resource are checked by metadata
		w.note(true, false)
		return w.filled()
	case "generation":
		n, ok := w.Integer()
		w.note(true, ok && n[0] != '-')
		return ok && string(n) != "0"
	case "deletionGracePeriodSeconds":
		_, ok := w.Integer()
		w.note(true, false)
		return ok
	case "deletionTimestamp":
		w.note(true, false)
		return w.time()
	case "creationTimestamp":
		return w.time()
	case "labels":
		return w.peekPast() != '}' && w.Members(w.label)
	case "annotations":
		return w.peekPast() != '}' && w.Members(func(name []byte) bool {
			w.note(true, isQualified(name))
			return w.Str()
		})
	case "finalizers":
		return w.peekPast() != ']' && w.Elements(w.finalizer)
	case "ownerReferences":
		controllers := 0
		return w.peekPast() != ']' && w.Elements(func() bool { return w.owner(&controllers) })
	case "managedFields":
		start := w.At
		ok := w.peekPast() != ']' && w.Elements(func() bool { return w.entry(root) })
		if root {
			w.entries = w.Text[start:w.At]
		}
		return ok
	}
	return false
}

func (w *walker) label(name []byte) bool {
	value, ok := w.quoted()
	w.note(true, isQualified(name) && (len(value) == 0 || isLabel(value)))
	return ok
}

func (w *walker) finalizer() bool {
	text, ok := w.quoted()
	w.note(true, bytes.IndexByte(text, '/') > 0 && isQualified(text))
	return ok
}

// owner consumes an owner reference. A server writes four of its fields even if empty.
func (w *walker) owner(controllers *int) bool {
	required := 0
	ok := w.Members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion", "kind", "name", "uid":
			required++
			text, ok := w.quoted()
			w.note(true, len(text) > 0 && string(text) != "Event" && bytes.Count(text, []byte("/")) < 2 &&
				text[len(text)-1] != '/')
			return ok
		case "controller":
			if w.Next() == 't' {
				*controllers++
			}
			w.note(true, *controllers < 2)
			fallthrough
		case "blockOwnerDeletion":
			return w.Word("true") || w.Word("false")
		}
		return false
	})
	return ok && required == 4
}

// entry consumes an entry of managedFields, in the resource itself at a listed version, and notes
// whether a server reads the entry.
func (w *walker) entry(root bool) bool {
	versioned, readable := !root, 0
	ok := w.Members(func(name []byte) bool {
		switch string(name) {
		case "apiVersion":
			versioned = true
			if root {
				return w.version()
			}
			return w.filled()
		case "fieldsType", "operation":
			text, ok := w.str()
			if is := string(text); is == "FieldsV1" && len(name) == len("fieldsType") ||
				(is == "Apply" || is == "Update") && len(name) == len("operation") {
				readable++
			}
			return ok && len(text) > 0
		case "manager", "subresource":
			return w.filled()
		case "time":
			return w.time()
		case "fieldsV1":
			return w.fields()
		}
		return false
	})
	w.note(true, readable == 2)
	return ok && versioned
}

// version consumes the apiVersion of an entry.
func (w *walker) version() bool {
	version, ok := w.groupVersion()
	v := w.crd.versions[string(version)]
	return ok && v != nil && w.versions.add(v)
}

// groupVersion consumes an apiVersion of the group and returns the version.
func (w *walker) groupVersion() (version []byte, ok bool) {
	text, ok := w.str()
	version, found := bytes.CutPrefix(text, []byte(w.crd.prefix))
	return version, ok && found
}

// fields consumes an object that holds only objects, and notes whether all names are paths.
func (w *walker) fields() bool {
	return w.Next() == '{' && w.Members(func(name []byte) bool {
		switch {
		case string(name) == ".":
			w.note(true, w.peekPast() == '}')
		case bytes.HasPrefix(name, []byte("f:")):
			w.note(true, bytes.IndexByte(name, '\\') < 0)
		default:
			w.note(true, w.unquote(name) && isPlainElement(w.unquoted))
		}
		return w.fields()
	})
}

// unquote sets unquoted to text without the backslashes before quotes, or returns false for other
// escapes.
func (w *walker) unquote(text []byte) bool {
	w.unquoted = w.unquoted[:0]
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			if i++; text[i] != '"' {
				return false
			}
		}
		w.unquoted = append(w.unquoted, text[i])
	}
	return true
}

// isQualified accepts the usual names of labels: a DNS name of few parts and a label.
func isQualified(name []byte) bool {
	prefix, label, found := bytes.Cut(name, []byte("/"))
	if !found {
		return isLabel(name)
	}
	if len(prefix) > 63 {
		return false
	}
	for part := range bytes.SplitSeq(prefix, []byte(".")) {
		if !isPlainName(part, 63, false) {
			return false
		}
	}
	return isLabel(label)
}

// isLabel reports whether text is a non-empty value of a label.
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
