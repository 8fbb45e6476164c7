package preparerestore

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/machines"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are those of problems, and those of the machines, which are named in steps by hand.
func codes() []*finding.Code {
	tied := slices.DeleteFunc(machines.Codes(), func(c *finding.Code) bool { return c == machines.CodeOldNodes || c == machines.CodeNotInFile })
	return slices.Concat([]*finding.Code{codeKeepNode, codeBarePod, transform.CodeFinalizers, codeChangedSince, codeOtherCluster,
		codeNothingSaved, transform.CodeUnsupportedLayout}, transform.FreedCodes(), transform.ObjectCodes(), tied)
}

var (
	codeKeepNode = transform.ErrorCode("keep-node-unknown", "no Node has the name of --keep-node",
		"All Pods of a Node that is misspelled would be deleted.",
		"Give the name as `etcdshift get SNAPSHOT nodes` prints it.", "")
	codeBarePod = transform.WarningCode("bare-pod", "a Pod without a controller is lost with its node",
		"It was bound to a machine that does not come back, and nothing makes it anew. `migrate prepare-restore` deletes it.",
		"`etcdshift get IN pod/NAME -n NAMESPACE --export | kubectl apply -f -` makes it again on the new cluster.")
	codeOtherCluster = &finding.Code{Name: "other-cluster", Level: finding.Error, Allowed: finding.WentOn,
		Title: "the report of --undo is of another cluster",
		Meaning: "The namespace kube-system has another UID than in the snapshot that the report is about. Objects of one cluster would be put into " +
			"another.",
		Remedy: "Give the report of the run that wrote the snapshot, or one made of it.",
		Allow:  "What the report has is put back wherever the objects have the UIDs of the report, and deleted objects are made again.",
	}
	codeNothingSaved = transform.WarningCode("nothing-to-undo", "the report of --undo has nothing to put back",
		"`migrate prepare-restore` changed nothing that `--undo` takes back: that is what `--isolate`, webhooks and APIServices change. Deleted Nodes, Pods "+
			"and leases are not put back.",
		"Nothing, if that was the run; else give its report.")
	codeChangedSince = transform.ErrorCode("changed-since", "an object changed after the run that --undo takes back",
		"The field no longer has the value that `migrate prepare-restore` wrote, or the object is gone or another one.",
		"Decide by hand what is right; the report has the value of before in `saved`.",
		"The object stays as it is.")
)
