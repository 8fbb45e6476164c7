package native

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/storage"
	"k8s.io/kubernetes/pkg/printers"
	"k8s.io/kubernetes/pkg/printers/internalversion"

	"github.com/etcdshift/etcdshift/encoding"
)

// TestRowsOfUpstream compares the rows of upstream's objects of several releases, as JSON and as
// protobuf, with the rows of a server: its decoder and its table generator.
func TestRowsOfUpstream(t *testing.T) {
	server := printers.NewTableGenerator().With(internalversion.AddHandlers)
	rows, fast := 0, 0
	for _, value := range slices.Concat(upstream(t, "*", "json"), upstream(t, "*", "pb")) {
		v, err := encoding.Parse(value)
		if err != nil || !DecodedBy(v.GVK, LinkedRelease) {
			continue
		}
		printer := NewPrinter(v.GVK.GroupKind())
		obj, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), value)
		if printer == nil || err != nil { // never stored
			continue
		}
		if class, is := obj.(*storage.StorageClass); is {
			obj = &storage.StorageClassList{Items: []storage.StorageClass{*class}}
		}
		table, err := server.GenerateTable(obj, printers.GenerateOptions{Wide: true})
		require.NoError(t, err, v.GVK)
		want := table.Rows[0].Cells[:min(len(table.Rows[0].Cells), len(table.ColumnDefinitions))]
		content, err := DecodeParsed(v)
		require.NoError(t, err, v.GVK)
		row, err := printer.Row(content, time.Now())
		require.NoError(t, err, v.GVK)
		require.Equal(t, want, row, "%s as %s", v.GVK, v.Format)
		rows++
		if row, sure := printer.StoredRow(v, time.Now()); sure {
			require.Equal(t, want, row, v.GVK)
			fast++
		}
	}
	require.Greater(t, rows, 1200)
	require.Greater(t, fast, 500)
}
