package storageversion

// The codes of the problems this package reports. They are stable: scripts name them in --allow and look for them in the
// report. Each is a section of docs/problems.md.
const (
	// Errors about a record, which stays as it is.
	codeUndecodable       = "undecodable"
	codeEncrypted         = "encrypted"
	codeUnknownKey        = "unknown-key"
	codeUnknownKind       = "unknown-kind"
	codeUnlistedVersion   = "unlisted-version" // its version is not in spec.versions: no server can read it
	codeNeedsWebhook      = "needs-webhook"
	codeConversionFailed  = "conversion-failed"
	codeWouldBePlaintext  = "would-be-plaintext"
	codeUnsupportedLayout = "unsupported-layout" // reported by transform.KubernetesPrefixes
	// An error about a record that loses fields; it is written without them where that was allowed.
	codePrunedField = "pruned-field"

	// Errors about a CustomResourceDefinition, whose records stay as they are.
	codeInvalid          = "invalid"
	codeStorageMigrating = "storage-migrating" // the storage version migrator of the cluster is at work on it

	// Warnings.
	codeNotChosen       = "not-chosen" // it needs a migration that the options did not ask for
	codeNothingThere    = "nothing-to-migrate"
	codeOrphan          = "orphan"       // no CustomResourceDefinition goes with the key
	codeKeyMismatch     = "key-mismatch" // the object names itself otherwise than its key
	codeNoUID           = "crd-without-uid"
	codeTerminating     = "crd-terminating"
	codeListKept        = "stored-versions-kept" // storedVersions could not be trimmed
	codeDroppedNull     = "dropped-null"
	codeViolatesSchema  = "violates-schema"
	codeUpdateRefused   = "update-refused" // a server refuses every update of it
	codeApplyRefused    = "apply-refused"  // a server refuses every server-side apply of it
	codeFieldsLost      = "managed-fields-lost"
	codeOwnerVersion    = "owner-version" // an owner reference names a version that is gone, and none is served
	codeHelmRelease     = "helm-release"
	codeMappingUnused   = "mapping-unused"
	codeMigratorPending = "migrator-pending"
)

// Codes are the codes of problems that refuse a run, and that can be allowed not to; sorted.
func Codes() []string {
	return []string{
		codeConversionFailed,
		codeEncrypted,
		codeInvalid,
		codeNeedsWebhook,
		codePrunedField,
		codeStorageMigrating,
		codeUndecodable,
		codeUnknownKey,
		codeUnknownKind,
		codeUnlistedVersion,
		codeUnsupportedLayout,
		codeWouldBePlaintext,
	}
}
