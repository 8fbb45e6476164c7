// Package calico rewrites the records of Calico's group crd.projectcalico.org/v1 in a snapshot as
// records of projectcalico.org/v3, like Calico's own DatastoreMigration controller on a live
// cluster, but without the controller's losses.
//
// Invariants, each with a test of its name:
//
//   - SeenUID: a v3 record has the UID seen by clients of the aggregated API: ConvertUID of the
//     stored UID (or, with Options.NewUIDs, a hash of the input's digest and the v3 key). Equal
//     inputs and options give equal bytes.
//   - NothingLost: a v3 record has the creationTimestamp, finalizers, owner references,
//     deletionTimestamp, status, labels and whole spec of its v1 record, as seen by clients of the
//     aggregated API. Finalizers, owner references and a deletion found only in the outer metadata
//     are added.
//   - ChangesDocumented: every field that differs between a v1 record and its v3 record is in
//     docs/reference/calico-v3-records.md, or was reported as unknown-field.
//   - Valid: every written v3 record is pruned, defaulted and validated against its v3 CRD. An
//     invalid record is reported as `invalid` and not written.
//   - NothingIsPruned: pruning drops only fields unknown to the v1 CRD too, and reports the fields.
//     A record that would lose more is reported as `crd-unfit`.
//   - OwnersEnd: after the migration every owner reference to a Calico object, in any object of the
//     snapshot, names the group, kind, name and UID of a v3 record, or is reported as
//     `dangling-owner`.
//   - NothingSilent: a v1 record is migrated, equals an existing v3 record, or is named in the
//     report's problems. One skipped v1 record keeps all v1 records, CRDs and the APIService in the
//     output.
//   - Idempotent: migrating the output changes nothing.
//   - InOrder: writes are staged in the order: injected CRDs, v3 records by kind (in the order of
//     the live controller) and key, references in other objects, ClusterInformation, components,
//     the aggregated APIService, v1 records, v1 CRDs.
//   - Bounded: records are streamed twice, in batches. Between the passes only one identity (key,
//     kind, names, UIDs) per record stays in memory.
package calico
