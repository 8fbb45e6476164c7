package rehearse

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
)

func TestCompare(t *testing.T) {
	report := func(found ...*finding.Finding) *Report {
		r := &Report{}
		for _, f := range found {
			r.Found.Add(f)
		}
		return r
	}
	before := report(codeDiffers.Because("another value").At("/a"), codeDiffers.Because("another value").At("/b"))
	after := report(codeDiffers.Because("another version").At("/b"), codeEtcd.Because("ended").At("/b"))
	changed := Compare(before, after)
	require.Equal(t, []finding.Finding{*codeEtcd.Because("ended").At("/b")}, changed.Broken, "another code")
	require.Equal(t, []finding.Finding{*codeDiffers.Because("another value").At("/a")}, changed.Mended)
	for _, pair := range [][2]*finding.Finding{
		{codeServer.Because("a check fails"), codeServer.Because("it ended")},
		{codeRecords.Because("update-refused: x").At("/a"), codeRecords.Because("undecodable: x").At("/a")},
	} {
		require.Len(t, Compare(report(pair[0]), report(pair[1])).Broken, 1, pair[1].Reason)
	}
	refused := Compare(report(codeApply.Because("apply at v1alpha1: x").At("/a")), report(codeApply.Because("apply at v1: y").At("/a")))
	require.Empty(t, refused.Broken)
	same := Compare(before, before)
	require.Empty(t, same.Broken)
	require.Empty(t, same.Mended)
	require.True(t, report().Passed())
	require.False(t, after.Passed())
}
