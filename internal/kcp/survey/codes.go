package survey

import "github.com/etcdshift/etcdshift/finding"

// The codes that several commands report.
var (
	CodeUndecodable       = finding.Lookup("undecodable").As(finding.Error, "")
	CodeWouldBePlaintext  = finding.Lookup("would-be-plaintext").As(finding.Error, "")
	CodeSystemCluster     = finding.Lookup("system-cluster")
	CodeTerminating       = finding.Lookup("terminating")
	CodeMigrating         = finding.Lookup("migrating")
	CodeShardName         = finding.Lookup("shard-name")
	CodeChildrenStay      = finding.Lookup("children-stay")
	CodeChildElsewhere    = finding.Lookup("child-elsewhere")
	CodeOwnerUnseen       = finding.Lookup("owner-unseen")
	CodeUnserved          = finding.Lookup("unserved")
	CodeUnlistedVersion   = finding.Lookup("unlisted-version").As(finding.Error, finding.WentOn)
	CodeMissingDefinition = finding.Lookup("missing-definition")
)
