package snapshot

import (
	"regexp"
	"strings"
)

const (
	agreed      = "agreed: sound"
	agreedBad   = "agreed: fatal"
	agreedLies  = "agreed: lies, and the server lives"
	unexplained = "not explained"
)

// explanation is a difference between this package and its peers that is meant.
type explanation struct {
	match *regexp.Regexp // of a finding, or of what is odd or what a peer says
	why   string
}

// accepts explains findings of files that a server of 3.7 starts on, by the text of the finding.
func accepts() []explanation {
	return []explanation{
		{regexp.MustCompile(`meta page [01]:|bytes follow the image|file is truncated`),
			"a snapshot has two right metas and ends at their high-water mark; bbolt looks at one, and at no size until it needs a page"},
		{regexp.MustCompile(`free list: .*(lies outside|is named free)`),
			"a server uses the page as soon as it needs one: it did not yet"},
		{regexp.MustCompile(`is not a KeyValue \(field [1-6]\)`), "etcd 3.4 to 3.6 die of it, 3.7 loses the field"},
		{regexp.MustCompile(`bucket "[a-zR]*": .*field \d has wire type`), "etcd 3.4 to 3.6 die of it, 3.7 loses the field"},
		{regexp.MustCompile(`holds a bucket of its own|is not a bucket`), "bbolt reads it as empty; etcd stores none"},
		{regexp.MustCompile(`lies in the page's own table|shares bytes with`), "bbolt reads what lies there, twice; it never writes such a page"},
		{regexp.MustCompile(`revision key of 18 bytes`), "a server dies when it reads the record by its revision, which nobody did yet"},
		{regexp.MustCompile(`does not sort after the one before it`), "bbolt check passes over inline buckets; a search misses entries"},
	}
}

// dies explains files without a finding that a peer complains of, by the text of what is odd or of
// what the peer says.
func dies() []explanation {
	return []explanation{
		{regexp.MustCompile(`its name is not UTF-8`), "warned of: the server runs, and cannot list its users or roles"},
		{regexp.MustCompile(`neither in use nor free`), "warned of: bbolt check finds lost pages, a server lives with them"},
	}
}

// compare says why both verdicts agree, or why they need not.
func compare(ours verdict, theirs peerVerdict) string {
	bad := theirs.dies() || theirs.Check != ""
	switch {
	case len(ours.Findings) == 0 && !bad && ours.Served == theirs.Served:
		return agreed
	case ours.worst() == Fatal && bad:
		return agreedBad
	case ours.worst() == Lies && !bad:
		return agreedLies
	case len(ours.Findings) > 0:
		return explain(accepts(), strings.Join(ours.Findings, "\n"))
	}
	return explain(dies(), strings.Join(append(ours.Odd, theirs.Check, theirs.Restore, theirs.Start), "\n"))
}

func explain(known []explanation, text string) string {
	for _, e := range known {
		if e.match.MatchString(text) {
			return e.why
		}
	}
	return unexplained
}
