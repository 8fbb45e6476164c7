package rehearse

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/policy"
)

// Codes returns all codes of findings, by step.
func Codes() []*finding.Code {
	return slices.Concat([]*finding.Code{
		codeDamaged, codeRestore, codeEtcd, codeDiffers, codeAlarm, codeServer, codeRecords, codeMisplaced,
	}, policy.Codes(), []*finding.Code{codeList, codeUpdate, codeApply, codeCollected})
}

var (
	codeDamaged   = finding.Lookup("rehearse-damaged")
	codeRestore   = finding.Lookup("rehearse-restore")
	codeEtcd      = finding.Lookup("rehearse-etcd")
	codeDiffers   = finding.Lookup("rehearse-differs")
	codeAlarm     = finding.Lookup("rehearse-alarm")
	codeServer    = finding.Lookup("rehearse-api-server")
	codeMisplaced = finding.Lookup("rehearse-misplaced")
	codeRecords   = finding.Lookup("rehearse-records")
	codeList      = finding.Lookup("rehearse-list")
	codeUpdate    = finding.Lookup("rehearse-update") // a refused update
	codeApply     = finding.Lookup("rehearse-apply")  // a refused server-side apply
	codeCollected = finding.Lookup("rehearse-collected")
)
