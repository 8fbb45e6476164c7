package patch

import "github.com/etcdshift/etcdshift/finding"

// The codes of findings about a patch.
var (
	codeFailed    = finding.Lookup("patch-failed")
	codeIdentity  = finding.Lookup("patch-identity")
	codeStrategic = finding.Lookup("strategic-custom-resource")
	codeAddress   = finding.Lookup("address-in-use")
	codeNoAddress = finding.Lookup("cluster-ip-missing")
	codeNothing   = finding.Lookup("nothing-patched")
)
