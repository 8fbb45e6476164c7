package doctor

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/inspect/machines"
)

// Codes returns all codes of findings, by subject.
func Codes() []*finding.Code {
	return append(machines.Codes(), []*finding.Code{
		CodeDamaged, codeNoLiveKey, codeNoDigest, codeBumpRevision, codeOverQuota, codeNearQuota, codeAlarmNoSpace, codeAlarmCorrupt, codeEtcdTooOld,
		codeEtcdVersion, codeForeignKeys, codeStrayKeys, codeLayoutUnchecked, codeUndecodable, codeBadMetadata, codeUnknownKind, codeKeyMismatch,
		codeDuplicateUID, codeTooLarge, codeNearLimit, codeLeaseGone, codeNamespaceGone, codeEncrypted, codeEncryptionKeys, codeMixedEncryption,
		codeCRDUnreadable, codeVersionUnlisted, codeListInvalid, codeListLacks, codeListNeeded, codeListExtra, codeManagedVersion,
		CodeUpdateRefused, CodeApplyRefused, codeHiddenField, codeOrphans, codeCRDTerminating, codeConversionGone, codeConversionNeeded, codeConversion,
		codeOwnerGone, codeOwnerUnresolvable, codeOwnerNamespaced, codeOwnerUnchecked, codeNamespaceTerminating, codeDeletingVolume, codeDeleting,
		codeWebhookServiceGone,
		codeWebhookDeadlock, codeWebhookCore, codeWebhookEndpoints, codeAPIServiceGone, codeAPIServiceEndpoints, codeAPIServiceUnavailable,
		codeCalicoEmpty, codeCalicoMigrating, codeCalicoLocked,
		codeMasterLease, codeMasterUnlisted, codeMemberRemoval, codeAddressTwice, codeAddressLeft,
		codeNodeSilent, codeTokenWithoutUse, codeShardPartial, codeShardTwice, clusters.CodeClusterTwice,
		codeClusterOrphans, codeStaleCopies, codeClusterMismatch, clusters.CodeClusterTerminating, clusters.CodeClusterMigrating,
		clusters.CodeClusterMisnamed, clusters.CodeWorkspaceGone, clusters.CodeWorkspaceAstray, clusters.CodeBoundDefinitionGone,
		clusters.CodeIdentityUnbound,
	}...)
}

var (
	// About the file.
	CodeDamaged = finding.NewCode(finding.Error, "damaged", "the file is damaged",
		"`etcdshift verify` finds damage: the digest is wrong, or the free list, a page, a record or an entry of another bucket is not what etcd writes. "+
			"Records of such a file are not checked. If only the free list is wrong, no record is harmed, and outputs have no list. A file that is no "+
			"snapshot at all ends in exit status 5 instead.",
		"Restore another copy, or take a new snapshot. If only the free list is wrong, restore the output of `etcdshift migrate`.")
	codeNoLiveKey = finding.NewCode(finding.Warning, "no-live-key", "no key is live",
		"Every key of the store is deleted, or there never was one: a cluster restored from the file is empty, without an object of Kubernetes.",
		"Look for an earlier snapshot. `etcdshift get --deleted` and `etcdshift history` show what is left of the deleted objects.")
	codeNoDigest = finding.NewCode(finding.Warning, "no-digest", "the file has no digest",
		"The file is a member's `member/snap/db`: nothing shows whether it was copied whole, and writes that were only in the WAL are missing.",
		"Use `etcdctl snapshot save`; this file needs `etcdutl snapshot restore --skip-hash-check`.")
	codeBumpRevision = finding.NewCode(finding.Info, "bump-revision", "watches need higher revisions",
		"Reported of every file. A plain restore lowers revisions: the caches of controllers and kubelets seem newer, and they miss changes. "+
			"After a restore with both flags their watches end once (`required revision has been compacted`), and they list again.",
		"Restore every member with `--bump-revision 1000000000 --mark-compacted` (etcdutl 3.4.27, 3.5.10 or newer).")
	codeOverQuota = finding.NewCode(finding.Error, "over-quota", "the database is over the quota",
		"The database, free pages included, is as large as the quota of `--quota`: the first write raises NOSPACE (`mvcc: database space exceeded`). "+
			"`etcdshift sizes` estimates the size after compaction and defragmentation.",
		"Raise `--quota-backend-bytes` for the restore, then compact and defragment.")
	codeNearQuota = finding.NewCode(finding.Warning, "near-quota", "the database is near a quota",
		"80% of `--quota`; without it, 80% of etcd's default of 2 GiB, or over the 8 GiB it suggests at most. The file does not show the cluster's quota. "+
			"`etcdshift sizes` shows what fills the database.",
		"Compact and defragment; name the quota with `--quota`.")
	codeAlarmNoSpace = finding.NewCode(finding.Error, "alarm-nospace", "the alarm NOSPACE is raised",
		"A member had raised the alarm. It is part of the database: the restored etcd refuses all writes (`mvcc: database space exceeded`).",
		"`etcdshift compact --disarm` on the file; or compact, defragment and `etcdctl alarm disarm` after the restore.")
	codeAlarmCorrupt = finding.NewCode(finding.Error, "alarm-corrupt", "the alarm CORRUPT is raised",
		"Members held different data. The alarm survives the restore: requests are refused (`etcdserver: corrupt cluster`).",
		"Restore the right member's snapshot, then `etcdctl alarm disarm`.")
	codeEtcdTooOld = finding.NewCode(finding.Error, "etcd-too-old", "this etcd does not start on the file",
		"The release of `--etcd` is older than the cluster or storage version in the file. `etcdutl snapshot restore` does not notice.",
		"Restore with the etcd release that the file names, or a newer one.")
	codeEtcdVersion = finding.NewCode(finding.Info, "etcd-version", "the file needs a release of etcd",
		"The oldest release that starts on the file, if `--etcd` does not name the one to restore with.",
		"Restore with that release of etcd or a newer one; `--etcd` checks it.")
	codeForeignKeys = finding.NewCode(finding.Info, "foreign-keys", "keys of no API server",
		"Another program shares this etcd, or the storage prefix is unusual.",
		"Nothing. For keys of an API server, give its `--prefix` and those of `status`.")
	codeStrayKeys = finding.NewCode(finding.Warning, "stray-keys", "keys of no object below a storage prefix",
		"Another program or a person wrote them, or an API server that this build does not know. They were not checked. An API server lists keys below the "+
			"folder of a resource, and never sees the rest.",
		"Find out what wrote them.")
	codeLayoutUnchecked = finding.NewCode(finding.Info, "layout-not-judged", "a layout that is not checked",
		"Keys are laid out as by kcp or openshift-apiserver. Values and logical clusters of kcp were checked; relations between objects were not.",
		"Nothing to do.")

	// About records.
	codeUndecodable = finding.NewCode(finding.Error, "undecodable", "an API server cannot decode a value",
		"The value is no object, or not of its key's kind, or a field has the wrong type: lists of its kind fail, and with them the deletion of namespaces. "+
			"A custom resource of the right group and another kind does not fail them: servers pass it on unchecked.",
		"`etcdctl get KEY` shows it; delete it, or put back an older value.")
	codeBadMetadata = finding.NewCode(finding.Warning, "bad-metadata", "a field of metadata is of the wrong type",
		"API servers silently drop such a field of a custom resource.",
		"Write the object anew.")
	codeUnknownKind = finding.NewCode(finding.Info, "unknown-kind", "a kind that this build does not know",
		"Built-in objects of a kind that was removed from Kubernetes, or of a newer release. Their metadata was checked, their content was not. An API "+
			"server without that kind cannot list them.",
		"Restore with an API server that has that kind.")
	codeKeyMismatch = finding.NewCode(finding.Error, "key-mismatch", "an object does not belong to its key",
		"The name or namespace in the object differs from its key, often by a flipped bit: the API shows the object under one and finds it under the other.",
		"`kubectl delete TYPE NAME -n NAMESPACE`, with the name and namespace of the key, removes that key alone. Where it is refused, or finalizers keep "+
			"the object: `etcdctl del KEY`.")
	codeDuplicateUID = finding.NewCode(finding.Warning, "duplicate-uid", "two objects have one UID",
		"As after an object was copied inside etcd. The garbage collector knows objects by UID, and mistakes one for the other.",
		"Delete one of them and create it through the API.")
	codeTooLarge = finding.NewCode(finding.Warning, "value-too-large", "a value is beyond the request limit",
		"Key and value together exceed 1.5 MiB, etcd's default `--max-request-bytes`: the object can be restored and read, but not updated.",
		"Make the object smaller, or raise the limit on every member.")
	codeNearLimit = finding.NewCode(finding.Info, "value-near-limit", "a value is near the request limit",
		"Key and value together exceed nine tenths of 1.5 MiB, etcd's default `--max-request-bytes`.",
		"Make the object smaller while it can be written.")
	codeLeaseGone = finding.NewCode(finding.Warning, "lease-gone", "keys name a lease that is gone",
		"Keys, mostly Events, name a lease that the file does not have. etcd only logs that; the keys never expire.",
		"Delete them by hand.")
	codeNamespaceGone = finding.NewCode(finding.Warning, "namespace-gone", "the namespace of objects is gone",
		"They can be read, but nothing deletes them or can be created beside them. API servers make `default` and three `kube-*` namespaces themselves.",
		"Create the namespace again; then delete it, or the objects.")

	// About encryption at rest.
	codeEncrypted = finding.NewCode(finding.Error, "encrypted", "a value cannot be decrypted",
		"No key of `--encryption-config` decrypts the value. The message names the provider and key that encrypted it, and why it fails.",
		"Find the EncryptionConfiguration with the key. Without it the value is lost, and its lists fail: delete it.")
	codeEncryptionKeys = finding.NewCode(finding.Info, "encryption-keys", "values are encrypted at rest",
		"No `--encryption-config` was given, so these values were not checked.",
		"Give the restored API servers the configuration with this key; etcdshift too: `--encryption-config`.")
	codeMixedEncryption = finding.NewCode(finding.Warning, "mixed-encryption", "objects of a resource are encrypted differently",
		"By several providers or keys, or some not at all: an unfinished rotation, or encryption that was turned on without rewriting old values.",
		"Rewrite them: `kubectl replace`. Where no kcp stores them: `etcdshift migrate storage-versions --rewrap`.")

	// About custom resources.
	codeCRDUnreadable = finding.NewCode(finding.Error, "crd-unreadable", "a CustomResourceDefinition cannot be read",
		"None of its objects is served.",
		"Put back an older value, or delete it: `etcdctl del KEY`.")
	codeVersionUnlisted = finding.NewCode(finding.Error, "version-not-listed", "objects are stored at a version that is gone",
		"Their definition does not list the version: lists fail (`request to convert CR from an invalid group/version`, "+
			"`storage is (re)initializing`).",
		"Run "+migrateVersions+" with `--map GROUP/OLD=NEW`, as the message says, if both versions have the same fields. If not, add the version to the "+
			"definition again, not served, and run it with a converter (docs/storage-versions.md).")
	codeListInvalid = finding.NewCode(finding.Error, "stored-versions-invalid", "storedVersions has a version that is gone",
		"status.storedVersions has a version that spec.versions lacks: updates of the spec are refused (`status.storedVersions[0]: Invalid value: "+
			"\"v1alpha1\": must appear in spec.versions`).",
		"Run "+migrateVersions+"; or, if no finding `version-not-listed` names the version, "+trimVersions)
	codeListLacks = finding.NewCode(finding.Warning, "stored-versions-lack", "storedVersions lacks a version of objects",
		"Objects are stored at a version that status.storedVersions lacks: the API would let it be removed, and these objects would be lost.",
		"Run "+migrateVersions+" before any version is removed.")
	codeListNeeded = finding.NewCode(finding.Info, "stored-versions-needed", "objects are stored at an older version",
		"They can be read, and status.storedVersions lists the version. An update of the definition without that version is refused "+
			"(`status.storedVersions[0]: Invalid value: \"v1alpha1\": must appear in spec.versions`, or `missing from spec.versions; v1alpha1 was "+
			"previously a storage version`); OLM warns of a `risk of data loss` or `potential for data loss`.",
		"Before that update run "+migrateVersions+", or repair the live cluster: docs/storage-versions.md, section 2.")
	codeListExtra = finding.NewCode(finding.Info, "stored-versions-extra", "storedVersions has a version without objects",
		"An update of the definition without that version is refused (`must appear in spec.versions`), without need.",
		"Run "+migrateVersions+", or "+trimVersions)
	codeManagedVersion = finding.NewCode(finding.Warning, "managed-fields-version", "managedFields name a version that is gone",
		"The objects can be read and updated, but every server-side apply of them fails (`request to convert CR to an invalid group/version`).",
		"Run "+migrateVersions+", which keeps the owners of fields.")
	CodeUpdateRefused = finding.NewCode(finding.Warning, "update-refused", "every update of an object is refused",
		"A custom resource breaks rules of its schema that no server ignores: items of a list of type map lack keys or share them, or metadata, fields of "+
			"the scale subresource or rules about the whole object are broken. Not even a label can change, nor a finalizer be removed. Servers before 1.30 "+
			"refuse more. Objects that only a conversion webhook can convert are not checked.",
		"D"+finding.RemedyUpdateRefused[1:])
	CodeApplyRefused = finding.NewCode(finding.Warning, "apply-refused", "every server-side apply of an object is refused",
		"By any manager: the fields do not have the types of the schema (`failed to create typed live object`), or entries of managedFields cannot be read, "+
			"or name a version whose schema does not allow the fields (`field not declared in schema`). In `failed to create typed patch object` "+
			"it is the manifest that names such a field. Servers up to 1.36 drop all managedFields of such an object with the next update.",
		"Correct the fields of the message with `kubectl replace`; for managedFields run "+migrateVersions+".")
	codeHiddenField = finding.NewCode(finding.Warning, "hidden-field", "objects have fields that no schema knows",
		"etcd has the fields, and no client sees them: an API server drops them when it reads the object, and for good with its next write. Often a field "+
			"was renamed or removed without a conversion, or the definition is older than the objects.",
		"If the values are wanted, install the definition that has the fields before the next write; `etcdshift get -o yaml` shows them.")
	codeOrphans = finding.NewCode(finding.Warning, "orphans", "custom resources have no definition",
		"The definition's finalizer was removed, or it was deleted in etcd. No server serves the objects until a definition of that name comes back.",
		"Install the CustomResourceDefinition again, or `etcdctl del` the keys.")
	codeCRDTerminating = finding.NewCode(finding.Warning, "crd-terminating", "a CustomResourceDefinition is being deleted",
		"Once its finalizers allow, all objects of the kind are deleted with it.",
		"See what holds its objects: finalizers without controller, a silent conversion webhook.")
	codeConversionGone = finding.NewCode(finding.Error, "conversion-service-gone", "the Service of a conversion webhook is gone",
		"Reads at any other version than the one an object is stored at fail (`conversion webhook for ... failed`, with `service \"...\" not found`).",
		"Install the Service, or run "+migrateVersions+" with `--conversion-exec GROUP=COMMAND`; remove spec.conversion once all objects are at the storage "+
			"version.")
	codeConversionNeeded = finding.NewCode(finding.Warning, "conversion-needed", "objects need a conversion webhook in the cluster",
		"Not at the storage version: until the conversion webhook answers, their lists fail (`conversion webhook for ... failed`, such as `connection "+
			"refused`, `no endpoints available for service` or `x509: certificate signed by unknown authority`), and garbage collection and namespace "+
			"deletion with them.",
		"Run "+migrateVersions+" with `--conversion-exec GROUP=COMMAND` or `--conversion-webhook GROUP=URL` before the restore, or start the webhook first.")
	codeConversion = finding.NewCode(finding.Info, "conversion-webhook", "a conversion webhook runs in the cluster",
		"It converts this kind for clients that ask for another version than the storage version. Garbage collection and the deletion of namespaces wait "+
			"for it.",
		"Start it early.")

	// About owners and namespaces.
	codeOwnerGone = finding.NewCode(finding.Warning, "owner-gone", "all owners are gone",
		"The kind of each owner is served, but no object in the same namespace, or in none, has the UID. The garbage collector deletes the object soon "+
			"after the restore. Events and objects that are being deleted are not checked.",
		"Nothing, if it may go; else remove `metadata.ownerReferences`.")
	codeOwnerUnresolvable = finding.NewCode(finding.Warning, "owner-unresolvable", "an owner's version is not served",
		"No APIService in the file has the owner's apiVersion. The garbage collector cannot check the owner; it keeps the object and tries for ever.",
		"For versions that a CustomResourceDefinition dropped run "+migrateVersions+"; correct others by hand.")
	codeOwnerNamespaced = finding.NewCode(finding.Warning, "owner-namespaced", "a cluster-scoped object has an owner in a namespace",
		"The garbage collector ignores such an owner. An owner must be cluster-scoped, or in the namespace of the object.",
		"Remove the reference.")
	codeOwnerUnchecked = finding.NewCode(finding.Info, "owner-not-judged", "owners that the file does not show",
		"Their kind is served by an aggregated API server or unknown here, their objects are unreadable, or the file holds no namespaces.",
		"Nothing to do.")
	codeNamespaceTerminating = finding.NewCode(finding.Warning, "namespace-terminating", "a namespace is being deleted",
		"The message names finalizers, content, and APIServices that do not answer: while one does not, no namespace deletion completes.",
		"Restore or remove what holds it: finalizers without controller, content, dead APIServices.")
	codeDeletingVolume = finding.NewCode(finding.Warning, "deleting-volume", "a claim or volume is being deleted",
		"The restored cluster goes on with the deletion. With the reclaim policy Delete the data goes when the last Pod that uses the claim does: a "+
			"restore without that Pod, or a Pod that moves, is enough.",
		"To keep the data, set `spec.persistentVolumeReclaimPolicy` to Retain before the restore: `etcdshift patch`.")
	codeDeleting = finding.NewCode(finding.Info, "deleting", "an object is being deleted",
		"It has a deletionTimestamp: the restored cluster goes on with the deletion, as the message says.",
		"Nothing, if it may go. `etcdshift get SNAPSHOT TYPE/NAME --export` prints it without the deletion, to make it again.")

	// About webhooks and aggregated API servers.
	codeWebhookServiceGone = finding.NewCode(finding.Error, "webhook-service-gone", "the Service of a webhook is gone",
		"The webhook has `failurePolicy: Fail`: everything it matches is refused (`failed calling webhook`) until the Service exists.",
		"Delete the webhook configuration, or set `failurePolicy: Ignore`.")
	codeWebhookDeadlock = finding.NewCode(finding.Warning, "webhook-deadlock", "a webhook guards what its own Pods need",
		"It has `failurePolicy: Fail` and runs in the cluster: if all its Pods go at once, as after a restore to new machines, they do not come back "+
			"(`failed calling webhook`, `no endpoints available for service`). "+
			"Selectors and `matchConditions` are evaluated with the objects in the file and the users that make these requests; a condition that asks the "+
			"authorizer gets no permission.",
		"Before the restore exclude its namespace by `namespaceSelector`, or set `failurePolicy: Ignore`.")
	codeWebhookCore = finding.NewCode(finding.Warning, "webhook-blocks-core", "a webhook guards what nodes need",
		"With `failurePolicy: Fail` it matches what nodes, controllers or API servers write when they start, such as Nodes, heartbeats, leader election, "+
			"tokens, endpoints or Pods of kube-system: without it the cluster does not come up, or the API server ends "+
			"(`failed calling webhook`, `no endpoints available for service`).",
		"Exclude nodes, Leases and kube-system, or set `failurePolicy: Ignore`.")
	codeWebhookEndpoints = finding.NewCode(finding.Warning, "webhook-no-endpoints", "a webhook has no endpoints",
		"The Service had no ready endpoint when the snapshot was taken, and `failurePolicy` is Fail: everything the webhook matches was refused "+
			"(`failed calling webhook`, `no endpoints available for service`).",
		"Start its Pods, or set `failurePolicy: Ignore`.")
	codeAPIServiceGone = finding.NewCode(finding.Error, "apiservice-service-gone", "the Service of an APIService is gone",
		"Its group cannot be served, discovery is incomplete, and no namespace deletion completes.",
		"Bring the Service back, or delete the APIService, if the message does not say to leave it.")
	codeAPIServiceEndpoints = finding.NewCode(finding.Warning, "apiservice-no-endpoints", "the Service of an APIService has no endpoints",
		"It had no ready endpoint when the snapshot was taken. Namespaces cannot be deleted while the APIService is unavailable.",
		"Start its Pods, or delete the APIService.")
	codeAPIServiceUnavailable = finding.NewCode(finding.Warning, "apiservice-unavailable", "an APIService was not available",
		"Its condition Available was False, though its Service has endpoints. The message gives the reason.",
		"Delete the APIService if its server is gone.")
	codeCalicoEmpty = finding.NewCode(finding.Warning, "calico-v3-empty", "Calico's new group is served without Calico's data",
		"API servers serve `projectcalico.org/v3` from its definitions. At most tiers, a ClusterInformation or leftovers are there; Calico's data is in "+
			"`crd.projectcalico.org`: clients see none of it, and the garbage collector deletes what Calico's objects own. "+
			"An abort of Calico's live migration left clusters like this (calico#13870), or the definitions were installed where no API server of Calico runs.",
		"Move the data: `etcdshift migrate calico-v3`. Or bring back Calico's API server and its APIService `v3.projectcalico.org`.")
	codeCalicoMigrating = finding.NewCode(finding.Warning, "calico-migrating", "Calico's live migration is under way",
		"Its DatastoreMigration has locked the datastore, in which no Pod gets an address and no policy changes. The restored cluster goes on with the "+
			"migration as soon as kube-controllers runs.",
		"Let the restored cluster complete it. Or take it back in the file before the restore: `etcdshift migrate calico-v3 --abort`.")
	codeCalicoLocked = finding.NewCode(finding.Warning, "calico-locked", "Calico's datastore is locked",
		"No Pod gets an address, and no policy changes, until somebody opens the lock. An aborted live migration may leave it, "+
			"and `calicoctl datastore migrate lock` sets it.",
		"Before the restore: `etcdshift patch IN OUT clusterinformations.GROUP/default --type merge -p '{\"spec\":{\"datastoreReady\":true}}'`, "+
			"with the group of the key. `etcdshift migrate calico-v3` opens it too. After the restore: `calicoctl datastore migrate unlock`.")

	// About the control plane.
	codeMasterLease = finding.NewCode(finding.Warning, "masterlease-stale", "an API server's address never expires",
		"It has no lease, or one that is gone: it stays an endpoint of the Service `kubernetes`, and clients fail on it after a restore elsewhere.",
		"`etcdctl del KEY`.")
	codeMasterUnlisted = finding.NewCode(finding.Info, "masterlease-unlisted", "an API server's address is no endpoint",
		"It was no endpoint of the Service `kubernetes`. It has a lease and expires seconds after the restore.",
		"Nothing to do.")
	codeMemberRemoval = finding.NewCode(finding.Warning, "member-removal", "a Node has its member of etcd removed",
		"k3s and RKE2 remove the etcd member of a Node with the annotation `etcd.k3s.cattle.io/remove: \"true\"` (or `etcd.rke2...`) as soon as they run, "+
			"and the restored cluster has the annotation too.",
		"If the machine comes back, `etcdshift migrate prepare-restore --keep-node NAME` removes the annotation; else let that command delete the Node.")
	codeAddressTwice = finding.NewCode(finding.Warning, "address-twice", "several Services have one address",
		"A cluster IP or a node port belongs to one Service. Of several, kube-proxy serves one, and no API server repairs it "+
			"(it reports `ClusterIPAlreadyAllocated` or `NodePortAlreadyAllocated`).",
		"Delete one of the Services and create it anew: it gets a free address.")
	codeAddressLeft = finding.NewCode(finding.Info, "address-left", "a cluster IP of a Service that is gone",
		"The IPAddress holds the cluster IP, so that no other Service gets it. An API server deletes it within minutes after its start.",
		"Nothing to do.")
	codeNodeSilent = finding.NewCode(finding.Info, "node-silent", "a node was silent",
		"Its heartbeat was more than five minutes behind the newest of all nodes. After the restore its Pods are evicted.",
		"Delete the Node if the machine is gone.")
	codeTokenWithoutUse = finding.NewCode(finding.Warning, "token-without-serviceaccount", "a token's ServiceAccount is gone",
		"A Secret holds the token of a ServiceAccount that does not exist, or was created again. The token controller deletes it after the restore.",
		"Nothing, if it may go.")

	// About logical clusters of kcp: as "cluster list" finds them in this one file.
	codeShardPartial = finding.NewCode(finding.Info, "shard-partial", "a part of a shard of kcp",
		"`system:shard` has no LogicalCluster: an etcd for single types (`--etcd-servers-overrides`), or a part of a shard. Orphans are not reported.",
		"Give the file of the shard itself.")
	codeShardTwice = finding.NewCode(finding.Warning, "shard-twice", "two storages are one shard of kcp",
		"Several storages in the file have the name of one shard.",
		"Find the one in use, and leave the other out.")
	codeClusterOrphans = finding.NewCode(finding.Warning, "cluster-orphans", "keys of logical clusters that do not live here",
		"Their LogicalCluster is not on this shard, and no workspace leads to them: left by a live migration of kcp, or by writes of an outdated "+
			"front-proxy. Or they lie under the path of a logical cluster in place of its name: no API shows them, but lists "+
			"across clusters do, and they outlive it. `etcdshift cluster list` with all shards shows where they live.",
		"Put back what is missing where the clusters live: `etcdshift cluster import --orphans-from`. Then `etcdshift cluster purge --orphans`.")
	codeStaleCopies = finding.NewCode(finding.Warning, "stale-copies", "a cache has copies of what lives elsewhere",
		"The cache has copies of a logical cluster from a shard where it does not live. Other shards follow them, RBAC and APIExports among them.",
		"`etcdshift cluster purge NAME CACHE OUT --from-shard SHARD --to-shard LIVES-ON` moves them to the shard that `etcdshift cluster list` names; "+
			"without `--to-shard` it deletes them.")
	codeClusterMismatch = finding.NewCode(finding.Warning, "cluster-mismatch", "an object names another logical cluster than its key",
		"So does its annotation `kcp.io/cluster`, or `kcp.io/shard` in a cache. kcp goes by the key, and writes the annotation: somebody copied the value.",
		"Find out who wrote it, and whether it belongs there.")
)

const (
	migrateVersions = "`etcdshift migrate storage-versions`"
	trimVersions    = "`kubectl patch crd NAME --subresource=status --type=merge -p '{\"status\":{\"storedVersions\":[\"v1\"]}}'`, where v1 is the " +
		"storage version."
)
