package collect

import "github.com/etcdshift/etcdshift/finding"

// Codes returns the codes of findings.
func Codes() []*finding.Code { return []*finding.Code{codeCollected} }

var codeCollected = finding.Lookup("rehearse-collected")
