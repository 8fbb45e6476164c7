package serve_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/internal/serve"
)

// TestTableRows checks that rows with metadata, computed from the stored bytes, equal those of
// whole objects, with and without redaction.
func TestTableRows(t *testing.T) {
	for _, path := range []string{everyKey, calico} {
		for _, secrets := range []bool{true, false} {
			s := start(t, path, func(c *serve.Config) { c.Secrets = secrets })
			rows := 0
			for _, gvr := range s.resources(t) {
				whole, some, none := s.table(t, objectPath(gvr), "Object"), s.table(t, objectPath(gvr), "Metadata"),
					s.table(t, objectPath(gvr), "None")
				require.Len(t, some.Rows, len(whole.Rows))
				rows += len(some.Rows)
				for i, row := range some.Rows {
					require.Equal(t, ageless(whole.Rows[i].Cells), ageless(row.Cells), gvr)
					require.Equal(t, ageless(whole.Rows[i].Cells), ageless(none.Rows[i].Cells), gvr)
					require.JSONEq(t, metadataOf(t, whole.Rows[i]), metadataOf(t, row), gvr)
				}
			}
			require.Greater(t, rows, 100)
		}
	}
}

// TestBriefRows checks that brief rows lack managedFields and annotations, and nothing else.
func TestBriefRows(t *testing.T) {
	whole := start(t, everyKey)
	brief := start(t, everyKey, func(c *serve.Config) { c.Brief = true })
	managed := 0
	for _, gvr := range whole.resources(t) {
		want, got := whole.table(t, objectPath(gvr), "Metadata"), brief.table(t, objectPath(gvr), "Metadata")
		require.Len(t, got.Rows, len(want.Rows))
		for i, row := range want.Rows {
			var o metav1.PartialObjectMetadata
			require.NoError(t, json.Unmarshal(row.Object.Raw, &o))
			managed += len(o.ManagedFields)
			o.ManagedFields, o.Annotations = nil, nil
			var is metav1.PartialObjectMetadata
			require.NoError(t, json.Unmarshal(got.Rows[i].Object.Raw, &is))
			require.Equal(t, o, is, gvr)
			require.Equal(t, ageless(row.Cells), ageless(got.Rows[i].Cells), gvr)
		}
	}
	require.NotZero(t, managed)
}

// TestFlowSchemas checks that rows of FlowSchemas are ordered by precedence, like a server's.
func TestFlowSchemas(t *testing.T) {
	s := start(t, everyKey)
	table := s.table(t, "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "None")
	require.Len(t, table.Rows, 11)
	require.Equal(t, "exempt", table.Rows[0].Cells[0])
	require.Equal(t, "probes", table.Rows[1].Cells[0])
	require.Equal(t, "system-leader-election", table.Rows[2].Cells[0])
	require.Equal(t, "catch-all", table.Rows[10].Cells[0])
}

func (s *served) table(t *testing.T, path, include string) (table metav1.Table) {
	t.Helper()
	resp, text := s.do(t, "GET", path+"?includeObject="+include, "", "Accept",
		"application/json;as=Table;v=v1;g=meta.k8s.io")
	require.Equal(t, 200, resp.StatusCode, text)
	require.NoError(t, json.Unmarshal([]byte(text), &table))
	return table
}

// ageless returns the cells with ages removed, because ages change.
func ageless(cells []any) (out []any) {
	age := regexp.MustCompile(`\b([0-9]+[smhdy])+\b`)
	for _, cell := range cells {
		if text, is := cell.(string); is {
			cell = age.ReplaceAllString(text, "AGE")
		}
		out = append(out, cell)
	}
	return out
}

func metadataOf(t *testing.T, row metav1.TableRow) string {
	t.Helper()
	var o struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(row.Object.Raw, &o))
	return string(o.Metadata)
}
