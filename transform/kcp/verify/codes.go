package verify

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
)

// Question is a question about a move.
type Question string

// The questions. The answer of a sound move is "no" to each.
const (
	QuestionDamaged Question = "damaged" // is a file not as it was written?
	QuestionLost    Question = "lost"    // is anything of the archive not on the destination, or not as it was?
	QuestionDoubled Question = "doubled" // is anything of the logical clusters at two places?
	QuestionTouched Question = "touched" // was anything that is not theirs changed?
)

// Questions returns all questions in the order of a report.
func Questions() []Question {
	return []Question{QuestionDamaged, QuestionLost, QuestionDoubled, QuestionTouched}
}

// codes returns the codes of findings that answer a question with yes.
func (q Question) codes() []*finding.Code {
	switch q {
	case QuestionDamaged:
		return []*finding.Code{codeDamaged, codeArchiveDamaged}
	case QuestionLost:
		return []*finding.Code{
			codeArchiveOutdated, codeRecordLost, codeRecordChanged, codeLeaseDiffers, codeInTheClear, codeDefinitionLost, codeDefinitionDiffers,
			codeStoredVersions, codeIdentityUnknown, codeStillMigrating, codeShardMisnamed, codeCopyLost, codeCopyChanged,
			codeKeysUnderPath,
		}
	case QuestionDoubled:
		return []*finding.Code{codeSameFile, codeLivesTwice, codeStillAtOrigin, codeElsewhere, codeStaleCopy}
	}
	return []*finding.Code{codeRecordAdded, codeOriginTouched, codeOtherOrigin, codeDestinationTouched, codeCacheTouched}
}

// Codes returns the codes of all findings, in the order of the questions.
func Codes() (codes []*finding.Code) {
	for _, q := range Questions() {
		codes = append(codes, q.codes()...)
	}
	return codes
}

// Ignorable returns the codes that can be ignored: all but those that end a check.
func Ignorable() []*finding.Code { return Codes()[len(QuestionDamaged.codes()):] }

func question(code *finding.Code) Question {
	all := Questions()
	return all[slices.IndexFunc(all, func(q Question) bool { return slices.Contains(q.codes(), code) })]
}

func errorCode(name, title, meaning, remedy string) *finding.Code {
	return &finding.Code{Name: name, Level: finding.Error, Title: title, Meaning: meaning, Remedy: remedy}
}

const (
	importAgain = "Import again."
	moveCopies  = "`etcdshift cluster purge NAME CACHE OUT --from-shard ORIGIN --to-shard DESTINATION` on the original cache."
)

// The findings, by the questions that they answer.
var (
	codeDamaged = errorCode("damaged", "a snapshot is not as it was written",
		"Its digest, pages or order of records are wrong. Nothing else is checked. `etcdshift verify` checks one file.",
		"Make that output again from its input.")
	codeArchiveDamaged = errorCode("archive-damaged", "the archive is not as it was made",
		"Nothing else is checked.",
		"Extract again.")
	codeArchiveOutdated = errorCode("archive-outdated", "the archive lacks changes of the purged records",
		"A record was written, or deleted, between the extraction and the purge.",
		"Extract the very file that is purged; import that.")
	codeRecordLost = errorCode("record-lost", "the destination lacks a record of the archive",
		"The import was forgotten or was that of another archive, or something was deleted since.",
		importAgain)
	codeRecordChanged = errorCode("record-changed", "a record has another value on the destination",
		"It differs from the archive in more than an import changes. `etcdshift diff ARCHIVE DESTINATION-OUT --cluster NAME` shows both.",
		importAgain)
	codeLeaseDiffers = errorCode("lease-differs", "the lease of a record differs",
		"It has another TTL, or there is one too many or none, or one that nobody granted: an Event would expire early or never.",
		importAgain)
	codeInTheClear = errorCode("in-the-clear", "a value is not encrypted any more",
		"It was encrypted at rest on the origin; or all others of its kind on the destination are, and it is not.",
		"Import again with the destination's `--encryption-config`.")
	codeDefinitionLost = errorCode("definition-lost", "the definition of objects is gone",
		"A definition in `system:bound-crds` is not on the destination: no server serves the objects.",
		importAgain)
	codeDefinitionDiffers = errorCode("definition-differs", "a definition is not as it was",
		"The shard's definition has another spec, or one that came is not the archive's. Also after import with `--allow definition-differs`.",
		"If the shard's definition fits: `--ignore definition-differs`.")
	codeStoredVersions = errorCode("stored-versions", "storedVersions of a definition lacks a version",
		"Objects may be stored at the version: dropping it from the schema would break them.",
		importAgain)
	codeIdentityUnknown = errorCode("identity-unknown", "nothing on the destination knows an identity",
		"Neither a record that was there before nor a cache has it. Also after import with `--allow unknown-identity`; its objects are not found until an "+
			"APIExport has it.",
		"Give `--cache`.")
	codeStillMigrating = errorCode("still-migrating", "the LogicalCluster has the mark of a live migration",
		"kcp answers no request for it.",
		importAgain)
	codeShardMisnamed = errorCode("shard-misnamed", "the LogicalCluster names a third shard",
		"It names neither the origin nor this shard.",
		"Import again; name this shard with `--as-shard`.")
	codeCopyLost = errorCode("copy-lost", "a copy is missing in the cache",
		"No cache has a copy of an APIExport of the logical cluster, or of another object that the origin had a copy of. Other tenants would lose the "+
			"labels of permission claims.",
		moveCopies)
	codeCopyChanged = errorCode("copy-changed", "a copy in the cache differs from the origin's",
		"The copy has the destination's name, and another value than the origin wrote, or the origin wrote none. Also after purge with `--allow "+
			"copy-exists`.",
		moveCopies)
	codeKeysUnderPath = errorCode("keys-under-path", "keys of the logical cluster lie under its path",
		"An early kcp stored them under the path in place of the name. The archive lacks them (extract with `--allow keys-under-path`), and a purge deletes "+
			"them: they are lost unless they are put back.",
		"Before the move: `etcdshift cluster import --orphans-from ORIGIN ORIGIN FIXED`, then move FIXED. After it: `etcdshift cluster import "+
			"--orphans-from ORIGIN DESTINATION-OUT OUT`, with ORIGIN the input of extract (docs/repair-a-shard.md, section 2).")
	codeSameFile = errorCode("same-file", "one file was given for another",
		"ORIGIN-OUT is the input of purge, or DESTINATION-OUT that of import.",
		"Purge or import; give the outputs.")
	codeLivesTwice = errorCode("lives-twice", "a logical cluster lives on both shards",
		"Both would serve it, and it would diverge. Without a move: the two files are of one shard, or it lived twice before.",
		"Give the output of purge, and two shards.")
	codeStillAtOrigin = errorCode("still-at-origin", "a key of the logical cluster is on the origin",
		"The purge was forgotten, or something was written since.",
		"Purge again.")
	codeElsewhere = errorCode("elsewhere", "a key of the logical cluster has another prefix",
		"It is in one of the two files. No command writes two prefixes.",
		"Find out what writes below that prefix.")
	codeStaleCopy = errorCode("stale-copy", "a cache has a copy from a shard that the cluster left",
		"The origin wrote it, or another shard that is not the destination. Other shards follow it, RBAC included, as long as it exists.",
		"`etcdshift cluster purge NAME CACHE OUT --from-shard SHARD --to-shard DESTINATION`.")
	codeRecordAdded = errorCode("record-added", "the archive lacks a key of the destination",
		"Something was written there since the import.",
		importAgain)
	codeOriginTouched = errorCode("origin-touched", "another record of the origin changed",
		"The origin was written to between extract and purge, or since.",
		"Extract and purge the same snapshot.")
	codeOtherOrigin = errorCode("other-origin", "the archive was made of another file",
		"Other records of the origin changed, and the records that were written last do not show which. `--origin FILE` names them.",
		"Give `--origin FILE`; extract again.")
	codeDestinationTouched = errorCode("destination-touched", "another record of the destination changed",
		"A record of something else is not what it was, or is attached to a lease that came with the logical cluster.",
		"Import again into the snapshot to be restored.")
	codeCacheTouched = errorCode("cache-touched", "another record of the cache changed",
		"A record of something else in the cache is not what it was.",
		"Purge the very snapshot of the cache that was saved.")
)
