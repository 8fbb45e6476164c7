package remove

import (
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "delete".
var Spec = transform.Spec{
	Name:  "delete",
	Usage: "delete objects, as kubectl does",
	Examples: `etcdshift delete before.db after.db pod/web-1 -n shop
etcdshift delete before.db after.db events --all -A
etcdshift delete before.db after.db deploy -A \
    --where 'object.spec.replicas == 0'
etcdshift delete before.db after.db namespaces shop --keep`,
	Rest: "TYPE[/NAME] [NAME...]",
	Text: `Deletes the same objects as "kubectl delete" with the same arguments. A namespace is deleted with all its
objects. TYPE alone selects nothing: add --all to select all its objects. With --keep the selected objects stay, and
the other objects of the same types and namespaces are deleted.

The report lists each deleted object, each object with finalizers (they do not run), and the objects that the garbage
collector will delete after the restore because their owners are deleted.

The deletions are new revisions. The old records of the deleted objects, Secrets too, stay in the file until etcd is
compacted, and in free pages until etcd is defragmented. --scrub writes a file without any record of these
objects. Objects that the garbage collector will delete are not scrubbed.`,
	Codes:    codes(),
	Sections: []transform.Section{&Deletion{}},
	Flags: append(objects.ChoiceFlags(),
		transform.Flag{Name: "keep", Default: false,
			Usage: "keep the selected objects, delete the others of the same types and namespaces"},
		transform.Flag{Name: "cascade", Default: "background", Choices: []string{"background", "orphan"},
			Bare: "background",
			Usage: "`background|orphan`, after \"=\" as in kubectl: leave dependents of deleted objects to the " +
				"garbage collector, or remove their references to the deleted owners"},
		scrubFlag()),
	New: newFromArgs,
}

func scrubFlag() transform.Flag {
	return transform.Flag{Name: "scrub", Default: false,
		Usage: "write OUT without any record of the deleted objects, of any revision, and without free pages"}
}

func newFromArgs(_ context.Context, a *transform.Args) (transform.Transform, error) {
	choice, err := objects.Choose(a, a.Rest)
	if err != nil {
		return nil, err
	}
	if a.Bool("keep") && a.Bool("all") {
		return nil, transform.Usagef("--keep --all deletes nothing")
	}
	return &Delete{choice: choice, keep: a.Bool("keep"), orphan: a.String("cascade") == "orphan",
		scrub: a.Bool("scrub")}, nil
}

func codes() []*finding.Code {
	return slices.Concat(objects.ChoiceCodes(), objects.FreedCodes(), []*finding.Code{
		codeNeeded, codeLastAdmin, codeObjectsLeft, codeUnparsed, codeNothingKept, transform.CodeFinalizers, codeUnread,
		codeOwnersUnread,
		codeReturns, codeStorage, transform.CodeWouldBePlaintext,
	})
}

var (
	codeNeeded       = finding.Lookup("needed-namespace")
	codeLastAdmin    = finding.Lookup("last-admin")
	codeObjectsLeft  = finding.Lookup("crd-has-objects")
	codeUnparsed     = finding.Lookup("left-in-namespace")
	codeNothingKept  = finding.Lookup("nothing-kept")
	codeUnread       = finding.Lookup("deleted-unread")
	codeOwnersUnread = finding.Lookup("owners-unread")
	codeReturns      = finding.Lookup("made-again")
	codeStorage      = finding.Lookup("storage-released").As(finding.Warning, "")
)
