// Package calico rewrites the records of Calico's group crd.projectcalico.org/v1 in a snapshot as
// records of projectcalico.org/v3, as Calico's own DatastoreMigration controller does on a live
// cluster, but without its losses.
//
// Invariants, each with a test of its name:
//
//   - SeenUID: a v3 record has the UID that clients of the aggregated API already saw, ConvertUID
//     of the stored one (or, with Options.NewUIDs, a hash of the input's digest and the v3 key).
//     Equal inputs and options give equal bytes.
//   - NothingLost: creationTimestamp, finalizers, owner references, deletionTimestamp, status,
//     labels and the whole spec of a v1 record are in the v3 record, as a client of the aggregated
//     API saw them. Finalizers, owner references and a deletion that only the record itself has are
//     added.
//   - ChangesDocumented: every field that a v3 record has otherwise than its v1 record is in
//     docs/reference/calico-v3-records.md, or was reported as unknown-field.
//   - Valid: every v3 record written is pruned, defaulted and validated against its v3 CRD. An
//     invalid record is not written but reported as `invalid`.
//   - NothingIsPruned: pruning drops only fields that the v1 CRD does not know either, and says so.
//     A record that would lose more is reported as `crd-unfit`.
//   - OwnersEnd: after the migration every owner reference to a Calico object, in any object of the
//     snapshot, names the group, kind, name and UID of a v3 record, or is reported as
//     `dangling-owner`.
//   - NothingSilent: a v1 record is either migrated, equal to a v3 record that is there, or named
//     in the report's problems. A skipped v1 record keeps every v1 record, CRD and APIService in
//     the output.
//   - Idempotent: migrating the output changes nothing.
//   - InOrder: writes are staged as injected CRDs, v3 records by kind (in the order of the live
//     controller) and key, references in other objects, ClusterInformation, components, the
//     aggregated APIService, v1 records, v1 CRDs.
//   - Bounded: records are streamed twice, a batch at a time. Between the passes an identity (key,
//     kind, names, UIDs) a record is kept in memory.
package calico
