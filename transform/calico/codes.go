package calico

// The codes of the problems this package reports. They are stable: scripts name them in --allow and look for them in the
// report. Each is a section of docs/problems.md.
const (
	// What stands in the way of the whole migration.
	codeCalicoTooOld      = "calico-too-old"      // error: a component is older than 3.32
	codeVersionUnknown    = "calico-version"      // warning: the snapshot does not tell the version
	codeTierDrift         = "tier-drift"          // error: a built-in tier is not as v3 demands
	codeAdmissionMissing  = "admission-missing"   // warning: an admission policy of v3 is not installed
	codeRBACMissing       = "rbac-missing"        // error: a component may not use the v3 group
	codeRBACUnknown       = "rbac-unknown"        // warning: the snapshot does not tell
	codeHalfDoneMigration = "half-done-migration" // error: the live controller is in the middle of it
	codeMigrationLeft     = "migration-left"      // warning: a DatastoreMigration, or its marks, that do no harm now
	codeNothingToMigrate  = "nothing-to-migrate"  // warning: nothing of the v1 group is in the snapshot
	codeAPIServiceLeft    = "apiservice-left"     // warning: the v1 group is gone, and the aggregated APIService is still there
	codeCRDMissing        = "crd-missing"         // error: a v3 CRD is not there
	codeCRDUnfit          = "crd-unfit"           // error: a v3 CRD is not as records need it

	// Records of the v1 group, and the v3 records they become.
	codeConflict          = "conflict"
	codeNameCollision     = "name-collision"
	codeInvalid           = "invalid"
	codeUndecodable       = "undecodable"
	codeUnknownKey        = "unknown-key"
	codeEncrypted         = "encrypted"
	codeBadUID            = "bad-uid"
	codeBadMetadata       = "bad-metadata"
	codeDanglingOwner     = "dangling-owner"
	codePrunedField       = "pruned-field"
	codeUnknownKind       = "unknown-kind"
	codeWouldBePlaintext  = "would-be-plaintext"
	codeUnsupportedLayout = "unsupported-layout" // reported by transform.KubernetesPrefixes
	codeTerminating       = "terminating"        // warning: being deleted and held by no finalizer; not created
	codeMetadataDiffers   = "metadata-differs"   // warning: the equal v3 object that is there differs in metadata or status, and stays
	codeDatastoreLocked   = "datastore-locked"   // warning: the v1 datastore was locked; v3 is written ready
	codeTierMissing       = "tier-missing"       // warning: a policy names a tier that will not be there
	codeHandleName        = "handle-name"        // warning: stored under another name than IPAM looks it up by
	codeBlockName         = "block-name"         // warning: stored under another name than its CIDR gives

	// The IPAM cross-check: warnings, one an object.
	codeIPAMHandleMissing = "ipam-handle-missing"
	codeIPAMHandleCount   = "ipam-handle-count"
	codeIPAMBlockMissing  = "ipam-block-missing"
	codeIPAMBlockBad      = "ipam-block-bad"
	codeIPAMNodeMissing   = "ipam-node-missing"
	codeIPAMAffinity      = "ipam-affinity-mismatch"

	codeIPAMUnjudged           = "ipam-unjudged" // warning: records that cannot be read
	codeIPAMAffinityUnlabelled = "ipam-affinity-unlabelled"
)
