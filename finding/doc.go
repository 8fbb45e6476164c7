// Package finding is the vocabulary of everything that is reported about a file or a record: problems of a run, findings of the
// doctor, what is out of the ordinary with a logical cluster, answers about a move.
//
// A Code is one sort of finding, with its texts. Each package declares the codes it reports; codes of several packages are
// declared here. A Finding is one occurrence. It is an error too, so that a function which cannot handle a record returns one:
//
//	var codeTierMissing = &finding.Code{Name: "tier-missing", Level: finding.Warning, Title: "...", Meaning: "...", Remedy: "..."}
//
//	return codeTierMissing.Because("tier %q is not there", tier)
//
// Invariants:
//
//   - Names of codes, levels and outcomes are stable: scripts, --allow and --ignore name them.
//   - No program changes a Code. Two Codes may share a name where commands mean different things by it.
//   - A Code has an Allow text exactly where --allow takes it, that is where Allowed is set; only an Error can be allowed.
package finding
