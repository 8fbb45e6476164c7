package remove

import (
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/choose"
	"github.com/etcdshift/etcdshift/transform"
)

// Spec is the command "delete".
var Spec = transform.Spec{
	Group: transform.GroupNone,
	Name:  "delete",
	Usage: "delete objects, as kubectl does",
	Examples: `etcdshift delete before.db after.db pod/web-1 -n shop
etcdshift delete before.db after.db events --all -A
etcdshift delete before.db after.db deploy -A \
    --where 'object.spec.replicas == 0'
etcdshift delete before.db after.db namespaces shop --keep`,
	Rest: "TYPE[/NAME] [NAME...]",
	Text: `Deletes the objects that kubectl delete would with the same words. A namespace is deleted with everything in it. TYPE alone
chooses nothing: --all chooses every object of it. With --keep the chosen objects stay, and the others of the same types and namespaces
are deleted.

The report names each deleted object, each that had finalizers, which do not run, and what the garbage collector will delete after the
restore because its owners are deleted.`,
	Codes:    codes(),
	Sections: []transform.Section{&Deletion{}},
	Flags: append(choose.Flags(),
		transform.Flag{Name: "keep", Default: false, Usage: "keep the chosen objects, delete the others of the same types and namespaces"},
		transform.Flag{Name: "cascade", Default: "background", Choices: []string{"background", "orphan"}, Bare: "background",
			Usage: "`background|orphan`, behind \"=\" as in kubectl: leave objects with deleted owners to the garbage collector, " +
				"or remove the owners from them"}),
	New: newFromArgs,
}

func newFromArgs(_ context.Context, a *transform.Args) (transform.Transform, error) {
	choice, err := choose.New(a, a.Rest)
	if err != nil {
		return nil, err
	}
	if a.Bool("keep") && a.Bool("all") {
		return nil, transform.Usagef("--keep --all deletes nothing")
	}
	return &Delete{choice: choice, keep: a.Bool("keep"), orphan: a.String("cascade") == "orphan"}, nil
}

func codes() []*finding.Code {
	return slices.Concat(choose.Codes(), transform.FreedCodes(), []*finding.Code{
		codeNeeded, codeLastAdmin, codeObjectsLeft, codeUnparsed, codeNothingKept, transform.CodeFinalizers, codeUnread, codeOwnersUnread,
		codeReturns, codeStorage, transform.CodeWouldBePlaintext,
	})
}

var (
	codeNeeded = &finding.Code{Name: "needed-namespace", Level: finding.Error, Allowed: finding.WentOn, Title: "a cluster cannot live without the namespace",
		Meaning: "The namespaces default, kube-system, kube-public and kube-node-lease hold what the control plane and nodes need. A server refuses " +
			"to delete the first three.",
		Remedy: "Delete objects in it instead: `etcdshift delete IN OUT TYPE --all -n kube-system`.",
		Allow:  "The namespace is deleted with everything in it. An API server makes it again, empty, at its start.",
	}
	codeLastAdmin = &finding.Code{Name: "last-admin", Level: finding.Error, Allowed: finding.WentOn, Title: "no administrator would be left",
		Meaning: "The last ClusterRoleBinding that gives somebody the ClusterRole cluster-admin is deleted. After the restore only members of system:masters " +
			"could administer the cluster, with a client certificate.",
		Remedy: "Keep a ClusterRoleBinding to cluster-admin.",
		Allow:  "The binding is deleted. An API server makes `cluster-admin`, for system:masters, again at its start.",
	}
	codeObjectsLeft = &finding.Code{Name: "crd-has-objects", Level: finding.Error, Allowed: finding.WentOn,
		Title: "a deleted CustomResourceDefinition has objects",
		Meaning: "The objects of the definition are not chosen. On a server they are deleted with it; without their definition, no server could read " +
			"or delete them.",
		Remedy: "Delete the objects first: `etcdshift delete IN OUT PLURAL.GROUP --all -A`.",
		Allow:  "The objects are deleted with the definition.",
	}
	codeUnparsed = transform.ErrorCode("left-in-namespace", "a key that no API server makes has the name of a deleted namespace",
		"The key is of no object that a server would read, so that nothing shows whether it belongs to the namespace. No server would delete it with the "+
			"namespace, or list it.",
		finding.RemedyUnknownKey,
		"The record stays as it is.")
	codeNothingKept = &finding.Code{Name: "nothing-kept", Level: finding.Error, Allowed: finding.WentOn, Title: "--keep would keep nothing",
		Meaning: "No object is chosen, so that all objects of the types and namespaces would be deleted. A selector may be misspelled.",
		Remedy:  "`etcdshift get` lists what a selector selects.",
		Allow:   "All objects of the types and namespaces are deleted.",
	}
	codeUnread = transform.WarningCode("deleted-unread", "a deleted value cannot be read",
		"The value is deleted. Its UID and finalizers are unknown: what it owns is not in the report.",
		"For an encrypted value give the API servers' EncryptionConfiguration with `--encryption-config FILE`.")
	codeOwnersUnread = transform.WarningCode("owners-unread", "owners of other objects cannot be read",
		"Whether the garbage collector will delete these objects is unknown. With `--cascade=orphan` such an object refuses the run instead.",
		"Give the API servers' EncryptionConfiguration with `--encryption-config FILE`.")
	codeReturns = transform.WarningCode("made-again", "a deleted object is made again after the restore",
		"An API server or kube-controller-manager makes the object whenever it is missing.",
		"Nothing to do.")
	codeStorage = transform.WarningCode("storage-released", "the storage of a deleted PersistentVolumeClaim may be deleted",
		"The claim of the PersistentVolume is deleted, by this run or after it by the garbage collector, and its reclaim policy is Delete or "+
			"Recycle: after the restore the data is destroyed, as on a server. A Pod or VolumeAttachment that is left delays that.",
		"To keep the data, set `spec.persistentVolumeReclaimPolicy` to Retain before the claim is deleted: `etcdshift patch`.")
)
