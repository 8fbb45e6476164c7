package clusters

import "github.com/etcdshift/etcdshift/finding"

// What is out of the ordinary with a logical cluster; etcdshift doctor reports it too.
var (
	CodeClusterTwice        = finding.Lookup("cluster-twice")
	CodeClusterTerminating  = finding.Lookup("cluster-terminating")
	CodeClusterMigrating    = finding.Lookup("cluster-migrating")
	CodeClusterMisnamed     = finding.Lookup("cluster-misnamed")
	CodeWorkspaceGone       = finding.Lookup("workspace-gone")
	CodeWorkspaceAstray     = finding.Lookup("workspace-astray")
	CodeBoundDefinitionGone = finding.Lookup("bound-definition-gone")
	CodeIdentityUnbound     = finding.Lookup("identity-unbound")
)

// What is wrong with a record that had to be read.
var (
	CodeEncrypted   = finding.Lookup("encrypted").As(finding.Error, finding.WentOn)
	CodeUndecodable = finding.Lookup("undecodable").As(finding.Error, finding.WentOn)
	CodeKeyMismatch = finding.Lookup("key-mismatch")
)
