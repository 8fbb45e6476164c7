package doctor

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
)

// Codes are all codes of findings, by what they are about.
func Codes() []*finding.Code {
	return []*finding.Code{
		CodeDamaged, codeNoDigest, codeBumpRevision, codeOverQuota, codeNearQuota, codeAlarmNoSpace, codeAlarmCorrupt,
		codeEtcdTooOld, codeEtcdVersion, codeForeignKeys, codeStrayKeys, codeNotJudged, codeUndecodable, codeBadMetadata,
		codeUnknownKind, codeKeyMismatch, codeDuplicateUID, codeTooLarge, codeNearLimit, codeLeaseGone, codeNamespaceGone,
		codeEncrypted, codeEncryptionKeys, codeMixedEncryption, codeCRDUnreadable, codeVersionUnlisted, codeListInvalid,
		codeListLacks, codeListExtra, codeManagedVersion, codeUpdateRefused, codeApplyRefused, codeOrphans,
		codeCRDTerminating, codeConversionGone, codeConversionNeeded, codeConversion, codeOwnerGone, codeOwnerUnresolvable,
		codeOwnerNamespaced, codeOwnerNotJudged, codeNamespaceTerminating, codeWebhookServiceGone, codeWebhookDeadlock,
		codeWebhookCore, codeWebhookEndpoints, codeAPIServiceGone, codeAPIServiceEndpoints, codeAPIServiceUnavailable,
		codeMasterLease, codeMasterUnlisted, codeNodeSilent, codeTokenWithoutUse, codeShardPartial, codeShardTwice,
		clusters.CodeClusterTwice, codeClusterOrphans, codeStaleCopies, codeClusterMismatch, clusters.CodeClusterTerminating,
		clusters.CodeClusterMigrating, clusters.CodeClusterMisnamed, clusters.CodeWorkspaceGone, clusters.CodeWorkspaceAstray, clusters.CodeBoundDefinitionGone,
		clusters.CodeIdentityUnbound,
	}
}

// About the file.
var (
	CodeDamaged = &finding.Code{Name: "damaged", Level: finding.Error, Title: "the file is damaged",
		Meaning: "`etcdshift verify` finds damage: the digest is wrong, or the free list, a page, a record or an entry of another bucket " +
			"is not what etcd writes. Records of such a file are not checked. A file that is no snapshot at all ends in exit status 5 " +
			"instead.",
		Remedy: "Restore another copy of the file, or take a new snapshot. Where the free list alone is wrong, no record is harmed: the " +
			"output of `etcdshift migrate` has no list, and restores.",
	}
	codeNoDigest = &finding.Code{Name: "no-digest", Level: finding.Warning, Title: "the file has no digest",
		Meaning: "The file is a member's `member/snap/db`: nothing shows whether it was copied whole, and writes that were only in the " +
			"WAL are missing.",
		Remedy: "Take a snapshot with `etcdctl snapshot save`. This file restores only with `etcdutl snapshot restore --skip-hash-check`.",
	}
	codeBumpRevision = &finding.Code{Name: "bump-revision", Level: finding.Info, Title: "watches need higher revisions",
		Meaning: "Reported of every file. A plain restore takes revisions back; controllers and kubelets take what they have cached for " +
			"newer than the restored objects, and miss changes.",
		Remedy: "Restore every member with `--bump-revision 1000000000 --mark-compacted` (etcdutl 3.4.27, 3.5.10 or newer).",
	}
	codeOverQuota = &finding.Code{Name: "over-quota", Level: finding.Error, Title: "the database is over the quota",
		Meaning: "The database is as large as the quota of `--quota`, or larger. A restored member has a file of that size, free pages " +
			"included; the first write raises the alarm NOSPACE (`mvcc: database space exceeded`).",
		Remedy: "Raise `--quota-backend-bytes` for the restore, then compact and defragment. `etcdshift sizes` estimates the size after " +
			"that.",
	}
	codeNearQuota = &finding.Code{Name: "near-quota", Level: finding.Warning, Title: "the database is near a quota",
		Meaning: "The database has 80% of the quota of `--quota`. Without `--quota`: 80% of etcd's default of 2 GiB, or more than the 8 " +
			"GiB it suggests at most. The quota of the cluster is not in the file.",
		Remedy: "Compact and defragment; name the quota with `--quota`. `etcdshift sizes` shows what fills the database.",
	}
	codeAlarmNoSpace = &finding.Code{Name: "alarm-nospace", Level: finding.Error, Title: "the alarm NOSPACE is raised",
		Meaning: "A member had raised the alarm. It is part of the database: the restored etcd refuses all writes.",
		Remedy:  "After the restore compact, defragment, then `etcdctl alarm disarm`.",
	}
	codeAlarmCorrupt = &finding.Code{Name: "alarm-corrupt", Level: finding.Error, Title: "the alarm CORRUPT is raised",
		Meaning: "Members were found to hold different data. The alarm survives the restore: requests are refused.",
		Remedy:  "Find out which member is right and restore its snapshot; then `etcdctl alarm disarm`.",
	}
	codeEtcdTooOld = &finding.Code{Name: "etcd-too-old", Level: finding.Error, Title: "this etcd does not start on the file",
		Meaning: "The release of `--etcd` is older than the cluster or storage version in the file. `etcdutl snapshot restore` does not " +
			"notice.",
		Remedy: "Restore with the etcd release that the file names, or a newer one.",
	}
	codeEtcdVersion = &finding.Code{Name: "etcd-version", Level: finding.Info, Title: "the file needs a release of etcd",
		Meaning: "The oldest release that starts on the file, where `--etcd` does not name the one to restore with.",
		Remedy:  "Restore with that release of etcd, or a newer one. Name it with `--etcd` to have it checked.",
	}
	codeForeignKeys = &finding.Code{Name: "foreign-keys", Level: finding.Info, Title: "keys of no API server",
		Meaning: "Another program shares this etcd, or the storage prefix is an unusual one.",
		Remedy:  "Nothing. Where they are an API server's, name its prefix with `--prefix`, and the others that `status` lists.",
	}
	codeStrayKeys = &finding.Code{Name: "stray-keys", Level: finding.Warning, Title: "keys below a storage prefix that are no object's",
		Meaning: "Another program or a person wrote them, or an API server that this build does not know. They were not checked.",
		Remedy:  "Find out what wrote them. An API server lists keys below the folder of a resource, and never sees the rest.",
	}
	codeNotJudged = &finding.Code{Name: "layout-not-judged", Level: finding.Info, Title: "a layout that is not checked",
		Meaning: "The keys below this storage prefix are laid out as kcp or openshift-apiserver does it. Values were decoded, and " +
			"logical clusters of kcp checked; relations between objects were not: owners, namespaces, versions, webhooks.",
		Remedy: "Nothing.",
	}
)

// About records.
var (
	codeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Title: "an API server cannot decode a value",
		Meaning: "The value is no object, or of another kind than its key says, or a field has the wrong type. One such value makes " +
			"every list of its kind fail, the controllers that watch it, and the deletion of namespaces.",
		Remedy: "Look at it with `etcdctl get KEY`; delete the key, or put back its value from an older snapshot.",
	}
	codeBadMetadata = &finding.Code{Name: "bad-metadata", Level: finding.Warning, Title: "a field of metadata is of the wrong type",
		Meaning: "API servers drop such a field of a custom resource without a word.",
		Remedy:  "Write the object anew.",
	}
	codeUnknownKind = &finding.Code{Name: "unknown-kind", Level: finding.Info, Title: "a kind that this build does not know",
		Meaning: "Built-in objects of a kind that was removed from Kubernetes, or of a newer release. Their metadata was checked, their " +
			"content was not.",
		Remedy: "Make sure that the API server to be restored still has that kind; otherwise it cannot list these objects.",
	}
	codeKeyMismatch = &finding.Code{Name: "key-mismatch", Level: finding.Error, Title: "a key is not that of the object in it",
		Meaning: "The name or namespace in the object differs from its key, often by a flipped bit: the API shows the object under one " +
			"and finds it under the other. Or a custom resource is of another kind than its CustomResourceDefinition's.",
		Remedy: "Delete the key with `etcdctl del KEY`; the API cannot.",
	}
	codeDuplicateUID = &finding.Code{Name: "duplicate-uid", Level: finding.Warning, Title: "two objects have one UID",
		Meaning: "As after an object was copied inside etcd. The garbage collector knows objects by UID, and takes the two for one.",
		Remedy:  "Delete one of them and create it through the API.",
	}
	codeTooLarge = &finding.Code{Name: "value-too-large", Level: finding.Warning, Title: "a value is beyond the request limit",
		Meaning: "Key and value together are larger than 1.5 MiB, etcd's default `--max-request-bytes`: the object can be restored and " +
			"read, but no update of it is accepted.",
		Remedy: "Make the object smaller, or raise the limit on every member.",
	}
	codeNearLimit = &finding.Code{Name: "value-near-limit", Level: finding.Info, Title: "a value is near the request limit",
		Meaning: "Key and value together have more than nine tenths of 1.5 MiB, etcd's default `--max-request-bytes`.",
		Remedy:  "Make the object smaller while it can be written.",
	}
	codeLeaseGone = &finding.Code{Name: "lease-gone", Level: finding.Warning, Title: "keys name a lease that is gone",
		Meaning: "Keys, mostly Events, name a lease that the file does not have. etcd only logs that; the keys never expire.",
		Remedy:  "Delete them by hand.",
	}
	codeNamespaceGone = &finding.Code{Name: "namespace-gone", Level: finding.Warning, Title: "objects lie in a namespace that is gone",
		Meaning: "They can be read, but nothing can be created beside them, and nothing deletes them. API servers make `default`, " +
			"`kube-system`, `kube-public` and `kube-node-lease` themselves.",
		Remedy: "Create the namespace again; then delete it, or the objects.",
	}
)

// About encryption at rest.
var (
	codeEncrypted = &finding.Code{Name: "encrypted", Level: finding.Error, Title: "a value cannot be decrypted",
		Meaning: "No key of `--encryption-config` decrypts the value. The message names the provider and key that encrypted it, and why " +
			"it fails.",
		Remedy: "Find the EncryptionConfiguration that has the key. Without it the value is lost, and lists of its kind fail: delete " +
			"the key.",
	}
	codeEncryptionKeys = &finding.Code{Name: "encryption-keys", Level: finding.Info, Title: "values are encrypted at rest",
		Meaning: "No `--encryption-config` was given, so these values were not checked.",
		Remedy:  "Give the restored API servers an EncryptionConfiguration that has this key, and etcdshift too: `--encryption-config`.",
	}
	codeMixedEncryption = &finding.Code{Name: "mixed-encryption", Level: finding.Warning,
		Title: "objects of one resource are encrypted in several ways",
		Meaning: "By several providers or keys, or some not at all: a rotation that was not finished, or encryption that was turned on " +
			"without rewriting what was there.",
		Remedy: "Write them anew (`kubectl replace`). Where no kcp stores them, `etcdshift migrate storage-versions --rewrap` does it.",
	}
)

// About custom resources.
var (
	codeCRDUnreadable = &finding.Code{Name: "crd-unreadable", Level: finding.Error, Title: "a CustomResourceDefinition cannot be read",
		Meaning: "None of its objects is served.",
		Remedy:  "Put back its value from an older snapshot, or delete it with `etcdctl del KEY`.",
	}
	codeVersionUnlisted = &finding.Code{Name: "version-not-listed", Level: finding.Error,
		Title: "objects are stored at a version that is gone",
		Meaning: "Their CustomResourceDefinition does not list the version any more, or they are in another group. No server reads them, " +
			"and lists of the kind fail (`request to convert CR from an invalid group/version`).",
		Remedy: "Add the version to the CustomResourceDefinition again (not served), then `etcdshift migrate storage-versions` " +
			"(docs/storage-versions.md).",
	}
	codeListInvalid = &finding.Code{Name: "stored-versions-invalid", Level: finding.Error,
		Title: "storedVersions has a version that is gone",
		Meaning: "status.storedVersions has a version that spec.versions does not: every update of the definition's spec is refused " +
			"(`must appear in spec.versions`).",
		Remedy: "Use `etcdshift migrate storage-versions`, or patch status.storedVersions.",
	}
	codeListLacks = &finding.Code{Name: "stored-versions-lack", Level: finding.Warning,
		Title: "storedVersions lacks a version that is there",
		Meaning: "Objects are stored at a version that status.storedVersions does not have: the API would let it be removed, and these " +
			"objects would be lost.",
		Remedy: "Use `etcdshift migrate storage-versions` before any version is removed.",
	}
	codeListExtra = &finding.Code{Name: "stored-versions-extra", Level: finding.Info,
		Title:   "storedVersions has a version at which nothing is stored",
		Meaning: "It keeps the version from being removed, without need.",
		Remedy:  "Use `etcdshift migrate storage-versions` to be able to remove the version.",
	}
	codeManagedVersion = &finding.Code{Name: "managed-fields-version", Level: finding.Warning,
		Title: "managedFields name a version that is gone",
		Meaning: "The objects can be read and updated, but every server-side apply of them fails (`request to convert CR to an invalid " +
			"group/version`).",
		Remedy: "Use `etcdshift migrate storage-versions`, which keeps who owns which field.",
	}
	codeUpdateRefused = &finding.Code{Name: "update-refused", Level: finding.Warning, Title: "every update of an object is refused",
		Meaning: "A custom resource breaks rules of its schema that no server ignores: items of a list of type map lack keys or share " +
			"them, or metadata, fields of the scale subresource or rules about the whole object are broken. Not even a label can change, " +
			"nor a finalizer be removed. Servers before 1.30 refuse more. Objects that only a conversion webhook can convert are not " +
			"checked.",
		Remedy: "Delete the object and create it as the schema demands; where it has finalizers, relax the schema first.",
	}
	codeApplyRefused = &finding.Code{Name: "apply-refused", Level: finding.Warning,
		Title: "every server-side apply of an object is refused",
		Meaning: "By any manager: the fields are not of the types of the schema (`failed to create typed live object`), or entries of " +
			"managedFields cannot be read, or name a version whose schema does not allow the fields. Servers up to 1.36 drop all " +
			"managedFields of such an object with the next update.",
		Remedy: "Correct the fields that the message names with an update (`kubectl replace`). For managedFields use `etcdshift migrate " +
			"storage-versions`.",
	}
	codeOrphans = &finding.Code{Name: "orphans", Level: finding.Warning, Title: "custom resources have no definition",
		Meaning: "The definition's finalizer was removed by hand, or it was deleted in etcd. No server serves the objects; they come " +
			"back when a definition of that name does.",
		Remedy: "Install the CustomResourceDefinition again, or delete the keys with `etcdctl del`.",
	}
	codeCRDTerminating = &finding.Code{Name: "crd-terminating", Level: finding.Warning,
		Title:   "a CustomResourceDefinition is being deleted",
		Meaning: "Once its finalizers allow, all objects of the kind are deleted with it.",
		Remedy:  "See why its objects cannot be deleted: finalizers whose controllers are gone, a conversion webhook that does not answer.",
	}
	codeConversionGone = &finding.Code{Name: "conversion-service-gone", Level: finding.Error,
		Title:   "the Service of a conversion webhook is gone",
		Meaning: "Reads at any other version than the one an object is stored at fail (`conversion webhook for ... failed`).",
		Remedy:  "Install the webhook's Service, or remove spec.conversion where all objects are at the storage version.",
	}
	codeConversionNeeded = &finding.Code{Name: "conversion-needed", Level: finding.Warning,
		Title: "objects are only read through a webhook in the cluster",
		Meaning: "They are not stored at the storage version. Until the conversion webhook answers, lists of the kind fail, with them " +
			"garbage collection and the deletion of namespaces.",
		Remedy: "Use `etcdshift migrate storage-versions` with a converter before the restore, or start the webhook first.",
	}
	codeConversion = &finding.Code{Name: "conversion-webhook", Level: finding.Info, Title: "a conversion webhook runs in the cluster",
		Meaning: "It converts this kind for clients that ask for another version than the storage version. Garbage collection and the " +
			"deletion of namespaces wait for it.",
		Remedy: "Start it early.",
	}
)

// About owners and namespaces.
var (
	codeOwnerGone = &finding.Code{Name: "owner-gone", Level: finding.Warning, Title: "all owners are gone",
		Meaning: "The kind of each owner is served, but no object in the same namespace, or in none, has the UID. The garbage collector " +
			"deletes the object soon after the restore. Events and objects that are being deleted are not checked.",
		Remedy: "Nothing, where it may go; else remove `metadata.ownerReferences`.",
	}
	codeOwnerUnresolvable = &finding.Code{Name: "owner-unresolvable", Level: finding.Warning, Title: "an owner's version is not served",
		Meaning: "No APIService in the file has the apiVersion of the owner. The garbage collector cannot tell whether the owner is " +
			"there; it keeps the object and tries for ever.",
		Remedy: "`etcdshift migrate storage-versions` corrects references to versions that a CustomResourceDefinition dropped; correct " +
			"others by hand.",
	}
	codeOwnerNamespaced = &finding.Code{Name: "owner-namespaced", Level: finding.Warning,
		Title:   "a cluster-scoped object has an owner in a namespace",
		Meaning: "The garbage collector ignores such an owner.",
		Remedy:  "Remove the reference: an owner is cluster-scoped or in the namespace of the object.",
	}
	codeOwnerNotJudged = &finding.Code{Name: "owner-not-judged", Level: finding.Info, Title: "owners that the file does not show",
		Meaning: "Their kind is served by an aggregated API server or unknown to this build, their objects could not be read, or the " +
			"file holds no namespaces (an etcd for some resources only).",
		Remedy: "Nothing.",
	}
	codeNamespaceTerminating = &finding.Code{Name: "namespace-terminating", Level: finding.Warning, Title: "a namespace is being deleted",
		Meaning: "The message names its finalizers, its content, and the APIServices that do not answer: while one does not, the " +
			"deletion of no namespace completes.",
		Remedy: "Restore or remove what holds it: finalizers whose controller is gone, content, dead APIServices.",
	}
)

// About webhooks and aggregated API servers.
var (
	codeWebhookServiceGone = &finding.Code{Name: "webhook-service-gone", Level: finding.Error, Title: "the Service of a webhook is gone",
		Meaning: "The webhook has `failurePolicy: Fail`: everything it matches is refused (`failed calling webhook`).",
		Remedy:  "Delete the webhook configuration, or set `failurePolicy: Ignore`, until the Service is there.",
	}
	codeWebhookDeadlock = &finding.Code{Name: "webhook-deadlock", Level: finding.Warning, Title: "a webhook guards what its own Pods need",
		Meaning: "It has `failurePolicy: Fail` and runs in the cluster: when all its Pods are gone at once, as after a restore to new " +
			"machines, they do not come back. Selectors are evaluated with the labels in the file; webhooks with `matchConditions` are " +
			"not checked.",
		Remedy: "Exclude its namespace by `namespaceSelector`, or set `failurePolicy: Ignore` before the restore.",
	}
	codeWebhookCore = &finding.Code{Name: "webhook-blocks-core", Level: finding.Warning, Title: "a webhook guards what nodes need",
		Meaning: "A webhook with `failurePolicy: Fail` matches the status of nodes, heartbeats, leader election, or Pods of kube-system: " +
			"until it answers, the cluster does not come up.",
		Remedy: "Exclude nodes, Leases and kube-system, or set `failurePolicy: Ignore`.",
	}
	codeWebhookEndpoints = &finding.Code{Name: "webhook-no-endpoints", Level: finding.Warning, Title: "a webhook has no endpoints",
		Meaning: "The Service had no ready endpoint when the snapshot was taken, and `failurePolicy` is Fail: everything the webhook " +
			"matches was refused.",
		Remedy: "Start its Pods, or set `failurePolicy: Ignore`.",
	}
	codeAPIServiceGone = &finding.Code{Name: "apiservice-service-gone", Level: finding.Error, Title: "the Service of an APIService is gone",
		Meaning: "Its group cannot be served, discovery is incomplete, and the deletion of no namespace completes.",
		Remedy:  "Delete the APIService, or bring the Service back.",
	}
	codeAPIServiceEndpoints = &finding.Code{Name: "apiservice-no-endpoints", Level: finding.Warning,
		Title:   "the Service of an APIService has no endpoints",
		Meaning: "It had no ready endpoint when the snapshot was taken. Namespaces cannot be deleted while the APIService is unavailable.",
		Remedy:  "Start its Pods, or delete the APIService.",
	}
	codeAPIServiceUnavailable = &finding.Code{Name: "apiservice-unavailable", Level: finding.Warning,
		Title:   "an APIService was not available",
		Meaning: "Its condition Available was False, though its Service has endpoints. The message gives the reason.",
		Remedy:  "See why; delete the APIService where its server is gone.",
	}
)

// About the control plane.
var (
	codeMasterLease = &finding.Code{Name: "masterlease-stale", Level: finding.Warning, Title: "an API server's address never expires",
		Meaning: "It has no lease, or one that is gone: it stays an endpoint of the Service `kubernetes`, and clients that get it fail. " +
			"Clusters that are restored on other machines suffer from it.",
		Remedy: "Delete the key with `etcdctl del KEY`.",
	}
	codeMasterUnlisted = &finding.Code{Name: "masterlease-unlisted", Level: finding.Info, Title: "an API server's address is no endpoint",
		Meaning: "It was no endpoint of the Service `kubernetes`. It has a lease and expires seconds after the restore.",
		Remedy:  "Nothing.",
	}
	codeNodeSilent = &finding.Code{Name: "node-silent", Level: finding.Info, Title: "a node was silent",
		Meaning: "Its heartbeat was more than five minutes behind the newest of all nodes. After the restore its Pods are evicted.",
		Remedy:  "Delete the Node where the machine is gone.",
	}
	codeTokenWithoutUse = &finding.Code{Name: "token-without-serviceaccount", Level: finding.Warning,
		Title: "a token's ServiceAccount is gone",
		Meaning: "A Secret holds the token of a ServiceAccount that is not there, or that was created again. The token controller " +
			"deletes it after the restore.",
		Remedy: "Nothing, where it may go.",
	}
)

// About logical clusters of kcp: as "cluster list" finds them in this one file.
var (
	codeShardPartial = &finding.Code{Name: "shard-partial", Level: finding.Info, Title: "a part of a shard of kcp",
		Meaning: "The LogicalCluster of `system:shard`, which each shard has, is missing: this is an etcd for single types " +
			"(`--etcd-servers-overrides`), or a part of a shard. Orphans are not reported.",
		Remedy: "Nothing. Give the file of the shard itself.",
	}
	codeShardTwice = &finding.Code{Name: "shard-twice", Level: finding.Warning, Title: "two storages are one shard of kcp",
		Meaning: "Several storages in the file have the name of one shard.",
		Remedy:  "Find out which one is used, and leave the other out.",
	}
	codeClusterOrphans = &finding.Code{Name: "cluster-orphans", Level: finding.Warning,
		Title: "keys of logical clusters that do not live here",
		Meaning: "Their LogicalCluster is not on this shard, and no workspace leads to them. kcp's live migration takes keys of other " +
			"tenants along; writes through a front-proxy that still knows the old shard leave some, too.",
		Remedy: "See `etcdshift cluster list` with all shards; put back what is missing there (`etcdshift cluster import " +
			"--orphans-from`), then `etcdshift cluster purge --orphans`.",
	}
	codeStaleCopies = &finding.Code{Name: "stale-copies", Level: finding.Warning, Title: "a cache has copies of what lives elsewhere",
		Meaning: "The cache has copies of a logical cluster from a shard on which it does not live. Other shards go by these copies, " +
			"RBAC and APIExports among them.",
		Remedy: "See `etcdshift cluster list` with all shards; then `etcdshift cluster purge NAME CACHE OUT --from-shard SHARD " +
			"--to-shard LIVES-ON` moves the copies. Without `--to-shard` it deletes them.",
	}
	codeClusterMismatch = &finding.Code{Name: "cluster-mismatch", Level: finding.Warning,
		Title: "an object names another logical cluster than its key",
		Meaning: "So does its annotation `kcp.io/cluster`, or `kcp.io/shard` in a cache. kcp goes by the key and writes the annotation " +
			"itself: somebody copied the value from another key.",
		Remedy: "Find out who wrote it, and whether the object belongs there.",
	}
)
