// Package conversion asks a conversion webhook, or a command that does the same on stdin and
// stdout, to convert custom resources, and checks the answers as an API server does.
//
// The converter is that of k8s.io/apiextensions-apiserver/pkg/apiserver/conversion; only the
// transport below it is new. The transport gives calls a deadline, a cancellation and a bound,
// which the library lacks: it calls with context.TODO and reads answers to their end. A command
// takes the place of the network below the library, so that one path checks both. It needs no
// listener and no certificate.
//
// Invariants:
//   - Convert returns for an object the result of a server at the other version, before the schema
//     prunes and defaults it: metadata is the input's except labels and annotations. Answers with
//     another kind, name, namespace, uid or apiVersion are refused, and v1 answers that do not echo
//     the request's uid.
//   - Objects at the version are not sent, as by a server.
//   - One call converts the whole batch. A refused batch is halved to find the objects at fault.
//   - A converter that cannot be reached, or is silent beyond the timeout, is not asked again:
//     ErrUnusable.
//   - Input objects never change; results share nothing with them. Numbers are int64 or float64.
//   - A call ends with its context or its timeout, even during an endless answer; an answer is read
//     up to 16 MiB and four times the request. Redirects are not followed.
//   - After Close no goroutine, connection or process of the converter is left. A command is killed
//     with its process group; only a child that left the group (setsid) survives.
//   - Errors never quote an object. They quote the converter's own words (the message of a Failure,
//     a plain-text HTTP error, the end of stderr), at most 2 KiB without control characters.
package conversion
