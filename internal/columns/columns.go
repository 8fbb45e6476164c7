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

// Table shows objects of one type.
type Table struct {
	Columns []metav1.TableColumnDefinition // priority 1 and above: for wide tables
	LeftOut int                            // columns after the first 100 of a CustomResourceDefinition
	// Row returns the cells of an object: strings, numbers, booleans, nil for an empty one, or an error that wraps
	// jsonpath.ErrTooMuch.
	Row func(content map[string]any, now time.Time) []any
}

// For returns the table of a type.
func For(t *inspect.Type) Table {
	if b, known := builtins()[t.Name()]; known && t.Builtin {
		return b.table()
	}
	if t.CRD != nil {
		return custom(t.CRD)
	}
	if t.Builtin {
		return builtin{columns: "Name|Created At"}.table()
	}
	return plain()
}

// plain returns the table of an unknown type.
func plain() Table { return builtin{columns: "Name|Age"}.table() }

// builtin is a kind with columns of its own.
type builtin struct {
	// Names with "|" between them, a "*" before those for wide tables. Name, Age and Created At are filled in, unless a "=" stands
	// before them; the cells of the others come from row.
	columns string
	row     func(content map[string]any, now time.Time) []any
}

func (b builtin) table() Table {
	t := Table{}
	for name := range strings.SplitSeq(b.columns, "|") {
		name, wide := strings.CutPrefix(name, "*")
		def := metav1.TableColumnDefinition{Name: strings.TrimPrefix(name, "="), Type: "string"}
		if def.Name == "Name" {
			def.Format = "name" // printers put the kind before it where there are several
		}
		if wide {
			def.Priority = 1
		}
		t.Columns = append(t.Columns, def)
	}
	t.Row = safely(func(content map[string]any, now time.Time) (cells []any) {
		var own []any
		if b.row != nil {
			if own = b.row(content, now); own == nil {
				return nameOnly(content)
			}
		}
		o := unstructured.Unstructured{Object: content}
		for name := range strings.SplitSeq(b.columns, "|") {
			switch strings.TrimPrefix(name, "*") {
			case "Name":
				cells = append(cells, o.GetName())
			case "Age":
				cells = append(cells, age(o.GetCreationTimestamp(), now))
			case "Created At":
				cells = append(cells, created(o.GetCreationTimestamp()))
			default:
				cells, own = append(cells, own[0]), own[1:]
			}
		}
		return cells
	})
	return t
}

func nameOnly(content map[string]any) []any {
	return []any{(&unstructured.Unstructured{Object: content}).GetName()}
}

// timed makes a row with the Go type of a kind; nil where content does not fit it. Content of an older version fills in the
// fields that both have.
func timed[T any](row func(o *T, now time.Time) []any) func(map[string]any, time.Time) []any {
	return func(content map[string]any, now time.Time) []any {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, o); err != nil {
			return nil
		}
		return row(o, now)
	}
}

// typed is timed for a row without times.
func typed[T any](row func(o *T) []any) func(map[string]any, time.Time) []any {
	return timed(func(o *T, _ time.Time) []any { return row(o) })
}

// safely makes a row of the name alone where content does not fit its kind.
func safely(row func(map[string]any, time.Time) []any) func(map[string]any, time.Time) []any {
	return func(content map[string]any, now time.Time) (cells []any) {
		defer func() {
			if recover() != nil { // a pointer is nil that a server never leaves out
				cells = nameOnly(content)
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

// age returns how long ago t was, as kubectl prints it.
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
