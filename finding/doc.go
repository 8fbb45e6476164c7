// Package finding is the vocabulary of everything reported about a file or a record: problems of a
// run, findings of the doctor, unusual logical clusters, answers about a move.
//
// A [Code] is one kind of finding, with its texts. Each package declares the codes of its reports;
// codes of several packages are declared here, such as [Undecodable]. A [Finding] is one
// occurrence, made by [Code.Because]. A Finding is also an error: a function returns a Finding for
// a record that it cannot handle:
//
//	var codeTierMissing = &finding.Code{Name: "tier-missing", Level: finding.Warning, Title: "…"}
//
//	return codeTierMissing.Because("tier %q does not exist", tier)
//
// Invariants:
//
//   - Names of codes, levels and outcomes are stable: scripts, --allow and --ignore name them.
//   - No program changes a Code. Two Codes may share a name if commands give it different meanings.
//   - A Code has an Allow text exactly if --allow takes it (Allowed is set); only an Error can be
//     allowed.
package finding
