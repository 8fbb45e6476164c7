// Package move moves logical clusters of kcp from the snapshot of one shard to the snapshot of
// another, and verifies such a move from its files.
//
// Invariants, each with a test:
//
//   - OnlyItsOwn: a purge deletes every key of its logical clusters, and no key of another logical
//     cluster, for any names that tenants give their objects.
//   - RestUntouched: every other live record is in the output with its revisions and lease; this is
//     proved before the output gets its name.
//   - NothingLeft: after a purge with Scrub the file has no byte of the purged keys and values, of
//     any revision. ScrubPastCopies: the same holds for their copies from the shard in a cache of
//     the file.
//   - OrphansThatLive, NoHome: records that may belong to a living logical cluster are not orphans,
//     unless --allow says so.
//   - Unreadable: an unreadable value causes a refusal; it never suppresses one.
//   - NeedsNoKeys: a purge needs no encryption key.
//   - ExtractExactly: an archive has each live record of its logical clusters with its bytes,
//     revisions and lease, and otherwise only bound definitions. The archive is checked before the
//     file gets its name.
//   - ExtractTwice: the same shard and options give the same archive, byte for byte.
//   - Import: each record of an archive gets its key, value and lease TTL, at a new revision, and
//     all other records stay. ImportProof: this is proved before the output gets its name.
//   - ImportDeterministic: the same files and options give the same output, byte for byte, unless
//     values are encrypted anew.
//   - ImportWouldBePlaintext: an encrypted value is never written as plaintext.
//     ImportPlainIntoEncrypted: nor is a value of a type that the shard encrypts.
//   - Refused: each code refuses by itself, with the key of a record. Only definitions that a
//     binding names, in the form that kcp makes, are added to system:bound-crds.
//   - ImportTakesNobodyAlong: granted leases never reuse an ID referenced by another record.
//   - FixOwner: LogicalCluster and Workspace are both changed, or neither.
//   - ThereAndBack: a move to another shard and back keeps keys, values and lease TTLs, and all
//     other records at their revisions. FuzzMove: with any names.
//   - Spoiled, VerifyEachKey: Move.Verify names each lost, doubled or touched record.
//     VerifyImports: no write of an import is a finding.
//   - MoveCopies: a moved copy differs only in its key and kcp.io/shard. MoveProvider: a sound move
//     of an exporter leaves a copy of each APIExport. ExportsInCache: a purge reports the last
//     copy.
//   - PutBack: missing orphans of a live migration are restored; existing records stay.
package move
