package calico

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are the problems that the migration reports.
func codes() []*finding.Code {
	return []*finding.Code{
		codeCalicoTooOld, codeVersionUnknown, codeTierDrift, codeAdmissionMissing, codeRBACMissing, codeRBACUnknown,
		codeHalfDoneMigration, codeMigrationLeft, codeNothingToMigrate, codeAPIServiceLeft, codeDatastoreLocked,
		codeCRDMissing, codeCRDUnfit, codeConflict, codeNameCollision, codeInvalid, codeUnknownKey, codeBadUID, codeBadMetadata,
		codeDanglingOwner, codePrunedField, codeUnknownKind, codeTerminating, codeMetadataDiffers, codeTierMissing,
		codeHandleName, codeBlockName, codeIPAMHandleMissing, codeIPAMHandleCount, codeIPAMBlockMissing, codeIPAMBlockBad,
		codeIPAMNodeMissing, codeIPAMAffinity, codeIPAMUnchecked, codeIPAMAffinityUnlabelled,
		finding.Encrypted, finding.Undecodable, transform.CodeWouldBePlaintext, transform.CodeUnsupportedLayout,
	}
}

// What stands in the way of the whole migration.
var (
	codeCalicoTooOld = transform.ErrorCode("calico-too-old", "a Calico component is older than 3.32",
		"ClusterInformation or the image of a Calico workload names a release before 3.32. Such a release does not work on `projectcalico.org/v3` records: "+
			"its pods would come up with an empty datastore.",
		"Upgrade Calico to 3.32 or later, wait until every node runs it, take a new snapshot. A ClusterInformation that is older than the images means "+
			"that no new calico-node has started yet.",
		"Goes on. Only where you know better than the snapshot, such as images with tags of your own.")
	codeVersionUnknown = transform.WarningCode("calico-version", "the snapshot does not tell the release of Calico",
		"Tags like `master`, images by digest only, a build from before 3.32.0 was released, or a product other than Calico Open Source.",
		"Check the release of every component before the restore.")
	codeTierDrift = transform.ErrorCode("tier-drift", "a built-in tier is not as v3 demands",
		"`default` needs order 1000000 and action Deny, `kube-admin` 1000 and Pass, `kube-baseline` 10000000 and Pass. Unset fields count as Calico reads "+
			"them: order 1000000, action Deny.",
		"Correct the tier on the live cluster (it changes which policies apply, so etcdshift does not), take a new snapshot.",
		"Of no use alone: the tier is then refused as `invalid`.")
	codeAdmissionMissing = transform.WarningCode("admission-missing", "an admission policy of Calico is missing",
		"An admission policy that Calico installs beside its v3 CRDs is not in the snapshot, or is being deleted. The migration sets what it would have "+
			"set. Policies created later get no tier, tier label or types, or built-in tiers can be deleted.",
		"Apply it after the restore, from the release's manifest of v3 CRDs.")
	codeRBACMissing = &finding.Code{Name: "rbac-missing", Level: finding.Error, Allowed: finding.Skipped,
		Warns: "where they grant less than in `crd.projectcalico.org`, where only RoleBindings name the account, and where the role or the binding is " +
			"being deleted",
		Title: "a Calico component may not use the v3 group",
		Meaning: "The roles that ClusterRoleBindings give a Calico service account grant nothing in `projectcalico.org`: the component could not read its " +
			"own records. The key is that of a binding that names the account.",
		Remedy: "Apply the RBAC of Calico 3.32 or later, take a new snapshot.",
		Allow:  "Goes on. For those who apply the RBAC right after the restore, before Calico's pods start.",
	}
	codeRBACUnknown = transform.WarningCode("rbac-unknown", "the snapshot does not tell what Calico may do",
		"No role in the snapshot is bound to a Calico service account for the whole cluster, or an RBAC object could not be read. On a binding: the "+
			"readable roles grant its account too little in `projectcalico.org`; the unreadable ones may grant the rest.",
		"Check by hand that the roles of Calico's components grant `projectcalico.org`.")
	codeHalfDoneMigration = transform.ErrorCode("half-done-migration", "Calico's own live migration is under way",
		"Its DatastoreMigration has locked the v1 datastore or begun to copy, and is not complete. Some v3 records are there, and the controller would go "+
			"on after the restore.",
		"Let it come to Complete, or delete the DatastoreMigration to abort it; then take a new snapshot. Do not edit its status.",
		"A last resort for a cluster that cannot be started any more. Delete the DatastoreMigration and its finalizer before kube-controllers starts.")
	codeMigrationLeft = transform.WarningCode("migration-left", "a live migration of Calico left something behind",
		"A DatastoreMigration has not begun, is complete, or has a name that Calico does not act on. Or v3 records carry the annotation "+
			"`migration.projectcalico.org/migrated-by` of a migration that is gone.",
		"Delete one that has not begun before kube-controllers starts. Deleting a complete one makes its finalizer delete the v1 CRDs: with `--keep-v1` "+
			"that is the point of no return.")
	codeNothingToMigrate = transform.WarningCode("nothing-to-migrate", "nothing of Calico v1 is in the snapshot",
		"The snapshot has no record and no CRD of `crd.projectcalico.org`: it was migrated before, Calico is not installed, or its data is elsewhere "+
			"(another etcd, another storage prefix).",
		"If you expected records, look at the keys of the live cluster (`etcdctl get / --prefix --keys-only | cut -d/ -f2 | sort -u`), and name your "+
			"prefix with `--prefix`.")
	codeAPIServiceLeft = transform.WarningCode("apiservice-left", "the v3 group still goes to Calico's own API server",
		"The v1 group is gone, and APIService `v3.projectcalico.org` still names a Service: while it is there, the CRDs of `projectcalico.org` are not "+
			"served. Without such CRDs, Calico keeps its data elsewhere, such as in an etcd of its own.",
		"Where the CRDs are there: `kubectl delete apiservice v3.projectcalico.org` after the restore; restart an operator in v3 mode first, as the steps "+
			"say. Where they are not: nothing.")
	codeDatastoreLocked = transform.WarningCode("datastore-locked", "the v1 datastore was locked",
		"`datastoreReady` was false when the snapshot was taken, after an aborted live migration or by hand. The v3 datastore is written ready.",
		"Nothing, unless it was locked for a reason that still holds.")
	codeCRDMissing = transform.ErrorCode("crd-missing", "a v3 CRD is missing",
		"The v3 CRD of a kind is neither in the snapshot nor in the manifest of `--v3-crds`. On a record: there is no CRD to write it by.",
		"Give the release's manifest of v3 CRDs with `--v3-crds FILE`, or apply it to the live cluster and take a new snapshot.",
		"Records of that kind stay v1 records.")
	codeCRDUnfit = transform.ErrorCode("crd-unfit", "a v3 CRD cannot hold the records",
		"Its group, plural, kind or scope differs; version v3 is missing, not served or not the storage version; it is being deleted; its names were not "+
			"accepted; or it lacks a status subresource. On a record: the v3 CRD does not know fields that the v1 CRD knows or that v3 needs, and they "+
			"would be lost.",
		"Apply the manifest of the Calico release that runs to the live cluster, take a new snapshot.",
		"Goes on with a CRD that could hold records. The records of one that could not are then `crd-missing`. A record that would lose fields stays a v1 "+
			"record.")
)

// Records of the v1 group, and the v3 records they become.
var (
	codeConflict = &finding.Code{Name: "conflict", Level: finding.Error, Allowed: finding.Skipped,
		Warns:   "when `--conflicts` settled it",
		Title:   "a v3 object with another spec is there",
		Meaning: "A v3 object has the name that the v1 record gets, with another spec. The reason names the fields.",
		Remedy:  "Choose with `--conflicts keep-v3` or `--conflicts take-v1`, for all conflicts; or correct single objects and take a new snapshot.",
		Allow:   "Both stay as they are, but for a v3 ClusterInformation that is locked: it is made ready.",
	}
	codeNameCollision = transform.ErrorCode("name-collision", "two v1 records get the same v3 name",
		"Such as `default.web` and `web`. Calico's live migration keeps one of them, by chance.",
		"Delete the one that is not wanted; with the same spec it does not matter which.",
		"The record that is stored under the v3 name is migrated, the other stays.")
	codeInvalid = transform.ErrorCode("invalid", "a record does not validate against its v3 CRD",
		"The reason names field and rule. Its v3 name may be one that no server accepts, or the defaults of the CRD make it more than 6 MiB larger. "+
			"Objects written under an older CRD, or straight into etcd, can be like that. The live migration stops at them for ever.",
		"Correct the record, or the CRD; take a new snapshot.",
		"The record stays a v1 record.")
	codeUnknownKey = transform.WarningCode("unknown-key", "a key that no API server makes",
		"The key lies in the folder of a kind below `projectcalico.org`, or of CRDs, and is not one that an API server makes.",
		"Look at it with `etcdctl get KEY`; no API server serves it, though lists may fail on it. `etcdctl del KEY` removes it.")
	codeBadUID = transform.ErrorCode("bad-uid", "a UID is not a UUID, or not unique",
		"The UID that clients saw cannot be computed. The live migration loses such records without a word.",
		"Create the object again on the live cluster, take a new snapshot.",
		"The record stays a v1 record.")
	codeBadMetadata = transform.ErrorCode("bad-metadata", "the metadata of a record cannot be read",
		"The annotation `projectcalico.org/metadata` cannot be read, or metadata and key name different objects. The live migration loses such records "+
			"without a word.",
		"Correct or delete the record, take a new snapshot.",
		"The record stays a v1 record.")
	codeDanglingOwner = &finding.Code{Name: "dangling-owner", Level: finding.Error, Allowed: finding.Skipped,
		Warns: "where the garbage collector would only drop the reference, or cannot look for the owner: its group is gone, or it cannot be read",
		Title: "the garbage collector would delete the object",
		Meaning: "An owner does not exist, has another UID, or is of a scope that cannot own the object. In v1 the reference sat in an annotation and did " +
			"no harm; on a v3 object Kubernetes acts on it.",
		Remedy: "Remove the reference, or delete the object if its owner was deleted on purpose; take a new snapshot.",
		Allow:  "A Calico record stays a v1 record. Another object stays as it is, and is deleted when the garbage collector meets it.",
	}
	codePrunedField = transform.WarningCode("pruned-field", "a record has fields that no CRD knows",
		"Neither its v3 CRD nor its v1 CRD knows them: an old release or a typing error left them. No client saw them through the API; they are not "+
			"carried over.",
		"Compare them with what was meant. If they are wanted, move them to a field of the schema on the live cluster, and take a new snapshot.")
	codeUnknownKind = &finding.Code{Name: "unknown-kind", Level: finding.Error, Allowed: finding.Skipped,
		Warns:   "for a CRD without records, which goes with the rest of its group",
		Title:   "a kind that `projectcalico.org/v3` does not have",
		Meaning: "A Calico Enterprise kind, one of a very old release, or records whose CRD is gone. Calico's own migration deletes them without a word.",
		Remedy:  "Export what you need and delete them, then take a new snapshot.",
		Allow:   "The records, and with them the whole v1 group, stay in the output.",
	}
	codeTerminating = transform.WarningCode("terminating", "a v1 record was being deleted",
		"No finalizer holds it, and it is not created again. The live migration brings such records back to life.",
		"Nothing.")
	codeMetadataDiffers = transform.WarningCode("metadata-differs", "the v3 object that is there has other metadata",
		"It has the spec of the v1 record, but other metadata or status. It stays as it is.",
		"Compare the two, and set what you miss after the restore.")
	codeTierMissing = transform.WarningCode("tier-missing", "a policy names a tier that will not be there",
		"The tier was deleted, is being deleted and held by a finalizer, or is skipped for another problem. The policy is migrated as it is; Calico's "+
			"webhook would refuse to create it. Built-in tiers are reported only while they are being deleted: Calico makes them.",
		"Create the tier, or delete the policy. Of a tier that is being deleted: let Calico remove the finalizer, then create it again.")
	codeHandleName = transform.WarningCode("handle-name", "an IPAMHandle is stored under another name",
		"Its name was not the lower-cased handle id that Calico looks up. It gets that name.",
		"Nothing.")
	codeBlockName = transform.WarningCode("block-name", "an IPAMBlock is stored under another name",
		"Its name was not the one that its CIDR gives. It gets that name.",
		"Nothing.")
)

// The IPAM cross-check: warnings, one an object. The migration carries the records over as they
// are.
var (
	codeIPAMHandleMissing = transform.WarningCode("ipam-handle-missing", "handles of a block are missing",
		"Addresses of the block belong to handles that do not exist, or do not list the block. They may never be released. Addresses that a Windows node "+
			"keeps for itself have no handle, and are not reported.",
		"`calicoctl ipam check` after the restore.")
	codeIPAMHandleCount = transform.WarningCode("ipam-handle-count", "a handle and its block count differently",
		"The handle counts its addresses in a block otherwise than the block does.",
		"`calicoctl ipam check` after the restore.")
	codeIPAMBlockMissing = transform.WarningCode("ipam-block-missing", "a block is missing",
		"The handle lists a block, or a confirmed affinity claims one, that does not exist.",
		"Nothing for an affinity: its node claims the block again. `calicoctl ipam check` for a handle.")
	codeIPAMBlockBad = transform.WarningCode("ipam-block-bad", "a block contradicts itself",
		"The block lists another number of addresses than its CIDR has, or addresses with attributes that are not there. Calico may fail to read it.",
		"Drain its node and delete the block, once no pod uses an address of it.")
	codeIPAMNodeMissing = transform.WarningCode("ipam-node-missing", "the node of a block or affinity is missing",
		"The node is not in the snapshot. Calico releases blocks of nodes that are gone.",
		"Nothing, unless the node should be there.")
	codeIPAMUnchecked = transform.WarningCode("ipam-unjudged", "some IPAM records could not be compared",
		"They cannot be decrypted or decoded, or name no CIDR or handle id; each is reported for that. Blocks, handles and affinities that belong to them "+
			"are not compared with them. Reported once, under the first key.",
		"Settle the problems of those records, then migrate again: there may be more to tell.")
	codeIPAMAffinity = transform.WarningCode("ipam-affinity-mismatch", "a block and its affinities name different owners",
		"The block belongs to one node, and a BlockAffinity gives it to another, or none gives it to anybody.",
		"`calicoctl ipam check` after the restore.")
	codeIPAMAffinityUnlabelled = transform.WarningCode("ipam-affinity-unlabelled", "a BlockAffinity lacks the labels that Calico selects by",
		"Calico before 3.31 wrote none of the three labels; the reason says which are missing. The record is migrated as it is: addresses stay taken, and "+
			"the node takes none from the block for new pods. calico-node labels the affinities of its node when it starts, with the value of `spec.type`; "+
			"one without a type is still not selected.",
		"Nothing, unless the node should use the block again. Then, once calico-node has started there: `kubectl label blockaffinities.projectcalico.org "+
			"NAME projectcalico.org/affinity-type=host --overwrite`.")
)
