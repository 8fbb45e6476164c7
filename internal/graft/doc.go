// Package graft is the command "import": it puts the objects of an archive into another snapshot.
//
// Each record is staged first, then the result is checked: what an object names may be in the
// snapshot or in the archive. Admission does not see the objects, so the package checks what an API
// server and its controllers would refuse, delete or allocate.
//
// Invariants:
//
//   - A record of the archive is in OUT with the same decrypted value, at a new revision, as a live
//     create or update stores it; or a finding names it; or OUT has it already.
//   - All other live records of the input are in OUT byte for byte, except the records of the
//     allocators, the IPAddresses of the Services, and storedVersions of CustomResourceDefinitions.
//   - A selection that was taken out, deleted and put back gives the live records of before.
//   - Each conflict is found before OUT has a name.
package graft
