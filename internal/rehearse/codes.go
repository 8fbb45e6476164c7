package rehearse

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/rehearse/collect"
	"github.com/etcdshift/etcdshift/internal/rehearse/tries"
)

// Codes returns all codes of findings, by step.
func Codes() []*finding.Code {
	own := []*finding.Code{codeDamaged, codeRestore, codeEtcd, codeDiffers, codeAlarm, codeServer, codeRecords, codeMisplaced}
	return slices.Concat(own, policy.Codes(), tries.Codes(), collect.Codes())
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
)
