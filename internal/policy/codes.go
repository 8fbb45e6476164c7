package policy

import "github.com/etcdshift/etcdshift/finding"

// Codes returns the codes of [Check].
func Codes() []*finding.Code {
	return []*finding.Code{
		CodeDenied, CodeWarned, CodeAudited, CodeIgnored, CodeInvalid, CodeNotEvaluated, CodeCost, CodeUnmatched,
		finding.Undecodable, finding.Encrypted,
	}
}

// Findings of policies.
var (
	CodeDenied        = finding.Lookup("policy-denied")
	CodeWarned        = finding.Lookup("policy-warned")
	CodeAudited       = finding.Lookup("policy-audited")
	CodeIgnored       = finding.Lookup("policy-ignored")
	CodeInvalid       = finding.Lookup("policy-invalid")
	CodeNotEvaluated  = finding.Lookup("policy-not-evaluated")
	CodeCost          = finding.Lookup("policy-cost")
	CodeUnmatched     = finding.Lookup("policy-unmatched").As(finding.Warning, "")
	CodeFailed        = finding.Lookup("policy-failed")
	CodeNotIdempotent = finding.Lookup("not-idempotent")
)
