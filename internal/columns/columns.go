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
	"reflect"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	if b, known := builtins()[t.Name()]; known && t.Builtin {
		return b.table()
	}
	if t.CRD != nil {
		return custom(t.CRD)
	}
	if t.Builtin {
		return builtin{"Name|Created At", ofMetadata()}.table()
	}
	return plain()
}

// ForScale returns the table of the subresource scale.
func ForScale() Table { return builtins()["scales.autoscaling"].table() }

func plain() Table { return builtin{"Name|Age", ofMetadata()}.table() }

// builtin is a kind with its own columns: names separated by "|", with "*" for wide tables only.
type builtin struct {
	columns string
	cells   cells
}

// cells computes an object's metadata and the cells of all columns except Name, Age and Created At.
// A malformed object has no metadata. A metav1.Time is shown as an age.
type cells struct {
	of func(content map[string]any) (metav1.Object, []any)
	// stored returns a function for stored values, nil for none. Without metadata, of is needed.
	stored func() func(v encoding.Value) (metav1.Object, []any)
}

func ofMetadata() cells {
	return cells{of: func(content map[string]any) (metav1.Object, []any) {
		return &unstructured.Unstructured{Object: content}, nil
	}}
}

// typed converts content to the Go type of its kind. Fields of other versions stay empty.
func typed[T any, P interface {
	metav1.Object
	*T
}](of func(o P) []any) cells {
	return cells{
		of: func(content map[string]any) (metav1.Object, []any) {
			o := P(new(T))
			if runtime.DefaultUnstructuredConverter.FromUnstructured(content, o) != nil {
				return nil, nil
			}
			return o, of(o)
		},
		stored: func() func(encoding.Value) (metav1.Object, []any) {
			direct := native.NewDirect(P(new(T)), used(reflect.TypeFor[T]()))
			return func(v encoding.Value) (metav1.Object, []any) {
				o := P(new(T))
				if !direct.Decode(v, o) {
					return nil, nil
				}
				return o, of(o)
			}
		},
	}
}

// used lists the fields of large structs used by the columns of a type.
func used(by reflect.Type) map[reflect.Type][]string {
	meta := []string{"Name", "CreationTimestamp", "DeletionTimestamp"}
	if by != reflect.TypeFor[corev1.Pod]() { // Pods are many
		meta = append(meta, "Labels", "Annotations")
	}
	return map[reflect.Type][]string{
		reflect.TypeFor[metav1.ObjectMeta](): meta,
		reflect.TypeFor[corev1.PodSpec](): {"InitContainers", "Containers", "NodeSelector", "NodeName",
			"ReadinessGates"},
		reflect.TypeFor[corev1.Container](): {"Name", "Image", "RestartPolicy"},
		reflect.TypeFor[corev1.PodStatus](): {"Phase", "Conditions", "Reason", "NominatedNodeName", "PodIP", "PodIPs",
			"InitContainerStatuses", "ContainerStatuses"},
		reflect.TypeFor[corev1.PodCondition](): {"Type", "Status", "Reason"},
		reflect.TypeFor[corev1.ContainerStatus](): {"Name", "State", "LastTerminationState", "Ready", "RestartCount",
			"Started"},
	}
}

func (b builtin) table() (t Table) {
	for name := range strings.SplitSeq(b.columns, "|") {
		name, wide := strings.CutPrefix(name, "*")
		def := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if name == "Name" {
			def.Format = "name" // printers prepend the kind in tables of several kinds
		}
		if wide {
			def.Priority = 1
		}
		t.Columns = append(t.Columns, def)
	}
	t.Row = func(content map[string]any, now time.Time) (row []any) {
		defer nameOnPanic(content, &row)
		meta, cells := b.cells.of(content)
		if meta == nil {
			return nameOnly(content)
		}
		return t.row(meta, cells, now)
	}
	if b.cells.stored != nil {
		t.StoredRow = storedRow(&t, sync.OnceValue(b.cells.stored))
	}
	return t
}

func storedRow(
	t *Table, stored func() func(encoding.Value) (metav1.Object, []any),
) func(encoding.Value, time.Time) ([]any, bool) {
	return func(v encoding.Value, now time.Time) (row []any, sure bool) {
		defer func() {
			if recover() != nil { // Row shows only the name
				row, sure = nil, false
			}
		}()
		meta, cells := stored()(v)
		if meta == nil {
			return nil, false
		}
		return t.row(meta, cells, now), true
	}
}

// row puts the cells in the order of the columns.
func (t *Table) row(meta metav1.Object, cells []any, now time.Time) []any {
	row := make([]any, 0, len(t.Columns))
	for _, c := range t.Columns {
		switch c.Name {
		case "Name":
			row = append(row, meta.GetName())
		case "Age":
			row = append(row, age(meta.GetCreationTimestamp(), now))
		case "Created At":
			row = append(row, created(meta.GetCreationTimestamp()))
		default:
			row, cells = append(row, shown(cells[0], now)), cells[1:]
		}
	}
	return row
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

func shown(cell any, now time.Time) any {
	switch c := cell.(type) {
	case metav1.Time:
		return age(c, now)
	case func(time.Time) string:
		return c(now)
	}
	if v := reflect.ValueOf(cell); v.Kind() == reflect.String {
		return v.String()
	}
	return cell
}

const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

// age formats the time since t like kubectl.
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

// orElse returns the value at p, or instead for nil.
func orElse[T any](p *T, instead any) any {
	if p == nil {
		return instead
	}
	return *p
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
		return plain()
	}
	t := builtin{"Name", ofMetadata()}.table()
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
