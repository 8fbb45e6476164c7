package patch

import "github.com/etcdshift/etcdshift/transform"

// The codes of findings about a patch.
var (
	codeFailed = transform.ErrorCode("patch-failed", "the patch cannot be applied to the object",
		"A path of a JSON patch is missing, a `test` of it failed, or a field of the patch has another type than that of the object.",
		"Compare the patch with `etcdshift get IN TYPE/NAME -o yaml`, or choose fewer objects.",
		"The object stays as it is.")
	codeIdentity = transform.ErrorCode("patch-identity", "the patch would make another object of the object",
		"It changes `apiVersion`, `kind`, or `metadata.name`, `namespace` or `uid`, or names another `metadata.resourceVersion` than the object has. "+
			"The key in etcd and the references of other objects follow the name and the UID; they would point to nothing.",
		"Take the field out of the patch. A node is renamed by `etcdshift migrate rename-node`.",
		"The object stays as it is.")
	codeStrategic = transform.ErrorCode("strategic-custom-resource", "custom resources take no strategic merge patch",
		"How a strategic merge patch merges lists is part of Go types, which custom resources lack. `kubectl patch` refuses it too.",
		"Give `--type merge` or `--type json`.",
		"The object stays as it is.")
	codeNothing = transform.WarningCode("nothing-patched", "the patch changes nothing",
		"Each chosen object has the patched fields with these values already. OUT is a copy of IN.",
		"Check the patch and the choice of objects, if a change was expected.")
)
