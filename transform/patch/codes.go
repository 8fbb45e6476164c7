package patch

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

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
	codeAddress = &finding.Code{Name: "address-in-use", Level: finding.Error, Allowed: finding.WentOn,
		Title: "another Service has the cluster IP or node port",
		Meaning: "An API server gives a cluster IP and a node port to one Service only. kube-proxy would send the traffic to one of the two, " +
			"and the port or IP is free for a third once one of them is deleted.",
		Remedy: "Choose a free one. `etcdshift get IN services -A` lists those in use.",
		Allow:  "The Service is patched.",
	}
	codeNoAddress = &finding.Code{Name: "cluster-ip-missing", Level: finding.Error, Allowed: finding.WentOn,
		Title: "the patched Service would have no cluster IP",
		Meaning: "A server allocates a cluster IP at the moment when the type changes from ExternalName. It gives none to a Service that has another type " +
			"already, and kube-proxy ignores a Service without one.",
		Remedy: "Set `spec.clusterIP` in the patch, to a free address of a ServiceCIDR or to `None`.",
		Allow:  "The Service is patched.",
	}
	codeNothing = transform.WarningCode("nothing-patched", "the patch changes nothing",
		"Each chosen object has the patched fields with these values already. OUT is a copy of IN.",
		"Check the patch and the choice of objects, if a change was expected.")
)
