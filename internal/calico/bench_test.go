package calico

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding/schema"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/keys"
)

// BenchmarkRecord reads one recorded v1 record in the first pass and converts it in the second.
// Handles are the most frequent records of a large cluster; policies need the most checks.
func BenchmarkRecord(b *testing.B) {
	owners := &owners{table: newTable(), kinds: kinds()}
	stored, k := contents(b, recorded(b, "before.db")), keys.Kubernetes{Prefix: "/registry"}
	for _, plural := range []string{"ipamhandles", "ipamblocks", "networkpolicies"} {
		kd, _ := kinds().ofV3(plural)
		crd, err := schema.ParseCRD([]byte(stored["/registry/apiextensions.k8s.io/customresourcedefinitions/"+plural+
			"."+groupV3]))
		require.NoError(b, err)
		var largest string
		for key, value := range stored {
			if strings.HasPrefix(key, recordsV1+plural+"/") &&
				(len(value) > len(stored[largest]) || len(value) == len(stored[largest]) && key < largest) {
				largest = key
			}
		}
		key, err := k.Parse([]byte(largest))
		require.NoError(b, err)
		b.Run(plural, func(b *testing.B) {
			b.SetBytes(int64(len(stored[largest])))
			b.ReportAllocs()
			for b.Loop() {
				id := newIdentity(kd, key, []byte(largest))
				scanned := &scanned{id: id, key: key, value: []byte(stored[largest])}
				require.NoError(b, scanned.identify())
				d := &draft{id: id, crd: crd, stored: scanned.value, meter: new(bounded.Budget).Meter()}
				d.make(b.Context(), owners)
				require.NoError(b, cmp.Or(d.err, d.unfit))
			}
		})
	}
}
