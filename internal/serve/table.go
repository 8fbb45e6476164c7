package serve

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// ConvertToTable makes the table that kubectl prints. Ages count to now, as on a live server.
func (s *store) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	asked, is := options.(*metav1.TableOptions)
	if !is {
		asked = &metav1.TableOptions{}
	}
	if !asked.NoHeaders {
		table.ColumnDefinitions = s.table.Columns
	}
	now := time.Now()
	switch o := obj.(type) {
	case *list:
		table.ListMeta = o.ListMeta
		return table, stream.Each(o.items, func(item *unstructured.Unstructured) error {
			table.Rows = append(table.Rows, s.row(item, asked.IncludeObject, now))
			return nil
		})
	case *unstructured.Unstructured:
		table.ResourceVersion = o.GetResourceVersion()
		table.Rows = []metav1.TableRow{s.row(o, asked.IncludeObject, now)}
		return table, nil
	}
	return nil, fmt.Errorf("no table of a %T", obj)
}

// row is the row of an object, with a cell for each column. Of the object it keeps what is asked
// for: a table is in memory as a whole.
func (s *store) row(o *unstructured.Unstructured, include metav1.IncludeObjectPolicy, now time.Time) metav1.TableRow {
	content := o.Object
	if s.Resource.Group == "events.k8s.io" {
		content = coreEvent(content)
	}
	cells := s.table.Row(content, now)
	for i, cell := range cells {
		if _, failed := cell.(error); failed {
			cells[i] = "<error>"
		}
	}
	for len(cells) < len(s.table.Columns) { // of a malformed object
		cells = append(cells, nil)
	}
	row := metav1.TableRow{Cells: cells}
	switch include {
	case metav1.IncludeObject:
		row.Object.Object = o
	case metav1.IncludeNone:
	default:
		row.Object.Object = meta.AsPartialObjectMetadata(o)
	}
	return row
}
