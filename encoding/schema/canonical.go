package schema

import (
	"time"
	"unicode/utf8"
)

// isCanonicalMeta says, without the way there and back through
// metav1.ObjectMeta that a server takes, that it would leave this metadata as
// it is: known fields only, of the right types, none of them empty. Objects that
// a server wrote are like that. In doubt it says no.
func isCanonicalMeta(value any) bool {
	metadata, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range metadata {
		switch name {
		case "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion":
			ok = isText(value)
		case "generation":
			generation, isInt := value.(int64)
			ok = isInt && generation != 0
		case "deletionGracePeriodSeconds":
			_, ok = value.(int64)
		case "creationTimestamp", "deletionTimestamp":
			ok = isCanonicalTime(value)
		case "labels", "annotations":
			ok = isCanonicalMap(value)
		case "finalizers":
			ok = isCanonicalList(value, isString)
		case "ownerReferences":
			ok = isCanonicalList(value, isCanonicalOwner)
		case "managedFields":
			ok = isCanonicalList(value, isCanonicalEntry)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}

func isCanonicalOwner(value any) bool {
	reference, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for _, required := range []string{"apiVersion", "kind", "name", "uid"} { // written even where empty
		if !isString(reference[required]) {
			return false
		}
	}
	for name, value := range reference {
		switch name {
		case "apiVersion", "kind", "name", "uid":
		case "controller", "blockOwnerDeletion":
			if _, ok := value.(bool); !ok {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func isCanonicalEntry(value any) bool {
	entry, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range entry {
		switch name {
		case "manager", "operation", "apiVersion", "fieldsType", "subresource":
			ok = isText(value)
		case "time":
			ok = isCanonicalTime(value)
		case "fieldsV1":
			ok = isCanonicalFields(value)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}

// isCanonicalFields accepts objects of objects only, as field managers write
// them, whose text and back is the same.
func isCanonicalFields(value any) bool {
	fields, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for name, below := range fields {
		if !utf8.ValidString(name) || !isCanonicalFields(below) {
			return false
		}
	}
	return true
}

func isCanonicalList(value any, isCanonical func(any) bool) bool {
	list, ok := value.([]any)
	for _, element := range list {
		if !isCanonical(element) {
			return false
		}
	}
	return ok && len(list) > 0
}

func isCanonicalMap(value any) bool {
	texts, ok := value.(map[string]any)
	for name, text := range texts {
		if !utf8.ValidString(name) || !isString(text) {
			return false
		}
	}
	return ok && len(texts) > 0
}

// isCanonicalTime accepts whole seconds of UTC as metav1.Time writes them.
func isCanonicalTime(value any) bool {
	text, ok := value.(string)
	if !ok || len(text) != len("2006-01-02T15:04:05Z") {
		return false
	}
	t, err := time.Parse(time.RFC3339, text)
	return err == nil && !t.IsZero() && t.UTC().Format(time.RFC3339) == text
}

func isString(value any) bool {
	text, ok := value.(string)
	return ok && utf8.ValidString(text) // JSON would replace the bytes
}

func isText(value any) bool { return isString(value) && value != "" }
