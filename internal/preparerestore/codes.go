package preparerestore

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are those of problems, and those of the machines, which are named in steps by hand.
func codes() []*finding.Code {
	tied := slices.DeleteFunc(machines.Codes(), func(c *finding.Code) bool { return c == machines.CodeOldNodes || c == machines.CodeNotInFile })
	return slices.Concat([]*finding.Code{codeKeepNode, codeBarePod, transform.CodeFinalizers, codeChangedSince, codeOtherCluster,
		codeNothingSaved, transform.CodeUnsupportedLayout}, objects.FreedCodes(), transform.ObjectCodes(), tied)
}

var (
	codeKeepNode     = finding.Lookup("keep-node-unknown")
	codeBarePod      = finding.Lookup("bare-pod")
	codeOtherCluster = finding.Lookup("other-cluster")
	codeNothingSaved = finding.Lookup("nothing-to-undo")
	codeChangedSince = finding.Lookup("changed-since")
)
