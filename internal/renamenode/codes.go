package renamenode

import "github.com/etcdshift/etcdshift/finding"

// The codes of findings about the names of nodes.
var (
	codeNoNode     = finding.Lookup("no-such-node")
	codeMentioned  = finding.Lookup("old-node-name")
	codeAttachment = finding.Lookup("attachment-name")
)
