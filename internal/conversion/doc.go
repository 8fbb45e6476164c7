// Package conversion asks a conversion webhook, or a command that does the same work on stdin and stdout, to convert
// custom resources, and judges the answers as an API server does.
//
// Request, checks and restored metadata are those of k8s.io/apiextensions-apiserver/pkg/apiserver/conversion, whose
// converter is used itself; only the transport below it is ours. That transport is what gives a call a deadline, a
// cancellation and a bound, none of which the library has: it asks with context.TODO and reads the answer to its end.
//
// Invariants:
//   - What Convert returns for an object is what a server returns for it at the other version, before that version's
//     schema prunes and defaults it: metadata is the input's but for labels and annotations; an answer with another
//     kind, name, namespace, uid or apiVersion is refused, and so is a v1 answer that does not echo the request's uid.
//   - Objects already at the version are not sent, as a server does not send them.
//   - One call converts the whole batch. A batch that is refused is halved until the objects at fault stand alone, so
//     that they are named and all others pass.
//   - Who can't be reached, or is silent beyond the timeout, is not asked again: Convert ends with ErrUnusable.
//   - Input objects are never changed, and results share nothing with them. Numbers are int64 or float64.
//   - A call ends with its context or its timeout, also where the answer trickles in or has no end; an answer is read up
//     to 16 MiB and four times the request. Redirects are not followed, so objects go to the named server alone.
//   - After Close no goroutine, connection or process of the converter is left. A command is killed with its process
//     group; only a child that left the group (setsid) outlives it.
//   - Errors never quote an object. They do quote what the converter itself says (the message of a Failure, a plain-text
//     HTTP error, the end of stderr), at most 2 KiB of it and without control characters: it is the only clue to what went
//     wrong, and a converter that puts values into its messages shows them there.
//
// The command needs no listener and no certificate: it takes the place of the network below the library's client, so
// that one path judges both, and no other local user can ask it or answer for it.
package conversion
