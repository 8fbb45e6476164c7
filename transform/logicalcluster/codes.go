package logicalcluster

// The codes of the problems this package reports. They are stable: scripts name them in --allow and look for them in the
// report. Each is a section of docs/problems.md.
const (
	// Errors about a logical cluster that is to be purged or extracted.
	codeOwnerPointsHere = "owner-points-here" // its Workspace says that it lives on this shard
	codeTerminating     = "terminating"
	codeSystemCluster   = "system-cluster" // a part of kcp itself
	codeMigrating       = "migrating"      // a live migration has it
	codeKeyMismatch     = "key-mismatch"   // an object says that it is of another logical cluster than its key
	codeNoHome          = "no-home"        // of orphans, where no tenant's logical cluster lives; a warning where it is named
	codeUndecodable     = "undecodable"    // as codeEncrypted: what a LogicalCluster or a Workspace says cannot be told
	// Errors about copies in a cache.
	codeExportsInCache = "exports-in-cache" // no cache would have a copy of an APIExport any more
	codeCopyExists     = "copy-exists"      // the shard that is to get a copy has another one
	codeUnknownShard   = "unknown-shard"    // nothing in the file knows the shard that is to get copies

	// Errors about an archive that is to be imported.
	codeClusterExists     = "cluster-exists"
	codeOwnerElsewhere    = "owner-elsewhere" // --fix-owner, and the Workspace is not in the file
	codeUnknownIdentity   = "unknown-identity"
	codeUnlistedVersion   = "unlisted-version"   // its definition here does not list the version that an object is stored at
	codeMissingDefinition = "missing-definition" // a warning when it is extracted
	codeDefinitionDiffers = "definition-differs"
	codeUnserved          = "unserved" // a type of kcp itself that this shard does not have
	codeEncrypted         = "encrypted"
	codeWouldBePlaintext  = "would-be-plaintext"

	// Errors about orphans that are to be put back.
	codeKeyExists        = "key-exists" // a warning for what kcp writes itself
	codeNamespaceMissing = "namespace-missing"

	// Warnings.
	codeChildrenStay   = "children-stay"
	codeChildElsewhere = "child-elsewhere"
	codeExportsBound   = "exports-bound" // by logical clusters that stay
	codeShardName      = "shard-name"    // --as-shard says another than the file
	codeOwnerUnseen    = "owner-unseen"  // the Workspace is not in this file
	codeUnknownKey     = "unknown-key"   // it is of no logical cluster
	codeOwnerNotHealed = "owner-not-healed"
	codeRegionUnknown  = "region-unknown"
	codeLivesNowhere   = "lives-nowhere" // the orphans of a logical cluster that does not live on the shard they are to go to
)

// PurgeCodes are the codes of problems that refuse a purge, and that can be allowed not to; sorted.
func PurgeCodes() []string {
	return []string{
		codeCopyExists,
		codeEncrypted,
		codeExportsInCache,
		codeKeyMismatch,
		codeMigrating,
		codeNoHome,
		codeOwnerPointsHere,
		codeSystemCluster,
		codeTerminating,
		codeUndecodable,
		codeUnknownShard,
	}
}

// ExtractCodes are the codes of problems that refuse to extract, and that can be allowed not to; sorted.
func ExtractCodes() []string {
	return []string{codeKeyMismatch, codeMigrating, codeSystemCluster, codeTerminating}
}

// ImportCodes are the codes of problems that refuse an import, that of orphans too, and that can be allowed not to; sorted.
func ImportCodes() []string {
	return []string{
		codeDefinitionDiffers,
		codeEncrypted,
		codeKeyExists,
		codeKeyMismatch,
		codeMissingDefinition,
		codeNamespaceMissing,
		codeSystemCluster,
		codeTerminating,
		codeUnknownIdentity,
		codeUnlistedVersion,
		codeUnserved,
	}
}
