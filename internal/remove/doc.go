// Package remove is the command "delete": it deletes objects from a snapshot as "kubectl delete"
// does on a server.
//
// Invariants:
//
//   - A namespace is deleted with its contents, a CustomResourceDefinition with its objects, and a
//     Service with its Endpoints and IPAddress objects.
//   - The report section lists exactly the garbage collector's actions after the restore because of
//     the deletion. The rules are those of k8s.io/kubernetes pkg/controller/garbagecollector.
//   - Memory grows with the number of deleted objects and of objects with owners.
package remove
