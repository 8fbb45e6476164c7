// Package remove has the commands "delete" and "purge": "delete" deletes objects from a snapshot as
// "kubectl delete" does on a server, "purge" deletes the records that "extract" writes.
//
// Invariants:
//
//   - delete: a namespace is deleted with its contents, a CustomResourceDefinition with its
//     objects, and a Service with its Endpoints and IPAddress objects.
//   - purge: exactly the selected records are deleted. A namespace or definition with objects that
//     are not selected refuses the run; IPAddress objects of a deleted Service stay.
//   - The report section lists exactly the garbage collector's actions after the restore because of
//     the deletion. The rules are those of k8s.io/kubernetes pkg/controller/garbagecollector.
//   - Memory grows with the number of deleted objects and of objects with owners.
package remove
