package columns

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/etcdshift/etcdshift/encoding/schema"
)

// custom is the table of a CustomResourceDefinition: the columns of the version that discovery prefers, or of the storage
// version where none is served.
func custom(crd *schema.CRD) Table {
	version := crd.PreferredVersion()
	if version == "" {
		version = crd.StorageVersion()
	}
	var columns []apiextensionsv1.CustomResourceColumnDefinition
	for _, v := range crd.Object().Spec.Versions {
		if v.Name == version {
			columns = v.AdditionalPrinterColumns
		}
	}
	if len(columns) == 0 {
		return plain()
	}
	t := Table{Columns: definitions("Name")}
	var paths []*jsonpath.JSONPath
	for _, c := range columns {
		path := jsonpath.New(c.Name).AllowMissingKeys(true)
		if err := path.Parse(fmt.Sprintf("{%s}", c.JSONPath)); err != nil { // no server accepts it
			path = nil
		}
		paths = append(paths, path)
		t.Columns = append(t.Columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Priority: c.Priority})
	}
	t.Row = safely(func(content map[string]any, now time.Time) []any {
		cells := []any{(&unstructured.Unstructured{Object: content}).GetName()}
		for i, path := range paths {
			cells = append(cells, customCell(path, columns[i].Type, content, now))
		}
		return cells
	})
	return t
}

// customCell is the first value that a path finds, nil where it finds none or one of another type than the column's.
func customCell(path *jsonpath.JSONPath, columnType string, content map[string]any, now time.Time) any {
	if path == nil {
		return nil
	}
	results, err := path.FindResults(content)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	switch columnType {
	case "string":
		var text bytes.Buffer
		if err := path.PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return text.String()
	case "date":
		return customDate(value, now)
	case "integer":
		if f, isFloat := value.(float64); isFloat {
			return int64(f)
		}
		if n, isInt := value.(int64); isInt {
			return n
		}
	case "number":
		switch value.(type) {
		case int64, float64:
			return value
		}
	case "boolean":
		if b, isBool := value.(bool); isBool {
			return b
		}
	}
	return nil
}

func customDate(value any, now time.Time) any {
	text, isText := value.(string)
	if !isText {
		return nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "<invalid>"
	}
	return age(metav1.NewTime(t), now)
}
