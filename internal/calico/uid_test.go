package calico

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/objects"
)

func TestConvertUID(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"upstream vector", "30316465-6365-4463-ad63-3564622d3638", "0c8c26a6-c6a6-44c6-adc6-ac2646b46c1c"},
		{"upstream resource test", "41cb1fde-57e7-42c1-a73b-0acaf38c7737", "82d3f87b-eae7-4283-a7dc-5053cf31eeec"},
		{"computed", "12345678-9abc-4def-8123-456789abcdef", "482c6a1e-593d-4df7-81c4-a2e691d5b3f7"},
		{"fixed point of zeros", "00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000000"},
		{"fixed point of ones", "ffffffff-ffff-4fff-bfff-ffffffffffff", "ffffffff-ffff-4fff-bfff-ffffffffffff"},
		{"upper case", "12345678-9ABC-4DEF-8123-456789ABCDEF", "482c6a1e-593d-4df7-81c4-a2e691d5b3f7"},
		{"urn", "urn:uuid:12345678-9abc-4def-8123-456789abcdef", "482c6a1e-593d-4df7-81c4-a2e691d5b3f7"},
		{"braces", "{12345678-9abc-4def-8123-456789abcdef}", "482c6a1e-593d-4df7-81c4-a2e691d5b3f7"},
		{"bare digits", "123456789abc4def8123456789abcdef", "482c6a1e-593d-4df7-81c4-a2e691d5b3f7"},
		// Recorded: before.db stores the policy with the first UID; the ConfigMap owned by the
		// policy names the second.
		{"recorded", "fba9cfd1-8024-41e0-bfee-a2388d3e22eb", "df95f38b-0124-4107-bf77-451cb17c44d7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ConvertUID(tt.in)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	for _, in := range []string{"", "not-a-uid", "12345678-9abc-4def-8123-456789abcde",
		"12345678-9abc-4def-8123-456789abcdeg"} {
		_, err := ConvertUID(in)
		require.ErrorContains(t, err, "not a UUID", in)
	}
}

func FuzzConvertUIDIsItsOwnInverse(f *testing.F) {
	f.Add([]byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 16 {
			return
		}
		in := uuid.UUID(b[:16])
		seen, err := ConvertUID(in.String())
		require.NoError(t, err)
		require.Equal(t, in.Version(), uuid.MustParse(seen).Version())
		require.Equal(t, in.Variant(), uuid.MustParse(seen).Variant())
		back, err := ConvertUID(seen)
		require.NoError(t, err)
		require.Equal(t, in.String(), back)
	})
}

func TestMintUID(t *testing.T) {
	a := objects.MintUID([32]byte{1}, []byte("/registry/projectcalico.org/tiers/default"))
	require.Equal(t, a, objects.MintUID([32]byte{1}, []byte("/registry/projectcalico.org/tiers/default")),
		"the same for the same input and key")
	require.NotEqual(t, a, objects.MintUID([32]byte{2}, []byte("/registry/projectcalico.org/tiers/default")))
	require.NotEqual(t, a, objects.MintUID([32]byte{1}, []byte("/registry/projectcalico.org/tiers/other")))
	require.EqualValues(t, 4, uuid.MustParse(a).Version())
	require.Equal(t, uuid.RFC4122, uuid.MustParse(a).Variant())
}
