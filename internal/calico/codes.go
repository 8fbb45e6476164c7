package calico

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are the problems that the migration reports.
func codes() []*finding.Code {
	return []*finding.Code{
		codeCalicoTooOld, codeVersionUnknown, codeTierDrift, codeAdmissionMissing, codeRBACMissing, codeRBACUnknown,
		codeHalfDoneMigration, codeMigrationLeft, codeAbortImpossible, codeAbortLoses, codeNothingToMigrate, codeAPIServiceLeft, codeDatastoreLocked,
		codeCRDMissing, codeCRDUnfit, codeConflict, codeNameCollision, codeInvalid, finding.UnknownKey, codeBadUID, codeBadMetadata,
		codeDanglingOwner, codePrunedField, codeUnknownKind, codeGenericKind, codeTerminating, codeMetadataDiffers, codeTierMissing,
		codeHandleName, codeBlockName, codeIPAMHandleMissing, codeIPAMHandleCount, codeIPAMBlockMissing, codeIPAMBlockBad,
		codeIPAMNodeMissing, codeIPAMAffinity, codeIPAMUnchecked, codeIPAMAffinityUnlabelled,
		finding.Encrypted, finding.Undecodable, transform.CodeWouldBePlaintext, transform.CodeUnsupportedLayout,
	}
}

// What stands in the way of the whole migration.
var (
	codeCalicoTooOld      = finding.Lookup("calico-too-old")
	codeVersionUnknown    = finding.Lookup("calico-version")
	codeTierDrift         = finding.Lookup("tier-drift")
	codeAdmissionMissing  = finding.Lookup("admission-missing")
	codeRBACMissing       = finding.Lookup("rbac-missing")
	codeRBACUnknown       = finding.Lookup("rbac-unknown")
	codeHalfDoneMigration = finding.Lookup("half-done-migration")
	codeAbortImpossible   = finding.Lookup("abort-impossible")
	codeAbortLoses        = finding.Lookup("abort-loses")
	codeMigrationLeft     = finding.Lookup("migration-left")
	codeNothingToMigrate  = finding.Lookup("nothing-to-migrate")
	codeAPIServiceLeft    = finding.Lookup("apiservice-left")
	codeDatastoreLocked   = finding.Lookup("datastore-locked")
	codeCRDMissing        = finding.Lookup("crd-missing")
	codeCRDUnfit          = finding.Lookup("crd-unfit")
)

// Records of the v1 group, and the v3 records they become.
var (
	codeConflict        = finding.Lookup("conflict")
	codeNameCollision   = finding.Lookup("name-collision")
	codeInvalid         = finding.Lookup("invalid")
	codeBadUID          = finding.Lookup("bad-uid")
	codeBadMetadata     = finding.Lookup("bad-metadata")
	codeDanglingOwner   = finding.Lookup("dangling-owner")
	codePrunedField     = finding.Lookup("unknown-field")
	codeUnknownKind     = finding.Lookup("no-v3-kind")
	codeGenericKind     = finding.Lookup("generic-kind")
	codeTerminating     = finding.Lookup("record-terminating")
	codeMetadataDiffers = finding.Lookup("metadata-differs")
	codeTierMissing     = finding.Lookup("tier-missing")
	codeHandleName      = finding.Lookup("handle-name")
	codeBlockName       = finding.Lookup("block-name")
)

// The IPAM cross-check: warnings, one an object. The migration carries the records over as they
// are.
var (
	codeIPAMHandleMissing      = finding.Lookup("ipam-handle-missing")
	codeIPAMHandleCount        = finding.Lookup("ipam-handle-count")
	codeIPAMBlockMissing       = finding.Lookup("ipam-block-missing")
	codeIPAMBlockBad           = finding.Lookup("ipam-block-bad")
	codeIPAMNodeMissing        = finding.Lookup("ipam-node-missing")
	codeIPAMUnchecked          = finding.Lookup("ipam-unchecked")
	codeIPAMAffinity           = finding.Lookup("ipam-affinity-mismatch")
	codeIPAMAffinityUnlabelled = finding.Lookup("ipam-affinity-unlabelled")
)
