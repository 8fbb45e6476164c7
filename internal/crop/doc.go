// Package crop has the commands "crop" and "extract": they write a part of a snapshot into a
// snapshot of its own, or into an archive, which is that snapshot with a manifest.
//
// The part is an objects.Part. Deletion is no way to it: a deleted object is a record, and history,
// members and free pages would stay. Compaction keeps every key. The file is built anew, like an
// archive of kcp.
//
// Invariants:
//
//   - The records of OUT are the live records of IN that are selected: keys, values, revisions and
//     leases byte for byte, encrypted or not. No byte of another record is in OUT.
//   - OUT has the revision of IN, which --bump-revision raises, and the leases of its records. OUT
//     has no users, members and alarms.
//   - crop: the owners of each object in OUT are in OUT, or the run is refused.
//   - extract: the archive has the records that crop writes for the same arguments. The sum of the
//     rest in its manifest is that of the origin without the selected records.
//   - The report lists each object that the part needs and that is not selected.
//   - The same records give the same bytes. Cropping OUT with the same selection gives OUT.
package crop
