package schema

import (
	"slices"
	"time"
	"unicode/utf8"
)

// fieldChecks accept an object by its fields: known fields only, each with a canonical value.
type fieldChecks map[string]func(any) bool

func (checks fieldChecks) accept(value any) bool {
	object, ok := value.(map[string]any)
	for name, value := range object {
		check, known := checks[name]
		if !known || !check(value) {
			return false
		}
	}
	return ok
}

// The fields that a server leaves as they are when it decodes metadata into metav1.ObjectMeta and
// encodes it: of the right type and not empty, as in all objects that a server wrote.
var (
	metaFields = fieldChecks{
		"name": isText, "generateName": isText, "namespace": isText, "selfLink": isText, "uid": isText, "resourceVersion": isText,
		"generation":                 func(value any) bool { n, ok := value.(int64); return ok && n != 0 },
		"deletionGracePeriodSeconds": func(value any) bool { _, ok := value.(int64); return ok },
		"creationTimestamp":          isCanonicalTime, "deletionTimestamp": isCanonicalTime,
		"labels": isCanonicalMap, "annotations": isCanonicalMap,
		"finalizers":      listOf(isString),
		"ownerReferences": listOf(isCanonicalOwner),
		"managedFields":   listOf(entryFields.accept),
	}
	ownerFields = fieldChecks{
		"apiVersion": isString, "kind": isString, "name": isString, "uid": isString,
		"controller": isBool, "blockOwnerDeletion": isBool,
	}
	entryFields = fieldChecks{
		"manager": isText, "operation": isText, "apiVersion": isText, "fieldsType": isText, "subresource": isText,
		"time": isCanonicalTime, "fieldsV1": isCanonicalFields,
	}
)

func isCanonicalOwner(value any) bool {
	reference, _ := value.(map[string]any)
	missing := func(name string) bool { return reference[name] == nil } // a server writes these even if they are empty
	return ownerFields.accept(value) && !slices.ContainsFunc([]string{"apiVersion", "kind", "name", "uid"}, missing)
}

// isCanonicalFields accepts objects of objects only, as field managers write them.
func isCanonicalFields(value any) bool { return isMapOf(value, isCanonicalFields) }

func isMapOf(value any, accept func(any) bool) bool {
	fields, ok := value.(map[string]any)
	for name, value := range fields {
		if !utf8.ValidString(name) || !accept(value) {
			return false
		}
	}
	return ok
}

func listOf(accept func(any) bool) func(any) bool {
	return func(value any) bool {
		list, _ := value.([]any)
		return len(list) > 0 && !slices.ContainsFunc(list, func(element any) bool { return !accept(element) })
	}
}

func isCanonicalMap(value any) bool {
	texts, _ := value.(map[string]any)
	return len(texts) > 0 && isMapOf(value, isString)
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

func isBool(value any) bool { _, ok := value.(bool); return ok }
