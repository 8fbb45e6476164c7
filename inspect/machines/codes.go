package machines

import (
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
)

// Codes returns the codes of a restore on other machines.
func Codes() []*finding.Code {
	return []*finding.Code{
		CodeOldNodes, CodeNodeRecords, CodeNodeUser, CodeNodePods, CodeNodePinned,
		CodeNodeVolume, CodeVolumeAttached, CodeTokenKey, CodeNodePassword, CodeAPIAddress,
		CodeServiceAddress, CodeServiceRange, CodeWebhookURL, CodeClusterCA, CodeNotInFile,
	}
}

// Findings of Options.NewMachines.
var (
	CodeOldNodes = finding.NewCode(finding.Warning, "old-nodes", "Nodes of the old machines",
		"Reported with `--for new-machines`. Until a Node is deleted, its Pods seem to run, Services send to them, and their volumes stay attached.",
		"Before the restore: `etcdshift migrate prepare-restore`. Else, when the new machines have joined: "+
			"`kubectl delete node NAME` for each old one. Its Lease, CSINode and Pods follow.")
	CodeNodeRecords = finding.NewCode(finding.Info, "node-records", "records about the old machines",
		"Leases, CSINodes, devices and records of network and storage plugins that name a node. Most are deleted after their Node.",
		"`etcdshift migrate prepare-restore` deletes those that it can. Look whether the plugin "+
			"removes what is left, such as IP addresses of Calico: `calicoctl ipam check`.")
	CodeNodeUser = finding.NewCode(finding.Warning, "node-user", "roles are bound to nodes by their names",
		"A subject is a user `system:node:NAME`: a new machine of that name gets the role, and one of another name does not.",
		"Change the subjects to the new names, or bind the group system:nodes; delete bindings of machines that do not come back.")
	CodeNodePods = finding.NewCode(finding.Warning, "node-bound-pods", "Pods are bound to the old machines",
		"Their `spec.nodeName` is set. They seem to run and are not made anew while the Node exists; a StatefulSet waits for ever.",
		"`etcdshift migrate prepare-restore`. Else delete the old Nodes: "+
			"the garbage collector of Pods then deletes these Pods, and controllers make new ones. Pods without a controller are lost.")
	CodeNodePinned = finding.NewCode(finding.Warning, "node-pinned", "workloads select a machine by its name",
		"A nodeSelector, required affinity or `nodeName` asks for `kubernetes.io/hostname` or a node. Without a node of that name the Pods stay Pending, "+
			"and so may those with a claim whose annotation `volume.kubernetes.io/selected-node` names an old one, which prepare-restore removes.",
		"Give a new machine the name, or change the selector.")
	CodeNodeVolume = finding.NewCode(finding.Error, "node-bound-volume", "volumes are on the old machines",
		"PersistentVolumes of type local or hostPath, or with an affinity to one node: the data is not in the snapshot. On a node of another name Pods stay "+
			"Pending (`volume node affinity conflict`); a node of that name has an empty folder.",
		"Move the disks, or restore the data from its own backup. Else delete the claim and the volume.")
	CodeVolumeAttached = finding.NewCode(finding.Warning, "volume-attached", "volumes are attached to the old machines",
		"VolumeAttachments say so: a new node waits at least six minutes for a volume (`Multi-Attach error`), or for ever.",
		"`etcdshift migrate prepare-restore`. Else, when the old machines are off: "+
			"delete the old Nodes, detach the volumes in the storage, then `kubectl delete volumeattachment NAME`.")
	CodeTokenKey = finding.NewCode(finding.Warning, "token-key", "tokens need the old signing key",
		"Secrets with tokens of ServiceAccounts, signed by the old API servers. With another `--service-account-signing-key-file` they are refused "+
			"(`invalid bearer token`), and so is every token in a running Pod.",
		"Bring the key (`/etc/kubernetes/pki/sa.key` and `sa.pub`). Else `etcdshift migrate prepare-restore "+
			"--new-service-account-key` empties these Secrets, and the token controller fills them anew.")
	CodeNodePassword = finding.NewCode(finding.Warning, "node-password", "passwords of k3s or RKE2 nodes",
		"A new machine with the name of an old one is refused (`Node password rejected, duplicate hostname`), unless it has the old "+
			"`/etc/rancher/node/password`.",
		"`etcdshift migrate prepare-restore`, or `kubectl -n kube-system delete secret NAME` before the machine joins.")
	CodeAPIAddress = finding.NewCode(finding.Warning, "api-address", "an address of the old control plane",
		"kube-proxy, joining nodes or the network plugin go to this address. While it leads elsewhere, Services do not work and no node joins.",
		"Keep the address (DNS, virtual IP, load balancer), or change the ConfigMap after the restore and restart what reads it.")
	CodeServiceAddress = finding.NewCode(finding.Warning, "service-address", "addresses of Services that lead to the old machines",
		"Load balancers, external IPs and node ports are outside of the snapshot. A cloud controller of the new cluster may take load balancers over from "+
			"the old one.",
		"Stop the old cluster first. Point load balancers, routes and firewalls to the new machines.")
	CodeServiceRange = finding.NewCode(finding.Info, "service-range", "the ranges of Services",
		"API servers with another range report Services whose address or port is not in it, and clients of the old address of DNS fail.",
		"Start the API servers with the same `--service-cluster-ip-range` and `--service-node-port-range`.")
	CodeWebhookURL = finding.NewCode(finding.Warning, "webhook-url", "a webhook outside of the cluster",
		"An admission or conversion webhook, or an APIService, has a URL, or a Service of type ExternalName of a host elsewhere: the new machines must "+
			"reach it, and it them. With `failurePolicy: Fail` all that a webhook matches is refused (`failed calling webhook`).",
		"Try the URL or host from a new control plane machine.")
	CodeClusterCA = finding.NewCode(finding.Warning, "cluster-ca", "certificates of the cluster's CA",
		"The caBundle is the CA in ConfigMap kube-root-ca.crt. With a new CA nobody trusts it: `x509: certificate signed by unknown authority`.",
		"Bring the CA (`/etc/kubernetes/pki/ca.crt` and `ca.key`). Else sign the certificates anew and change the caBundle.")
	CodeNotInFile = finding.NewCode(finding.Info, "not-in-file", "what other machines need beside the snapshot",
		"Reported with `--for new-machines` of every file: an etcd snapshot has no certificates, no keys, no configuration of the machines. The members of "+
			"etcd are made anew by the restore.",
		"Bring the CAs of the cluster, the front proxy and etcd, the key of ServiceAccounts, the EncryptionConfiguration, the manifests and the token of "+
			"k3s or RKE2. Restore with the `--name` and `--initial-cluster` of the new members.")
)

// Wording returns how to say how many objects have a tie: what they are, and a format that takes
// their number and the subject of the tie.
func Wording(code *finding.Code) (thing, format string) {
	w := wordings[code]
	return w[0], w[1]
}

// Worded says how many objects have a tie.
func Worded(code *finding.Code, n int, subject string) string {
	thing, format := Wording(code)
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf(format, fmt.Sprintf("%d %s", n, thing), subject)
}

var wordings = map[*finding.Code][2]string{
	CodeNodeRecords:    {"object", "%s of %s"},
	CodeNodeUser:       {"object", "%s of %s with a user system:node:NAME"},
	CodeNodePods:       {"Pod", "%s bound to a node: %s"},
	CodeNodePinned:     {"object", "%s of %s for nodes of certain names"},
	CodeNodeVolume:     {"PersistentVolume", "%s %s"},
	CodeVolumeAttached: {"VolumeAttachment", "%[1]s to the old machines"},
	CodeTokenKey:       {"Secret", "%[1]s with a token that the old API servers signed"},
	CodeNodePassword:   {"Secret", "%[1]s with the password of a node"},
	CodeAPIAddress:     {"ConfigMap", "%s with the API server %s"},
	CodeServiceAddress: {"Service", "%s with %s"},
	CodeServiceRange:   {"record", "%[2]s"},
	CodeWebhookURL:     {"object", "%s of %s with a URL or an ExternalName outside of the cluster"},
	CodeClusterCA:      {"object", "%s of %s whose caBundle is the CA of the cluster"},
}
