// Package policy evaluates admission policies on stored objects as an API server would at their
// next write: MutatingAdmissionPolicies and ValidatingAdmissionPolicies, with their bindings and
// params. Matching, CEL and patches are those of k8s.io/apiserver's own admission plugins.
//
// A [Set] is read from manifests and from a snapshot. [New] compiles it into an [Engine], which
// evaluates one object at a time. [Check] evaluates all objects of a snapshot; [Spec] changes them.
//
// Policies see an update request by [Options.User] without changes: object equals oldObject.
//
// Invariants:
//
//   - The same policies and objects give the same answers in the same order: policies, bindings and
//     params are evaluated by name.
//   - An object that a rule names and that cannot be evaluated is a finding, never a silent pass.
//   - No finding about a Secret, or with a Secret as param, quotes the result of an expression.
//     Such text about other objects has no secret of the object, its Namespace or the params.
//   - An Engine never changes an object, and is safe for concurrent use.
package policy
