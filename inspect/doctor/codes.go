package doctor

// Code names a sort of finding. Codes are stable; docs/findings.md explains each.
type Code string

// The codes, by what they are about: the file, records, encryption, custom resources, owners, namespaces, webhooks, aggregated
// API servers, the control plane, logical clusters of kcp.
const (
	CodeDamaged       Code = "damaged"
	CodeNoDigest      Code = "no-digest"
	CodeBumpRevision  Code = "bump-revision"
	CodeOverQuota     Code = "over-quota"
	CodeNearQuota     Code = "near-quota"
	CodeAlarmNoSpace  Code = "alarm-nospace"
	CodeAlarmCorrupt  Code = "alarm-corrupt"
	CodeEtcdTooOld    Code = "etcd-too-old"
	CodeEtcdVersion   Code = "etcd-version"
	CodeForeignKeys   Code = "foreign-keys"
	CodeStrayKeys     Code = "stray-keys"
	CodeNotJudged     Code = "layout-not-judged"
	CodeUndecodable   Code = "undecodable"
	CodeBadMetadata   Code = "bad-metadata"
	CodeUnknownKind   Code = "unknown-kind"
	CodeKeyMismatch   Code = "key-mismatch"
	CodeDuplicateUID  Code = "duplicate-uid"
	CodeTooLarge      Code = "value-too-large"
	CodeNearLimit     Code = "value-near-limit"
	CodeLeaseGone     Code = "lease-gone"
	CodeNamespaceGone Code = "namespace-gone"

	CodeEncrypted       Code = "encrypted"
	CodeEncryptionKeys  Code = "encryption-keys"
	CodeMixedEncryption Code = "mixed-encryption"

	CodeCRDUnreadable    Code = "crd-unreadable"
	CodeVersionUnlisted  Code = "version-not-listed"
	CodeListInvalid      Code = "stored-versions-invalid"
	CodeListLacks        Code = "stored-versions-lack"
	CodeListExtra        Code = "stored-versions-extra"
	CodeManagedVersion   Code = "managed-fields-version"
	CodeUpdateRefused    Code = "update-refused"
	CodeApplyRefused     Code = "apply-refused"
	CodeOrphans          Code = "orphans"
	CodeCRDTerminating   Code = "crd-terminating"
	CodeConversionGone   Code = "conversion-service-gone"
	CodeConversionNeeded Code = "conversion-needed"
	CodeConversion       Code = "conversion-webhook"

	CodeOwnerGone         Code = "owner-gone"
	CodeOwnerUnresolvable Code = "owner-unresolvable"
	CodeOwnerNamespaced   Code = "owner-namespaced"
	CodeOwnerNotJudged    Code = "owner-not-judged"

	CodeNamespaceTerminating Code = "namespace-terminating"

	CodeWebhookServiceGone Code = "webhook-service-gone"
	CodeWebhookDeadlock    Code = "webhook-deadlock"
	CodeWebhookCore        Code = "webhook-blocks-core"
	CodeWebhookEndpoints   Code = "webhook-no-endpoints"

	CodeAPIServiceGone        Code = "apiservice-service-gone"
	CodeAPIServiceEndpoints   Code = "apiservice-no-endpoints"
	CodeAPIServiceUnavailable Code = "apiservice-unavailable"

	CodeMasterLease     Code = "masterlease-stale"
	CodeMasterUnlisted  Code = "masterlease-unlisted"
	CodeNodeSilent      Code = "node-silent"
	CodeTokenWithoutUse Code = "token-without-serviceaccount"

	CodeShardPartial        Code = "shard-partial"
	CodeShardTwice          Code = "shard-twice"
	CodeClusterTwice        Code = "cluster-twice"
	CodeClusterOrphans      Code = "cluster-orphans"
	CodeStaleCopies         Code = "stale-copies"
	CodeClusterMismatch     Code = "cluster-mismatch"
	CodeClusterTerminating  Code = "cluster-terminating"
	CodeClusterMigrating    Code = "cluster-migrating"
	CodeClusterMisnamed     Code = "cluster-misnamed"
	CodeWorkspaceGone       Code = "workspace-gone"
	CodeWorkspaceAstray     Code = "workspace-astray"
	CodeBoundDefinitionGone Code = "bound-definition-gone"
	CodeIdentityUnbound     Code = "identity-unbound"
)

// entry is what is fixed about a code.
type entry struct {
	code   Code
	level  Level
	title  string
	remedy string
}

// table lists every code, in the order of docs/findings.md.
func table() []entry {
	return []entry{
		{CodeDamaged, Error, "the file is damaged", "restore another copy of the file, or take a new snapshot"},
		{CodeNoDigest, Warning, "the file has no digest", "take a snapshot with \"etcdctl snapshot save\"; this one restores only with --skip-hash-check"},
		{CodeBumpRevision, Info, "watches need higher revisions", "restore every member with --bump-revision 1000000000 --mark-compacted (etcdutl 3.4.27, 3.5.10 or newer)"},
		{CodeOverQuota, Error, "the database is over the quota", "raise --quota-backend-bytes before the restore, or compact and defragment"},
		{CodeNearQuota, Warning, "the database is near a quota", "compact and defragment; etcdshift sizes tells what fills it"},
		{CodeAlarmNoSpace, Error, "the alarm NOSPACE is raised", "after the restore, compact and defragment, then \"etcdctl alarm disarm\""},
		{CodeAlarmCorrupt, Error, "the alarm CORRUPT is raised", "restore from a member that is not corrupt; then \"etcdctl alarm disarm\""},
		{CodeEtcdTooOld, Error, "this etcd does not start on the file", "restore with the etcd release that the file names, or a newer one"},
		{CodeEtcdVersion, Info, "the file needs a release of etcd", "restore with that release of etcd, or a newer one"},
		{CodeForeignKeys, Info, "keys of no API server", "nothing; they were not judged"},
		{CodeStrayKeys, Warning, "keys among an API server's that are no object's", "find out what wrote them; they were not judged, and an API server may list them or never see them"},
		{CodeNotJudged, Info, "a layout that is not judged", "nothing; of these keys the records themselves were judged, and logical clusters of kcp"},
		{CodeUndecodable, Error, "an API server cannot decode a value", "delete the key or restore the value of an older snapshot; API servers cannot list that kind until then"},
		{CodeBadMetadata, Warning, "a field of metadata is of the wrong type", "write the object anew: an API server drops the field without a word when it reads a custom resource"},
		{CodeUnknownKind, Info, "a kind that this build does not know", "nothing; their metadata was judged, their content was not"},
		{CodeKeyMismatch, Error, "a key is not that of the object in it", "delete the key with etcdctl; the API cannot"},
		{CodeDuplicateUID, Warning, "two objects have one UID", "delete one of them: the garbage collector takes them for one"},
		{CodeTooLarge, Warning, "a value is beyond the request limit", "raise etcd's --max-request-bytes, or make the object smaller: no update of it is accepted"},
		{CodeNearLimit, Info, "a value is near the request limit", "make the object smaller"},
		{CodeLeaseGone, Warning, "keys name a lease that is gone", "delete them by hand: they never expire"},
		{CodeNamespaceGone, Warning, "objects lie in a namespace that is gone", "create the namespace again, then delete it, or the objects"},

		{CodeEncrypted, Error, "a value is encrypted and stays closed", "find the EncryptionConfiguration that has the key; without it the value is lost"},
		{CodeEncryptionKeys, Info, "values are encrypted at rest", "give the restored API servers an EncryptionConfiguration that has this key, and etcdshift too: it did not look into these values"},
		{CodeMixedEncryption, Warning, "objects of one resource are encrypted in several ways", "write them anew (kubectl replace), or, where no kcp stores them, use \"etcdshift migrate storage-versions --rewrap\""},

		{CodeCRDUnreadable, Error, "a CustomResourceDefinition cannot be read", "restore its value from an older snapshot, or delete it with etcdctl"},
		{CodeVersionUnlisted, Error, "objects are stored at a version that is gone", "add the version to the CustomResourceDefinition again (not served), then \"etcdshift migrate storage-versions\""},
		{CodeListInvalid, Error, "storedVersions has a version that is gone", "use \"etcdshift migrate storage-versions\", or patch status.storedVersions: no update of the definition's spec is accepted"},
		{CodeListLacks, Warning, "storedVersions lacks a version that is there", "use \"etcdshift migrate storage-versions\" before any version is removed"},
		{CodeListExtra, Info, "storedVersions has a version at which nothing is stored", "use \"etcdshift migrate storage-versions\" to be able to remove the version"},
		{CodeManagedVersion, Warning, "managedFields name a version that is gone", "use \"etcdshift migrate storage-versions\": every server-side apply of these objects fails"},
		{CodeUpdateRefused, Warning, "every update of an object is refused", "write the object anew: kubectl delete it, where it has no finalizers, and create it as the schema wants it; or make the schema allow what is there"},
		{CodeApplyRefused, Warning, "every server-side apply of an object is refused", "correct fields with an update (kubectl replace); for managedFields use \"etcdshift migrate storage-versions\""},
		{CodeOrphans, Warning, "custom resources have no definition", "install the CustomResourceDefinition again, or delete the keys with etcdctl"},
		{CodeCRDTerminating, Warning, "a CustomResourceDefinition is being deleted", "see which objects and finalizers hold it; its objects are deleted once it goes on"},
		{CodeConversionGone, Error, "the Service of a conversion webhook is gone", "install the webhook's Service, or remove spec.conversion where all objects are at the storage version"},
		{CodeConversionNeeded, Warning, "objects are only read through a webhook in the cluster", "use \"etcdshift migrate storage-versions\" with a converter, or start the webhook first"},
		{CodeConversion, Info, "a conversion webhook runs in the cluster", "start it early: reads at other versions, garbage collection and the deletion of namespaces wait for it"},

		{CodeOwnerGone, Warning, "all owners are gone", "nothing, where it may go: the garbage collector deletes it after the restore; else remove metadata.ownerReferences"},
		{CodeOwnerUnresolvable, Warning, "an owner's version is not served", "use \"etcdshift migrate storage-versions\", or correct the reference: the garbage collector cannot resolve it and never deletes the object"},
		{CodeOwnerNamespaced, Warning, "an owner is of no use to the garbage collector", "remove the reference: an owner is cluster-scoped or in the namespace of the object"},
		{CodeOwnerNotJudged, Info, "owners that the file does not show", "nothing; whether they are there was not judged"},

		{CodeNamespaceTerminating, Warning, "a namespace is being deleted", "remove what holds it: finalizers whose controller is gone, content, dead APIServices"},

		{CodeWebhookServiceGone, Error, "the Service of a webhook is gone", "delete the webhook configuration, or set failurePolicy: Ignore, until the Service is there"},
		{CodeWebhookDeadlock, Warning, "a webhook guards what its own Pods need", "set failurePolicy: Ignore, or exclude its namespace, before all of its Pods are gone at once"},
		{CodeWebhookCore, Warning, "a webhook guards what nodes need", "set failurePolicy: Ignore, or exclude nodes, Leases and kube-system"},
		{CodeWebhookEndpoints, Warning, "a webhook has no endpoints", "start its Pods, or set failurePolicy: Ignore: what it guards is refused"},

		{CodeAPIServiceGone, Error, "the Service of an APIService is gone", "delete the APIService: namespaces cannot be deleted while it is unavailable"},
		{CodeAPIServiceEndpoints, Warning, "the Service of an APIService has no endpoints", "start its Pods, or delete the APIService: namespaces cannot be deleted while it is unavailable"},
		{CodeAPIServiceUnavailable, Warning, "an APIService was not available", "see its condition; delete it where its server is gone"},

		{CodeMasterLease, Warning, "an API server's address never expires", "delete the key with etcdctl: it stays an endpoint of the Service kubernetes"},
		{CodeMasterUnlisted, Info, "an API server's address is no endpoint", "nothing; it expires after the restore, seconds after etcd is up"},
		{CodeNodeSilent, Info, "a node was silent", "delete the Node if the machine is gone"},
		{CodeTokenWithoutUse, Warning, "a token's ServiceAccount is gone", "nothing, where it may go: the token controller deletes it after the restore"},

		{CodeShardPartial, Info, "a part of a shard of kcp", "nothing; which logical clusters live is not told by it, so that orphans were not judged"},
		{CodeShardTwice, Warning, "two storages are one shard of kcp", "keep the newer one alone"},
		{CodeClusterTwice, Error, "a logical cluster lives twice", "find out which one is newer (etcdshift diff), and purge the other before both shards run: etcdshift cluster purge"},
		{CodeClusterOrphans, Warning, "keys of logical clusters that do not live here", "see \"etcdshift cluster list\" with all shards; put back what is missed (etcdshift cluster import --orphans-from), then \"etcdshift cluster purge --orphans\""},
		{CodeStaleCopies, Warning, "a cache has copies of what lives elsewhere", "see \"etcdshift cluster list\" with all shards and \"etcdshift cluster purge --from-shard --to-shard\": other shards go by the copies, RBAC and APIExports among them"},
		{CodeClusterMismatch, Warning, "an object says that it is of another logical cluster", "find out who wrote it: kcp goes by the key, and writes kcp.io/cluster anew with the next update"},
		{CodeClusterTerminating, Warning, "a logical cluster is being deleted", "see which finalizers and content hold it; do not move it"},
		{CodeClusterMigrating, Warning, "a live migration has a logical cluster", "let it end, or import the logical cluster anew: kcp answers no request for it until then"},
		{CodeClusterMisnamed, Info, "a logical cluster names another shard", "nothing: kcp corrects it when this shard runs"},
		{CodeWorkspaceGone, Warning, "the Workspace of a logical cluster is gone", "make the Workspace again from a backup, or purge the logical cluster: nobody finds it by its path"},
		{CodeWorkspaceAstray, Warning, "a Workspace names a shard without its logical cluster", "see \"etcdshift cluster list\" with all shards; import the logical cluster, or correct the Workspace with --fix-owner"},
		{CodeBoundDefinitionGone, Error, "the definition of a bound type is gone", "let kcp bind the type again, or import the logical cluster from an archive, which brings it: no server serves its objects"},
		{CodeIdentityUnbound, Info, "objects of a type that is not bound", "nothing; no API shows them, and they go with the logical cluster"},
	}
}

// Codes are all codes, in the order in which the documentation has them.
func Codes() []Code {
	var codes []Code
	for _, e := range table() {
		codes = append(codes, e.code)
	}
	return codes
}

func (c Code) entry() entry {
	for _, e := range table() {
		if e.code == c {
			return e
		}
	}
	return entry{}
}

// Level is how bad findings of the code are; "" for a code that is none.
func (c Code) Level() Level { return c.entry().level }

// Title says what findings of the code have in common.
func (c Code) Title() string { return c.entry().title }

// Remedy is what to do.
func (c Code) Remedy() string { return c.entry().remedy }
