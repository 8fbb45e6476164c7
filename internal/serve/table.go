package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// ConvertToTable returns the table for kubectl. Ages count to now, as on a live server.
func (s *store) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	asked, is := options.(*metav1.TableOptions)
	if !is {
		asked = &metav1.TableOptions{}
	}
	if !asked.NoHeaders {
		table.ColumnDefinitions = slices.Clone(s.table.Columns)
	}
	for i := range table.ColumnDefinitions {
		if s.source.Brief {
			table.ColumnDefinitions[i].Description = ""
		}
	}
	now := time.Now()
	switch o := obj.(type) {
	case *list:
		table.ListMeta = o.ListMeta
		read := func(rec *snapshot.Record) (metav1.TableRow, error) {
			return o.page.row(ctx, rec, asked.IncludeObject, now)
		}
		err := stream.Each(inOrder(ctx, o.page, read), func(row metav1.TableRow) error {
			table.Rows = append(table.Rows, row)
			return nil
		})
		switch s.Resource {
		case schema.GroupResource{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:
			slices.SortStableFunc(table.Rows, byPrecedence)
		case storageClasses():
			columns.OneDefault(table.Rows, func(row metav1.TableRow) *any { return &row.Cells[0] },
				func(row metav1.TableRow) time.Time {
					of, err := meta.Accessor(row.Object.Object)
					if err != nil {
						return time.Time{}
					}
					return of.GetCreationTimestamp().Time
				})
		}
		return table, err
	case *unstructured.Unstructured:
		table.ResourceVersion = o.GetResourceVersion()
		table.Rows = []metav1.TableRow{s.rowOf(o, asked.IncludeObject, now)}
		if s.Resource == storageClasses() { // only lists mark the default
			table.Rows[0].Cells[0] = o.GetName()
		}
		return table, nil
	}
	return nil, fmt.Errorf("no table of a %T", obj)
}

func storageClasses() schema.GroupResource {
	return schema.GroupResource{Group: "storage.k8s.io", Resource: "storageclasses"}
}

// byPrecedence orders rows of FlowSchemas by precedence, like a server. Rows of equal precedence
// are already ordered by name.
func byPrecedence(a, b metav1.TableRow) int {
	precedence := func(row metav1.TableRow) int64 {
		if len(row.Cells) < 3 {
			return 0
		}
		text := fmt.Sprint(row.Cells[2])
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	return cmp.Compare(precedence(a), precedence(b))
}

// row returns the row of a record, if possible from the stored bytes, in a tenth of the time.
func (p *page) row(
	ctx context.Context, rec *snapshot.Record, include metav1.IncludeObjectPolicy, now time.Time,
) (row metav1.TableRow, err error) {
	e, err := p.source.reader.Entry(ctx, rec)
	if err != nil {
		return row, err
	}
	if row, sure := p.directRow(e, include, now); sure {
		return row, nil
	}
	obj, err := p.read(e, p.version)
	if err != nil {
		return row, err
	}
	return p.rowOf(obj, include, now), nil
}

// directRow returns the row of an entry without decoding the object; sure is false if the stored
// bytes do not suffice. In built-in kinds, only text columns can show a secret, such as the message
// of an Event.
func (p *page) directRow(
	e *inspect.Entry, include metav1.IncludeObjectPolicy, now time.Time,
) (row metav1.TableRow, sure bool) {
	if p.table.StoredRow == nil || include == metav1.IncludeObject || p.Resource.Group == "events.k8s.io" {
		return row, false
	}
	v, is := inspect.Undecoded(p.query.stored, e).Protobuf()
	if !is || v.GVK.Version != p.version {
		return row, false
	}
	if row.Cells, sure = p.table.StoredRow(v, now); !sure {
		return row, false
	}
	hide, err := p.source.hide()
	if err != nil {
		return row, false
	}
	m, err := p.metadata(e, v, hide)
	row.Object.Object = m
	if err == nil && hide != nil {
		hideCells(hide, row.Cells)
	}
	return row, err == nil
}

// hideCells hides secrets in the cells of a row.
func hideCells(hide *redact.Shared, cells []any) {
	for i, cell := range cells {
		if text, is := cell.(string); is {
			cells[i] = hide.Text(text)
		}
	}
}

// metadata decodes and redacts the metadata of a protobuf value: field 1 of every kind.
func (p *page) metadata(
	e *inspect.Entry, v encoding.Value, hide *redact.Shared,
) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	if err := m.Unmarshal(v.Raw); err != nil {
		return nil, err
	}
	if p.source.Brief {
		m.ManagedFields = nil
		defer func() { m.Annotations = nil }() // they show which other texts are secrets
	}
	m.ResourceVersion = strconv.FormatInt(e.ModRevision, 10)
	if hide == nil {
		return m, nil
	}
	m.APIVersion, m.Kind = v.GVK.GroupVersion().String(), v.GVK.Kind
	content, err := native.Content(m)
	if err == nil && hide.Object(e.Key, content) {
		*m = *meta.AsPartialObjectMetadata(&unstructured.Unstructured{Object: content})
	}
	return m, err
}

// rowOf returns the row of an object, with a cell for each column, and only the requested parts of
// the object: a table is in memory as a whole.
func (s *store) rowOf(o *unstructured.Unstructured, include metav1.IncludeObjectPolicy, now time.Time) metav1.TableRow {
	cells := s.table.Row(o.Object, now)
	for i, cell := range cells {
		if _, failed := cell.(error); failed {
			cells[i] = "<error>"
		}
	}
	for len(cells) < len(s.table.Columns) { // a malformed object has fewer
		cells = append(cells, nil)
	}
	row := metav1.TableRow{Cells: cells}
	if row.Object.Object = o; include != metav1.IncludeObject { // also for IncludeNone: the handlers remove it
		if s.source.Brief {
			o.SetManagedFields(nil)
			o.SetAnnotations(nil)
		}
		row.Object.Object = meta.AsPartialObjectMetadata(o)
	}
	return row
}
