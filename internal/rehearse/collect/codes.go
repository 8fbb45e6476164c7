package collect

import "github.com/etcdshift/etcdshift/finding"

// Codes returns the codes of findings.
func Codes() []*finding.Code { return []*finding.Code{codeCollected} }

var codeCollected = &finding.Code{
	Level: finding.Warning, Name: "rehearse-collected", Title: "the garbage collector deletes an object",
	Meaning: "A real garbage collector deleted the object, or marked it for deletion, right after its start: none of its owners exists with the UID of " +
		"metadata.ownerReferences. Or it removed the owners that are gone (`released`), and left the object. The same happens after a restore.",
	Remedy: "Nothing, if the object may go; else correct or remove `metadata.ownerReferences` before the snapshot is taken.",
}
