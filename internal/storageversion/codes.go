package storageversion

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

func codes() []*finding.Code {
	return []*finding.Code{
		finding.Undecodable, finding.Encrypted, transform.CodeWouldBePlaintext, transform.CodeUnsupportedLayout,
		codeUnknownKey, codeUnknownKind, codeUnlistedVersion, codeNeedsWebhook, codeConversionFailed,
		codePrunedField, codeInvalid, codeVersionDead, transform.CodeUnknownFields,
		codeStorageMigrating, codeNotChosen, codeNothingThere, codeOrphan, codeKeyMismatch, codeNoUID,
		codeTerminating, codeListKept,
		codeDroppedNull, codeViolatesSchema, codeUpdateRefused, codeApplyRefused, codeFieldsLost, codeOwnerVersion,
		codeHelmRelease,
		codeMappingUnused, codeMigratorPending, codeNotInRelease, codeUnchecked,
	}
}

// Codes of errors. An affected record stays unchanged, and so do all records of an affected
// CustomResourceDefinition.
var (
	codeUnknownKey       = finding.Lookup("unknown-key")
	codeUnknownKind      = finding.Lookup("foreign-kind")
	codeUnlistedVersion  = finding.Lookup("unlisted-version")
	codeNeedsWebhook     = finding.Lookup("needs-webhook")
	codeConversionFailed = finding.Lookup("conversion-failed")
	codePrunedField      = finding.Lookup("pruned-field")
	codeInvalid          = finding.Lookup("invalid")
	codeStorageMigrating = finding.Lookup("storage-migrating")
	codeVersionDead      = finding.Lookup("dead-version")
)

// Codes of warnings.
var (
	codeNotChosen       = finding.Lookup("not-chosen")
	codeNothingThere    = finding.Lookup("nothing-to-migrate")
	codeOrphan          = finding.Lookup("orphan")
	codeKeyMismatch     = finding.Lookup("key-mismatch").As(finding.Warning, "")
	codeNoUID           = finding.Lookup("crd-without-uid")
	codeTerminating     = finding.Lookup("crd-terminating").As(finding.Warning, "")
	codeListKept        = finding.Lookup("stored-versions-kept")
	codeDroppedNull     = finding.Lookup("dropped-null")
	codeViolatesSchema  = finding.Lookup("violates-schema")
	codeUpdateRefused   = finding.Lookup("update-refused")
	codeApplyRefused    = finding.Lookup("apply-refused")
	codeFieldsLost      = finding.Lookup("managed-fields-lost")
	codeOwnerVersion    = finding.Lookup("owner-version")
	codeHelmRelease     = finding.Lookup("helm-release")
	codeMappingUnused   = finding.Lookup("mapping-unused")
	codeMigratorPending = finding.Lookup("migrator-pending")
	codeNotInRelease    = finding.Lookup("not-in-release")
	codeUnchecked       = finding.Lookup("unknown-kind").As(finding.Warning, "")
)
