package preparerestore

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/machines"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are those of problems, and those of the machines, which are named in steps by hand.
func codes() []*finding.Code {
	objects := slices.DeleteFunc(transform.ObjectCodes(), func(c *finding.Code) bool { return c == transform.CodeNameTaken })
	tied := slices.DeleteFunc(machines.Codes(), func(c *finding.Code) bool { return c == machines.CodeOldNodes || c == machines.CodeNotInFile })
	return slices.Concat([]*finding.Code{codeKeepNode, codeBarePod, transform.CodeFinalizers, codeChangedSince, transform.CodeUnsupportedLayout}, objects, tied)
}

var (
	codeKeepNode = transform.ErrorCode("keep-node-unknown", "no Node has the name of --keep-node",
		"All Pods of a Node that is misspelled would be deleted.",
		"Give the name as `etcdshift get SNAPSHOT nodes` prints it.", "")
	codeBarePod = transform.WarningCode("bare-pod", "a Pod without a controller is lost with its node",
		"It was bound to a machine that does not come back, and nothing makes it anew. `migrate prepare-restore` deletes it.",
		"`etcdshift get IN pod/NAME -n NAMESPACE --export | kubectl apply -f -` makes it again on the new cluster.")
	codeChangedSince = transform.ErrorCode("changed-since", "an object changed after the run that --undo takes back",
		"The field no longer has the value that `migrate prepare-restore` wrote, or the object is gone or another one.",
		"Decide by hand what is right; the report has the value of before in `saved`.",
		"The object stays as it is.")
)
