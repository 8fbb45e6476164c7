package render

import (
	"slices"
	"strconv"
	"strings"
)

// Name returns a name for a terminal: quoted if it is not printable, or looks quoted.
func Name(s string) string {
	if strings.HasPrefix(s, `"`) {
		return strconv.Quote(s)
	}
	return Printable(s)
}

// QuoteNames quotes the names in v, which is decoded JSON, in place, so that no name forges a line
// of output, and returns v. Names are field names, the strings of metadata except annotations, and
// the strings of fields for a name or a word of the API, such as reason. An API server accepts no
// line end in them. Other strings may have several lines, and kubectl prints them unchanged. A
// schema has no names of an object.
func QuoteNames(v any) any {
	if object, _ := v.(map[string]any); object["kind"] == "Table" {
		nameCells(object)
	}
	return quoteNames(v, "", false)
}

func quoteNames(v any, field string, metadata bool) any {
	switch v := v.(type) {
	case string:
		if metadata || isName(field) {
			return Name(v)
		}
	case []any:
		for i := range v {
			v[i] = quoteNames(v[i], field, metadata)
		}
	case map[string]any:
		named := v
		for key := range v {
			if Name(key) != key {
				named = make(map[string]any, len(v))
				break
			}
		}
		for key, below := range v {
			inside := key == "metadata" && field != "properties" || metadata && key != "annotations"
			named[Name(key)] = quoteNames(below, key, inside)
		}
		return named
	}
	return v
}

func isName(field string) bool {
	return strings.HasSuffix(field, "Name") || slices.Contains([]string{"name", "namespace", "uid", "apiVersion",
		"kind", "type", "reason"}, field)
}

// nameCells quotes the cells of a Table in columns with the format "name".
func nameCells(table map[string]any) {
	columns, _ := table["columnDefinitions"].([]any)
	rows, _ := table["rows"].([]any)
	for _, row := range rows {
		row, _ := row.(map[string]any)
		cells, _ := row["cells"].([]any)
		for i := range min(len(cells), len(columns)) {
			column, _ := columns[i].(map[string]any)
			if text, isText := cells[i].(string); isText && column["format"] == "name" {
				cells[i] = Name(text)
			}
		}
	}
}
