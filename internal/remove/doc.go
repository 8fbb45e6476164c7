// Package remove is the command "delete": it deletes objects from a snapshot as "kubectl delete"
// does on a server.
//
// Invariants:
//
//   - A namespace goes with everything in it, a CustomResourceDefinition with its objects, and a
//     Service with its Endpoints and IPAddress objects.
//   - The section of the report has exactly what a garbage collector does after the restore because
//     of the deletion. Its rules are those of k8s.io/kubernetes pkg/controller/garbagecollector.
//   - Memory grows with the number of deleted objects, and of objects with owners.
package remove
