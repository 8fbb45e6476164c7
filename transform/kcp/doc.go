// Package kcp moves logical clusters of kcp from the snapshot of a shard to that of another. It has no code of its own: survey and
// archive are what its programs share, and extract, purge, carry and verify are the programs, of which none imports another. The
// tests here run them on recorded files, one after the other.
//
// Invariants, each with a test:
//
//   - OnlyItsOwn: a purge deletes every key of the logical clusters it is about, and none of another; what a tenant named its
//     objects does not matter.
//   - RestUntouched: every live record of the file that is none of theirs is in the output as it was, at its revisions, under its lease;
//     this is proved before the output gets its name.
//   - NothingLeft: after a purge with Scrub no byte of a key or value of theirs, of any revision, is in the file.
//     ScrubPastCopies: nor of what a cache in the file had of them from this shard.
//   - OrphansThatLive, NoHome: what may be of a logical cluster that lives here is no orphan, until someone allows it.
//   - Unreadable: a value that cannot be read switches no refusal off: it refuses itself.
//   - NeedsNoKeys: a purge needs no encryption key.
//   - ExtractExactly: an archive has each live record of its logical clusters, and none of another, with the bytes, the numbers and
//     the lease that it had; beside them only bound definitions. It was opened and checked before it got its name.
//   - ExtractTwice: the same shard and the same options give the same archive, byte for byte.
//   - Import: each record of an archive comes under its key with its value and the TTL of its lease, at a revision of its own, and all
//     else stays; ImportProof: this is proved before the output gets its name.
//   - ImportDeterministic: the same files and options give the same output, byte for byte, where nothing is encrypted anew.
//   - ImportWouldBePlaintext: what was encrypted is never written in the clear, whatever is allowed.
//     ImportPlainIntoEncrypted: nor what the shard encrypts, as far as its values tell.
//   - ImportUnfitDefinition, ImportUnwantedDefinition: into system:bound-crds comes only what a binding names, as kcp makes it.
//   - ImportTakesNobodyAlong: no lease that is granted is one that a record of somebody else names.
//   - FixOwner: LogicalCluster and Workspace are both changed, or neither.
//   - ThereAndBack: what goes to another shard and comes back has the keys, values and lease TTLs that it had, and so has all else, at its
//     revisions; FuzzMove: whatever things are called.
//   - Spoiled, VerifyEachKey: Move.Verify finds what was lost, doubled or touched, and names it. VerifyImports: it takes nothing that an
//     import may write for a finding.
//   - MoveCopies: a copy that goes to another shard's name in a cache is the same but for its key and kcp.io/shard; MoveProvider: a move of
//     an exporter leaves no APIExport without a copy, and is not sound otherwise. ExportsInCache: no purge deletes the last in silence.
//   - PutBack: of what a live migration took, what is missing comes back, and what is there stays.
package kcp
