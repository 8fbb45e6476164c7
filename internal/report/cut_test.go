package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestCut checks that a shortened list has the number of omitted entries.
func TestCut(t *testing.T) {
	p := read(t, recorded(t, "storage/before"), Options{})
	p.Migration = &Migration{}
	for i := range mostGroups + 3 {
		name := fmt.Sprint("a", i)
		p.Migration.Lists = append(p.Migration.Lists, Length{Name: name, Count: 1})
		p.Status.Alarms = append(p.Status.Alarms, snapshot.Raised{Kind: snapshot.AlarmNoSpace, Member: name})
		p.Diagnosis.Findings = append(p.Diagnosis.Findings,
			Finding{Code: &finding.Code{Name: name}, Level: finding.Info})
	}
	text := printed(t, p.HTML)
	require.Contains(t, text, "and 33 more lists")
	require.Contains(t, text, "and 33 more alarms")
	require.Regexp(t, "and [0-9]+ more codes; doctor -o json has them", text)
}
