package columns

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/etcdshift/etcdshift/inspect"
)

// Table is how objects of one type are shown.
type Table struct {
	Columns []metav1.TableColumnDefinition // those of priority 1 and above are for wide tables
	LeftOut int                            // columns after the first 100 of a CustomResourceDefinition
	// Row gives the cells of an object in JSON content: strings, numbers, booleans, nil for an empty one, or an error that wraps
	// jsonpath.ErrTooMuch for one whose path finds too much.
	Row func(content map[string]any, now time.Time) []any
}

// For returns the table of a type.
func For(t *inspect.Type) Table {
	if b, known := builtins()[t.Name()]; known && t.Builtin {
		return Table{Columns: definitions(b.columns), Row: safely(b.row)}
	}
	if t.CRD != nil {
		return custom(t.CRD)
	}
	if t.Builtin {
		return Table{Columns: definitions("Name|Created At"), Row: safely(func(content map[string]any, _ time.Time) []any {
			o := unstructured.Unstructured{Object: content}
			return []any{o.GetName(), created(o.GetCreationTimestamp())}
		})}
	}
	return plain()
}

// plain is the table of a type of which nothing is known.
func plain() Table {
	return Table{Columns: definitions("Name|Age"), Row: safely(nameAndAge)}
}

func nameAndAge(content map[string]any, now time.Time) []any {
	o := unstructured.Unstructured{Object: content}
	return []any{o.GetName(), age(o.GetCreationTimestamp(), now)}
}

// builtin is a kind with columns of its own: their names with "|" between, a "*" before those for wide tables.
type builtin struct {
	columns string
	row     func(content map[string]any, now time.Time) []any
}

func definitions(columns string) (out []metav1.TableColumnDefinition) {
	for name := range strings.SplitSeq(columns, "|") {
		name, wide := strings.CutPrefix(name, "*")
		def := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if name == "Name" {
			def.Format = "name" // printers put the kind before it where there are several
		}
		if wide {
			def.Priority = 1
		}
		out = append(out, def)
	}
	return out
}

// typed makes a row of content by the Go type of its kind. Content of an older version fills in what both have.
func typed[T any](row func(o *T, now time.Time) []any) func(map[string]any, time.Time) []any {
	return func(content map[string]any, now time.Time) []any {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, o); err != nil {
			return nameAndAge(content, now)[:1]
		}
		return row(o, now)
	}
}

// safely makes a row of only the name where the content is not what its kind says.
func safely(row func(map[string]any, time.Time) []any) func(map[string]any, time.Time) []any {
	return func(content map[string]any, now time.Time) (cells []any) {
		defer func() {
			if recover() != nil { // a pointer is nil that a server never leaves out
				cells = nameAndAge(content, now)[:1]
			}
		}()
		return row(content, now)
	}
}

const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

// age is how long ago t was, as kubectl says it.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() || now.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

func created(t metav1.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.UTC().Format(time.RFC3339)
}

// or is s, or instead where s is empty.
func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return s
}

// deref is what p points to, or instead where it is nil.
func deref[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// yesNo is True or False, as tables show most booleans.
func yesNo(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
