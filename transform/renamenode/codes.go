package renamenode

import "github.com/etcdshift/etcdshift/transform"

// The codes of findings about the names of nodes.
var (
	codeNoNode = transform.ErrorCode("no-such-node", "the snapshot has no Node of the old name",
		"The Node may be renamed already, be spelled in another way, or have been deleted.",
		"`etcdshift get IN nodes` lists the names.",
		"Records that refer to the old name are changed all the same.")
	codeMentioned = transform.WarningCode("old-node-name", "a record still mentions the old name of a node",
		"The reason lists the fields. What they mean is not known to this program: an argument of a container, an annotation of a storage driver, a custom "+
			"resource, the name of a certificate. Values in base64 or compressed, such as Helm releases, are not looked into.",
		"Look at each field. `etcdshift patch` changes those that are wrong under the new name.")
	codeAttachment = transform.WarningCode("attachment-name", "a VolumeAttachment keeps its name",
		"Kubernetes computes the name from volume, driver and node. Here that cannot be done again: its PersistentVolume is gone, or is of an in-tree driver. "+
			"After the restore a second VolumeAttachment is made for the new name, and the attach/detach controller deletes this one.",
		"Nothing, where the driver may attach the volume to the same machine twice. Else detach it before the snapshot.")
)
