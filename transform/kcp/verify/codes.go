package verify

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
)

// Question is one of those that checking a move answers.
type Question string

// The questions. The answer of a sound move is "no" to each.
const (
	QuestionDamaged Question = "damaged" // is a file not as it was written?
	QuestionLost    Question = "lost"    // is anything of the archive not on the destination, or not as it was?
	QuestionDoubled Question = "doubled" // is anything of the logical clusters at two places?
	QuestionTouched Question = "touched" // was anything that is not theirs changed?
)

// Questions are all of them, in the order of a report.
func Questions() []Question {
	return []Question{QuestionDamaged, QuestionLost, QuestionDoubled, QuestionTouched}
}

// codes are those of the findings that answer a question.
func (q Question) codes() []*finding.Code {
	switch q {
	case QuestionDamaged:
		return []*finding.Code{codeDamaged, codeArchiveDamaged}
	case QuestionLost:
		return []*finding.Code{
			codeArchiveOutdated, codeRecordLost, codeRecordChanged, codeLeaseDiffers, codeInTheClear, codeDefinitionLost, codeDefinitionDiffers, codeStoredVersions,
			codeIdentityUnknown, codeStillMigrating, codeShardMisnamed, codeCopyLost, codeCopyChanged,
		}
	case QuestionDoubled:
		return []*finding.Code{codeSameFile, codeLivesTwice, codeStillAtOrigin, codeElsewhere, codeStaleCopy}
	}
	return []*finding.Code{codeRecordAdded, codeOriginTouched, codeOtherOrigin, codeDestinationTouched, codeCacheTouched}
}

// Codes are those of all findings, in the order of the questions.
func Codes() (codes []*finding.Code) {
	for _, q := range Questions() {
		codes = append(codes, q.codes()...)
	}
	return codes
}

// Ignorable are the codes that can be left out: not those that end checking, so that nobody knows the rest.
func Ignorable() []*finding.Code { return Codes()[len(QuestionDamaged.codes()):] }

// question is the one that a finding of the code answers.
func question(code *finding.Code) Question {
	all := Questions()
	return all[slices.IndexFunc(all, func(q Question) bool { return slices.Contains(q.codes(), code) })]
}

// The findings, by the questions that they answer.
var (
	codeDamaged = &finding.Code{Name: "damaged", Level: finding.Error, Title: "a snapshot is not as it was written",
		Meaning: "Its digest, pages or order of records are wrong. Nothing else is checked.",
		Remedy:  "Make that output again from its input; `etcdshift verify` checks one file.",
	}
	codeArchiveDamaged = &finding.Code{Name: "archive-damaged", Level: finding.Error, Title: "the archive is not as it was made",
		Meaning: "Nothing else is checked.",
		Remedy:  "Extract again.",
	}
	codeArchiveOutdated = &finding.Code{Name: "archive-outdated", Level: finding.Error,
		Title:   "the purged records are not those of the archive",
		Meaning: "A record was written, or deleted, between the extraction and the purge.",
		Remedy:  "Extract the very file that is purged, and import that.",
	}
	codeRecordLost = &finding.Code{Name: "record-lost", Level: finding.Error, Title: "a record of the archive is not on the destination",
		Meaning: "The import was forgotten or was that of another archive, or something was deleted since.",
		Remedy:  "Import again.",
	}
	codeRecordChanged = &finding.Code{Name: "record-changed", Level: finding.Error, Title: "a record has another value on the destination",
		Meaning: "More of it than an import changes is not the archive's.",
		Remedy:  "Import again. `etcdshift diff ARCHIVE DESTINATION-OUT --cluster NAME` shows both.",
	}
	codeLeaseDiffers = &finding.Code{Name: "lease-differs", Level: finding.Error, Title: "the lease of a record differs",
		Meaning: "It has another TTL, or there is one too many or none, or one that nobody granted: an Event would expire early or never.",
		Remedy:  "Import again.",
	}
	codeInTheClear = &finding.Code{Name: "in-the-clear", Level: finding.Error, Title: "a value is not encrypted any more",
		Meaning: "It was encrypted at rest on the origin; or all others of its kind on the destination are, and it is not.",
		Remedy:  "Import again with the `--encryption-config` of the destination.",
	}
	codeDefinitionLost = &finding.Code{Name: "definition-lost", Level: finding.Error, Title: "a definition that objects need is gone",
		Meaning: "A definition in `system:bound-crds` is not on the destination: no server serves the objects.",
		Remedy:  "Import again.",
	}
	codeDefinitionDiffers = &finding.Code{Name: "definition-differs", Level: finding.Error, Title: "a definition is not as it was",
		Meaning: "The shard's definition has another spec, or one that came is not the archive's. Also after import with `--allow " +
			"definition-differs`.",
		Remedy: "Check that the shard's fits, then `--ignore definition-differs`.",
	}
	codeStoredVersions = &finding.Code{Name: "stored-versions", Level: finding.Error,
		Title:   "storedVersions of a definition lacks a version",
		Meaning: "Objects may be stored at the version: dropping it from the schema would break them.",
		Remedy:  "Import again.",
	}
	codeIdentityUnknown = &finding.Code{Name: "identity-unknown", Level: finding.Error,
		Title: "nothing on the destination knows an identity",
		Meaning: "Neither a record that was there before nor a cache has it. Also after import with `--allow unknown-identity`; objects " +
			"of it are not found until an APIExport has it.",
		Remedy: "Give `--cache`.",
	}
	codeStillMigrating = &finding.Code{Name: "still-migrating", Level: finding.Error,
		Title:   "the LogicalCluster has the mark of a live migration",
		Meaning: "kcp answers no request for it.",
		Remedy:  "Import again.",
	}
	codeShardMisnamed = &finding.Code{Name: "shard-misnamed", Level: finding.Error, Title: "the LogicalCluster names a third shard",
		Meaning: "It names neither the shard of before nor this one.",
		Remedy:  "Import again; `--as-shard` gives the name of this one.",
	}
	codeCopyLost = &finding.Code{Name: "copy-lost", Level: finding.Error, Title: "a copy is missing in the cache",
		Meaning: "No cache has a copy of an APIExport of the logical cluster, or of another object that the origin had a copy of. Other " +
			"tenants would lose the labels of permission claims.",
		Remedy: "`etcdshift cluster purge NAME CACHE OUT --from-shard ORIGIN --to-shard DESTINATION`, of the cache as it was.",
	}
	codeCopyChanged = &finding.Code{Name: "copy-changed", Level: finding.Error, Title: "a copy in the cache is not what the origin wrote",
		Meaning: "The copy has the destination's name, and another value than the origin wrote, or the origin wrote none. Also after " +
			"purge with `--allow copy-exists`.",
		Remedy: "`etcdshift cluster purge NAME CACHE OUT --from-shard ORIGIN --to-shard DESTINATION`, of the cache as it was.",
	}
	codeSameFile = &finding.Code{Name: "same-file", Level: finding.Error, Title: "one file was given for another",
		Meaning: "ORIGIN-OUT is the input of purge, or DESTINATION-OUT that of import.",
		Remedy:  "Purge or import; give the outputs.",
	}
	codeLivesTwice = &finding.Code{Name: "lives-twice", Level: finding.Error, Title: "a logical cluster lives on both shards",
		Meaning: "Both would serve it, and it would diverge. Where it was not moved: the two files are of one shard, or it lived twice " +
			"before.",
		Remedy: "Give the output of purge, and two shards.",
	}
	codeStillAtOrigin = &finding.Code{Name: "still-at-origin", Level: finding.Error, Title: "a key of the logical cluster is on the origin",
		Meaning: "The purge was forgotten, or something was written since.",
		Remedy:  "Purge again.",
	}
	codeElsewhere = &finding.Code{Name: "elsewhere", Level: finding.Error, Title: "a key of the logical cluster lies below another prefix",
		Meaning: "It is in one of the two files. No command writes two prefixes.",
		Remedy:  "Find out whose it is.",
	}
	codeStaleCopy = &finding.Code{Name: "stale-copy", Level: finding.Error, Title: "a cache has a copy of a shard that the cluster left",
		Meaning: "The origin wrote it, or another shard that is not the destination. Other shards go by it, RBAC included, as long as it " +
			"is there.",
		Remedy: "`etcdshift cluster purge NAME CACHE OUT --from-shard SHARD --to-shard DESTINATION`.",
	}
	codeRecordAdded = &finding.Code{Name: "record-added", Level: finding.Error, Title: "the destination has a key that the archive has not",
		Meaning: "Something was written there since the import.",
		Remedy:  "Import again.",
	}
	codeOriginTouched = &finding.Code{Name: "origin-touched", Level: finding.Error, Title: "another record of the origin changed",
		Meaning: "The origin was written to between extract and purge, or since.",
		Remedy:  "Extract and purge one and the same snapshot.",
	}
	codeOtherOrigin = &finding.Code{Name: "other-origin", Level: finding.Error, Title: "the archive was made of another file",
		Meaning: "Other records of the origin changed, and the records that were written last do not tell which.",
		Remedy:  "`--origin FILE` names the records; extract again.",
	}
	codeDestinationTouched = &finding.Code{Name: "destination-touched", Level: finding.Error,
		Title:   "another record of the destination changed",
		Meaning: "A record of something else is not what it was, or is attached to a lease that came with the logical cluster.",
		Remedy:  "Import again into the snapshot that is to be restored.",
	}
	codeCacheTouched = &finding.Code{Name: "cache-touched", Level: finding.Error, Title: "another record of the cache changed",
		Meaning: "A record of something else in the cache is not what it was.",
		Remedy:  "Purge the very snapshot of the cache that was saved.",
	}
)
