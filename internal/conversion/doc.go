// Package conversion asks a conversion webhook, or a command that does the same on stdin and
// stdout, to convert custom resources, and checks the answers as an API server does.
//
// The converter is that of k8s.io/apiextensions-apiserver/pkg/apiserver/conversion; only the
// transport below it is new. It gives calls a deadline, a cancellation and a bound, which the
// library lacks. A command takes the place of the network, so that one path checks both.
//
// Invariants:
//   - Convert returns for an object the result of a server at the other version, before the schema
//     prunes and defaults it: metadata is the input's except labels and annotations. Answers with
//     another kind, name, namespace, uid or apiVersion are refused, and v1 answers that do not echo
//     the request's uid.
//   - One call converts the whole batch. A refused batch is halved to find the objects at fault.
//   - A converter that cannot be reached, or is silent beyond the timeout, is not asked again:
//     ErrUnusable.
//   - Input objects never change; results share nothing with them. Numbers are int64 or float64.
//   - A call ends with its context or its timeout, even during an endless answer; an answer is read
//     up to 16 MiB and four times the request. Redirects are not followed.
//   - After a call no process of a command is left: it is killed with its process group. Only a
//     child that left the group (setsid) survives. Idle connections end by themselves.
//   - Errors never quote an object. They quote the converter's own words (the message of a Failure,
//     a plain-text HTTP error, the end of stderr), at most 2 KiB without control characters.
package conversion
