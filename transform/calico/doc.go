// Package calico rewrites the records of Calico's group crd.projectcalico.org/v1 in a snapshot as records of
// projectcalico.org/v3, the way Calico's own DatastoreMigration controller does on a live cluster, without what that
// controller loses on the way.
//
// Invariants, each with a test of its name:
//
//   - SeenUID: a v3 record has the UID that clients of the aggregated API already saw, ConvertUID of the stored one
//     (or, with Options.NewUIDs, a UID that is a hash of the input's digest and the v3 key). Equal inputs and
//     options give equal bytes.
//   - NothingLost: creationTimestamp, finalizers, owner references, deletionTimestamp, status, labels and the whole
//     spec of a v1 record are in the v3 record, as a client of the aggregated API saw them; what only the record
//     itself had (finalizers, owner references, a deletion that began) is added to that.
//   - ChangesDocumented: every field that a v3 record has otherwise than its v1 record is in docs/calico-v3-records.md, or was
//     reported as pruned-field.
//   - Valid: every v3 record written is pruned, defaulted and validated against the v3 CRD it belongs to. What does
//     not validate is not written but reported as `invalid`.
//   - NothingIsPruned: pruning drops only what the v1 CRD does not know either, and says so. A record that would lose
//     more is reported as `crd-unfit`.
//   - OwnersEnd: after the migration every owner reference to a Calico object, in any object of the snapshot, names
//     the group, kind, name and UID of a v3 record, or is reported as `dangling-owner`.
//   - NothingSilent: a v1 record is either migrated, equal to a v3 record that is there, or named in the report's
//     problems. A v1 record left alone keeps every v1 record, CRD and APIService in the output.
//   - Idempotent: migrating what the migration wrote changes nothing.
//   - InOrder: writes are staged as injected CRDs, v3 records by kind (execution order of the live controller) and
//     key, references in other objects, ClusterInformation, components, the aggregated APIService, v1 records, v1 CRDs.
//   - Bounded: records are streamed twice; between the passes only an identity (key, kind, names, UIDs) a record is
//     kept in memory.
package calico
