package schema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The recorded relabelling gave every entry the storage version and kept its
// fields; ours also drops the one that v1beta1 does not know.
func TestRelabelRecorded(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, name := range append(crNames(t), "elide", "untouched") {
		t.Run(name, func(t *testing.T) {
			obj := object(t, string(readFile(t, "cr/"+name+".settled")))
			entries := strings.Count(text(t, obj), `"fieldsV1":`)
			changed, err := crd.RelabelManagedFields(obj)
			require.NoError(t, err)
			require.Equal(t, entries, changed)
			recorded := string(readFile(t, "cr/"+name+".relabel"))
			require.Equal(t, strings.ReplaceAll(recorded, `"f:oldOnly":{},`, ""), text(t, obj))

			again := text(t, obj)
			changed, err = crd.RelabelManagedFields(obj)
			require.NoError(t, err)
			require.Zero(t, changed)
			require.Equal(t, again, text(t, obj))
		})
	}
}
