package carry

import (
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// The codes of the problems that only an import reports.
const (
	codeClusterExists     = "cluster-exists"
	codeOwnerElsewhere    = "owner-elsewhere" // --fix-owner, and the Workspace is not in the file
	codeUnknownIdentity   = "unknown-identity"
	codeDefinitionDiffers = "definition-differs"
	codeKeyExists         = "key-exists" // a warning for what kcp writes itself
	codeNamespaceMissing  = "namespace-missing"
	codeOwnerNotHealed    = "owner-not-healed"
	codeRegionUnknown     = "region-unknown"
	codeLivesNowhere      = "lives-nowhere" // the orphans of a logical cluster that does not live on the shard they are to go to
)

// ImportCodes are the codes of problems that refuse an import, that of orphans too, and that can be allowed not to; sorted.
func Codes() []string {
	return []string{
		codeDefinitionDiffers,
		clusters.CodeEncrypted,
		codeKeyExists,
		clusters.CodeKeyMismatch,
		survey.CodeMissingDefinition,
		codeNamespaceMissing,
		survey.CodeSystemCluster,
		survey.CodeTerminating,
		codeUnknownIdentity,
		survey.CodeUnlistedVersion,
		survey.CodeUnserved,
	}
}
