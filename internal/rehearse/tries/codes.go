package tries

import "github.com/etcdshift/etcdshift/finding"

// Codes returns the codes of failures.
func Codes() []*finding.Code { return []*finding.Code{codeList, CodeUpdate, CodeApply} }

var (
	codeList = finding.Lookup("rehearse-list")
	// CodeUpdate is of a refused update.
	CodeUpdate = finding.Lookup("rehearse-update")
	// CodeApply is of a refused server-side apply.
	CodeApply = finding.Lookup("rehearse-apply")
)
