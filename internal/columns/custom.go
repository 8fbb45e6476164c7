package columns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
)

// mostCustom bounds the columns of a CustomResourceDefinition. Each may hold the whole object.
const mostCustom = 100

// custom shows the columns of the version that discovery prefers, or of the storage version if none
// is served.
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
	t := builtin{"Name", metadata}.table()
	t.LeftOut = max(0, len(columns)-mostCustom)
	columns = columns[:len(columns)-t.LeftOut]
	var paths []*jsonpath.Path
	for _, c := range columns {
		path, _ := jsonpath.Parse(fmt.Sprintf("{%s}", c.JSONPath)) // no server accepts one that does not parse
		paths = append(paths, path)
		t.Columns = append(t.Columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority})
	}
	t.Row = func(content map[string]any, now time.Time) (cells []any) {
		defer nameOnPanic(content, &cells)
		cells = nameOnly(content)
		work := jsonpath.NewWork(context.Background(), content) // of all columns together
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

// customCell returns the first value at a path, nil for none and for a value of another type.
func customCell(work *jsonpath.Work, path *jsonpath.Path, columnType string, content map[string]any, now time.Time) (any, error) {
	if path == nil {
		return nil, nil
	}
	value, found, err := path.First(work, content)
	if !found || err != nil {
		return nil, err
	}
	if columnType == "string" {
		return jsonpath.Text(work, value)
	}
	return typedCell(value, columnType, now), nil
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
