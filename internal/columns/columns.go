// Package columns defines the table columns of each type. Custom resources have the columns of
// their CustomResourceDefinition, built-in kinds those of kubectl.
//
// Invariants:
//
//   - A row has a cell for each column, or only the name of a malformed object.
//   - Ages are relative to a given time, so that one snapshot always gives the same table.
package columns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
	"github.com/etcdshift/etcdshift/internal/native"
)

// Table shows objects of one type.
type Table struct {
	Columns []metav1.TableColumnDefinition // priority 1 and above: for wide tables
	LeftOut int                            // columns after the first 100 of a CustomResourceDefinition
	// Row returns the cells of an object in JSON content: strings, numbers, booleans, nil if empty,
	// or an error that wraps jsonpath.ErrTooMuch.
	Row func(content map[string]any, now time.Time) []any
	// StoredRow returns the same cells from the stored value, or false if the content is needed;
	// the function is nil if the content is always needed. Concurrent calls are allowed.
	StoredRow func(v encoding.Value, now time.Time) ([]any, bool)
}

// For returns the table of a type.
func For(t *inspect.Type) Table {
	if t.CRD != nil {
		return custom(t.CRD)
	}
	if !t.Builtin {
		return byMetadata("Age", age)
	}
	if t.Kind == "APIService" {
		return apiServices()
	}
	return builtin(kube.GroupKind{Group: t.Resource.Group, Kind: t.Kind})
}

// OneDefault leaves only one StorageClass of a list marked as the default, like a server: the
// newest, the first of several. name returns the cell of a row.
func OneDefault[R any](rows []R, name func(R) *any, created func(R) time.Time) {
	const mark = " (default)"
	text := func(row R) string {
		text, _ := (*name(row)).(string)
		return text
	}
	newest := -1
	for i, row := range rows {
		if strings.HasSuffix(text(row), mark) && (newest < 0 || created(row).After(created(rows[newest]))) {
			newest = i
		}
	}
	for i, row := range rows {
		if i != newest && strings.HasSuffix(text(row), mark) {
			*name(row) = strings.TrimSuffix(text(row), mark)
		}
	}
}

// ForScale returns the table of the subresource scale.
func ForScale() Table { return builtin(kube.GroupKind{Group: "autoscaling", Kind: "Scale"}) }

// builtin returns the columns of an API server for a kind; without any, those of its default.
func builtin(kind kube.GroupKind) Table {
	p := native.NewPrinter(kind)
	if p == nil {
		return byMetadata("Created At", func(t metav1.Time, _ time.Time) string {
			if t.IsZero() {
				return unknown
			}
			return t.UTC().Format(time.RFC3339)
		})
	}
	row := func(content map[string]any, now time.Time) []any {
		cells, err := p.Row(content, now)
		if err != nil {
			return onlyMetadata(p.Columns, content, now)
		}
		return cells
	}
	return Table{Columns: p.Columns, Row: row, StoredRow: p.StoredRow}
}

// byMetadata returns a table of names and a column for creation times.
func byMetadata(column string, cell func(t metav1.Time, now time.Time) string) Table {
	return Table{Columns: named("Name", column), Row: func(content map[string]any, now time.Time) []any {
		o := &unstructured.Unstructured{Object: content}
		return []any{o.GetName(), cell(o.GetCreationTimestamp(), now)}
	}}
}

// named returns columns of text.
func named(names ...string) (all []metav1.TableColumnDefinition) {
	for _, name := range names {
		def := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if name == "Name" {
			def.Format = "name" // printers prepend the kind in tables of several kinds
		}
		all = append(all, def)
	}
	return all
}

// apiServices returns the columns of kube-aggregator.
func apiServices() Table {
	return Table{Columns: named("Name", "Service", "Available", "Age"),
		Row: func(content map[string]any, now time.Time) []any {
			var s native.APIService
			if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &s) != nil {
				return nameOnly(content)
			}
			return apiServiceCells(&s, now)
		}}
}

func apiServiceCells(s *native.APIService, now time.Time) []any {
	service, available := "Local", "Unknown"
	if of := s.Spec.Service; of.Name != "" {
		service = of.Namespace + "/" + of.Name
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, "Available"); c != nil {
		if available = string(c.Status); c.Status != metav1.ConditionTrue {
			available += " (" + c.Reason + ")"
		}
	}
	return []any{s.Name, service, available, age(s.CreationTimestamp, now)}
}

// nameOnPanic replaces the row of an object without a field always set by servers.
func nameOnPanic(content map[string]any, row *[]any) {
	if recover() != nil {
		*row = nameOnly(content)
	}
}

func nameOnly(content map[string]any) []any {
	return []any{(&unstructured.Unstructured{Object: content}).GetName()}
}

// onlyMetadata returns the row of an object that no API server decodes: its name and its age.
func onlyMetadata(columns []metav1.TableColumnDefinition, content map[string]any, now time.Time) []any {
	o, cells := &unstructured.Unstructured{Object: content}, make([]any, len(columns))
	for i, c := range columns {
		switch c.Name {
		case "Name":
			cells[i] = o.GetName()
		case "Age":
			cells[i] = age(o.GetCreationTimestamp(), now)
		}
	}
	return cells
}

const unknown = "<unknown>"

// age formats the time since t like kubectl.
func age(t metav1.Time, now time.Time) string {
	if t.IsZero() || now.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(t.Time))
}

// mostCustom bounds the columns of a CustomResourceDefinition. Each may contain the whole object.
const mostCustom = 100

// custom returns the columns of the version preferred by discovery, or of the storage version if no
// version is served.
func custom(crd *schema.CRD) Table {
	version := cmp.Or(crd.PreferredVersion(), crd.StorageVersion())
	var columns []apiextensionsv1.CustomResourceColumnDefinition
	for _, v := range crd.Object().Spec.Versions {
		if v.Name == version {
			columns = v.AdditionalPrinterColumns
		}
	}
	if len(columns) == 0 {
		return byMetadata("Age", age)
	}
	t := Table{Columns: named("Name")}
	t.LeftOut = max(0, len(columns)-mostCustom)
	columns = columns[:len(columns)-t.LeftOut]
	var paths []*jsonpath.Path
	for _, c := range columns {
		path, _ := jsonpath.Parse(fmt.Sprintf("{%s}", c.JSONPath)) // no server accepts an invalid path
		paths = append(paths, path)
		t.Columns = append(t.Columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format,
			Priority: c.Priority})
	}
	t.Row = func(content map[string]any, now time.Time) (cells []any) {
		defer nameOnPanic(content, &cells)
		cells = nameOnly(content)
		work := jsonpath.NewWork(context.Background(), content) // shared by all columns
		for i, path := range paths {
			cell, err := customCell(work, path, columns[i].Type, content, now)
			if errors.Is(err, jsonpath.ErrTooMuch) {
				cell = err
			}
			cells = append(cells, cell)
		}
		return cells
	}
	return t
}

// customCell returns the first value at a path, nil if there is none or it has another type.
func customCell(
	work *jsonpath.Work, path *jsonpath.Path, columnType string, content map[string]any, now time.Time,
) (any, error) {
	if path == nil {
		return nil, nil
	}
	value, found, err := path.First(work, content)
	if !found || err != nil {
		return nil, err
	}
	switch {
	case columnType != "string":
		return typedCell(value, columnType, now), nil
	case value == nil: // like a server, whose printer gets an invalid value; "kubectl -o jsonpath" prints null
		return "<no value>", nil
	}
	return jsonpath.Text(work, value)
}

func typedCell(value any, columnType string, now time.Time) any {
	switch v := value.(type) {
	case string:
		if columnType == "date" {
			t, err := time.Parse(time.RFC3339, v)
			if err != nil {
				return "<invalid>"
			}
			return age(metav1.NewTime(t), now)
		}
	case bool:
		if columnType == "boolean" {
			return v
		}
	case int64:
		if columnType == "integer" || columnType == "number" {
			return v
		}
	case float64:
		switch columnType {
		case "integer":
			return int64(v)
		case "number":
			return v
		}
	}
	return nil
}
