package survey

// The codes of problems that several programs report. They are stable: scripts name them in --allow and look for them in the
// report. Each is a section of docs/problems.md.
const (
	CodeSystemCluster     = "system-cluster" // a part of kcp itself
	CodeTerminating       = "terminating"
	CodeMigrating         = "migrating" // a live migration has it
	CodeWouldBePlaintext  = "would-be-plaintext"
	CodeMissingDefinition = "missing-definition" // a warning when it is extracted
	CodeUnlistedVersion   = "unlisted-version"   // its definition here does not list the version that an object is stored at
	CodeUnserved          = "unserved"           // a type of kcp itself that this shard does not have
	CodeChildrenStay      = "children-stay"
	CodeChildElsewhere    = "child-elsewhere"
	CodeShardName         = "shard-name"   // --as-shard says another than the file
	CodeOwnerUnseen       = "owner-unseen" // the Workspace is not in this file
	CodeUnknownKey        = "unknown-key"  // it is of no logical cluster
)
