package rehearse

import (
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/doctor"
)

// diagnose checks the records of a snapshot of kcp from the file: only kcp's own API server serves
// logical clusters.
func (r *rehearsal) diagnose(ctx context.Context) (string, error) {
	found, err := doctor.Examine(ctx, r.reader, doctor.Options{Keys: r.Transformers != nil})
	if err != nil {
		return "", err
	}
	added := 0
	for _, f := range found.Findings {
		if f.Level == finding.Error || f.Code == doctor.CodeUpdateRefused || f.Code == doctor.CodeApplyRefused {
			r.Found.Add(codeRecords.Because("%s: %s", f.Code.Name, f.Reason).At(f.Key))
			added++
		}
	}
	r.notChecked("the API of kcp", "it serves logical clusters, which this API server does not: objects are checked from the file, as doctor does")
	return fmt.Sprintf("findings of doctor: %d", added), nil
}
