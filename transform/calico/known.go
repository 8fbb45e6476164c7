package calico

// Codes are the codes of problems that refuse a migration unless they are allowed, sorted. A problem that is only ever a
// warning refuses nothing, and its code is not among them.
func Codes() []string {
	return []string{
		codeBadMetadata,
		codeBadUID,
		codeCalicoTooOld,
		codeConflict,
		codeCRDMissing,
		codeCRDUnfit,
		codeDanglingOwner,
		codeEncrypted,
		codeHalfDoneMigration,
		codeInvalid,
		codeNameCollision,
		codeRBACMissing,
		codeTierDrift,
		codeUndecodable,
		codeUnknownKind,
		codeUnsupportedLayout,
		codeWouldBePlaintext,
	}
}
