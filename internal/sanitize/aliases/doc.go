// Package aliases gives names of objects other names of the same shape and length.
//
// A name is a sequence of words: letters and digits between "-", "." and the like. Each word has
// one alias, wherever it stands, so that names made of names still fit: the Pod web-0 of the
// StatefulSet web, its claim data-web-0, the host web-0.web.shop.svc. Numbers, versions and a few
// words of Kubernetes stay.
//
// In a text of any sort a whole name is replaced, if no vocabulary has it: names of fields, types,
// enums and drivers. Other names, such as "db" and "status", are replaced only where a field holds
// the name of an object.
//
// Invariants:
//
//   - The alias of a text depends on the text and its field alone: what was equal is equal.
//   - Names have different aliases, of the same length, with separators in place. No alias is the
//     name of another object.
//   - No text of the vocabulary changes.
//   - The same key and the same names give the same aliases.
package aliases
