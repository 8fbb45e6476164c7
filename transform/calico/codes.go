package calico

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are the problems that the migration reports.
func codes() []*finding.Code {
	return []*finding.Code{
		codeCalicoTooOld, codeVersionUnknown, codeTierDrift, codeAdmissionMissing, codeRBACMissing, codeRBACUnknown,
		codeHalfDoneMigration, codeMigrationLeft, codeAbortImpossible, codeAbortLoses, codeNothingToMigrate, codeAPIServiceLeft, codeDatastoreLocked,
		codeCRDMissing, codeCRDUnfit, codeConflict, codeNameCollision, codeInvalid, finding.UnknownKey, codeBadUID, codeBadMetadata,
		codeDanglingOwner, codePrunedField, codeUnknownKind, codeGenericKind, codeTerminating, codeMetadataDiffers, codeTierMissing,
		codeHandleName, codeBlockName, codeIPAMHandleMissing, codeIPAMHandleCount, codeIPAMBlockMissing, codeIPAMBlockBad,
		codeIPAMNodeMissing, codeIPAMAffinity, codeIPAMUnchecked, codeIPAMAffinityUnlabelled,
		finding.Encrypted, finding.Undecodable, transform.CodeWouldBePlaintext, transform.CodeUnsupportedLayout,
	}
}

// What stands in the way of the whole migration.
var (
	codeCalicoTooOld = transform.ErrorCode("calico-too-old", "a Calico component is older than 3.32",
		"ClusterInformation or the image of a Calico workload names a release before 3.32. Such a release cannot use `projectcalico.org/v3` records: its "+
			"pods would come up with an empty datastore. If only ClusterInformation is older, no new calico-node has started yet.",
		"Upgrade Calico to 3.32 or later, wait until every node runs it, take a new snapshot.",
		"Goes on. Only if you know better than the snapshot, such as for images with tags of your own.")
	codeVersionUnknown = transform.WarningCode("calico-version", "the snapshot does not show the release of Calico",
		"Tags like `master`, images by digest only, a build from before 3.32.0, or a product other than Calico Open Source.",
		"Check the release of every component before the restore.")
	codeTierDrift = transform.ErrorCode("tier-drift", "a built-in tier is not as v3 demands",
		"`default` needs order 1000000 and action Deny, `kube-admin` 1000 and Pass, `kube-baseline` 10000000 and Pass. Unset fields mean order 1000000, "+
			"action Deny. etcdshift does not correct the tier: that changes which policies apply.",
		"Correct the tier, take a new snapshot.",
		"Of no use alone: the tier is then `invalid`.")
	codeAdmissionMissing = transform.WarningCode("admission-missing", "an admission policy of Calico is missing",
		"An admission policy that Calico installs beside its v3 CRDs is absent or being deleted. The migration sets what the policy would have set. "+
			"Policies created later get no tier, tier label or types, or built-in tiers can be deleted.",
		"Apply it after the restore, from the release's manifest of v3 CRDs.")
	codeRBACMissing = &finding.Code{Name: "rbac-missing", Level: finding.Error, Allowed: finding.Skipped,
		Warns: "where the roles grant less than in `crd.projectcalico.org`, only RoleBindings name the account, or the role or binding is being deleted",
		Title: "a Calico component may not use the v3 group",
		Meaning: "The roles that ClusterRoleBindings give a Calico service account grant nothing in `projectcalico.org`: the component could not read its " +
			"own records. The key is that of a binding of the account.",
		Remedy: "Apply the RBAC of Calico 3.32 or later, take a new snapshot.",
		Allow:  "Goes on. Apply the RBAC after the restore, before Calico's pods start.",
	}
	codeRBACUnknown = transform.WarningCode("rbac-unknown", "the snapshot does not show what Calico may do",
		"No role in the snapshot is bound to a Calico service account for the whole cluster, or an RBAC object could not be read. On a binding: its "+
			"readable roles grant too little in `projectcalico.org`; the unreadable ones may grant the rest.",
		"Check that the roles of Calico's components grant `projectcalico.org`.")
	codeHalfDoneMigration = transform.ErrorCode("half-done-migration", "Calico's own live migration is under way",
		"Its DatastoreMigration has locked the v1 datastore or begun to copy, and is not complete. Some v3 records exist, and the controller would go on "+
			"after the restore. Do not edit the status of the DatastoreMigration.",
		"Let it come to Complete, or delete the DatastoreMigration to abort; take a new snapshot. `--abort` takes it back in the file.",
		"For a cluster that cannot start any more. Delete the DatastoreMigration and its finalizer before kube-controllers starts.")
	codeAbortImpossible = transform.ErrorCode("abort-impossible", "there is no live migration to take back",
		"The snapshot has no DatastoreMigration `v1-to-v3`, or its clean-up has begun: it deletes the CRDs of `crd.projectcalico.org` and all v1 records.",
		"After the clean-up Calico is on v3: stay there, or restore a snapshot from before.",
		"")
	codeAbortLoses = &finding.Code{Name: "abort-loses", Level: finding.Error, Allowed: finding.WentOn,
		Title: "taking the live migration back loses a change that was made on v3",
		Meaning: "A v3 object was made, changed or deleted after the copy. The v1 records do not have that change. With IPAM records, addresses that " +
			"pods got on v3 are free again: two pods can get the same one.",
		Remedy: "Stay on v3: let the live migration complete. Or make the change again on v1, and delete pods that started on v3.",
		Allow:  "Goes on. Removed v3 objects that had changed are in the report under `saved`.",
	}
	codeMigrationLeft = transform.WarningCode("migration-left", "a live migration of Calico left something behind",
		"A DatastoreMigration has not begun, is complete, or has a name that Calico ignores. Or v3 records carry the annotation "+
			"`migration.projectcalico.org/migrated-by` of a migration that is gone.",
		"Delete one that has not begun before kube-controllers starts. The finalizer of a complete one deletes the v1 CRDs: with `--keep-v1` there is no "+
			"way back. Deleting the CRD `datastoremigrations.migration.projectcalico.org` runs the finalizer too.")
	codeNothingToMigrate = transform.WarningCode("nothing-to-migrate", "the snapshot has no Calico v1 data",
		"The snapshot has no record and no CRD of `crd.projectcalico.org`: it was migrated before, Calico is not installed, or its data is in another etcd "+
			"or under another storage prefix.",
		"Give your `--prefix`; `etcdctl get / --prefix --keys-only | cut -d/ -f2 | sort -u` lists them.")
	codeAPIServiceLeft = transform.WarningCode("apiservice-left", "the v3 group still goes to Calico's own API server",
		"The v1 group is gone, but APIService `v3.projectcalico.org` names a Service: the CRDs of `projectcalico.org` are not served. Without such CRDs "+
			"Calico keeps its data elsewhere, such as in its own etcd: then do nothing. The steps of the report have the commands.",
		"If the CRDs exist: after the restore restart an operator in v3 mode, then `kubectl delete apiservice v3.projectcalico.org`.")
	codeDatastoreLocked = transform.WarningCode("datastore-locked", "the v1 datastore was locked",
		"`datastoreReady` was false when the snapshot was taken, after an aborted live migration or by hand. The v3 datastore is written ready.",
		"Nothing, unless it was locked for a reason that still holds.")
	codeCRDMissing = transform.ErrorCode("crd-missing", "a v3 CRD is missing",
		"Neither the snapshot nor the manifest of `--v3-crds` has the v3 CRD of a kind. On a record: there is no CRD to write it by.",
		"Give the release's manifest of v3 CRDs with `--v3-crds FILE`; or apply it live, take a new snapshot.",
		"Records of that kind stay v1 records.")
	codeCRDUnfit = transform.ErrorCode("crd-unfit", "a v3 CRD cannot hold the records",
		"Its group, plural, kind or scope differs; version v3 is missing, not served or not the storage version; it is being deleted; its names were not "+
			"accepted; or it lacks a status subresource. On a record: fields would be lost, which the v1 CRD knows or v3 needs but the v3 CRD does not know.",
		"Apply the manifest of the running Calico release, take a new snapshot.",
		"Goes on if the CRD can hold records. Otherwise its records are `crd-missing`. A record that would lose fields stays a v1 record.")
)

const staysV1 = "The record stays a v1 record."

// Records of the v1 group, and the v3 records they become.
var (
	codeConflict = &finding.Code{Name: "conflict", Level: finding.Error, Allowed: finding.Skipped,
		Warns:   "when `--conflicts` or `--conflict` settled it, or a choice of `--conflict` has no effect",
		Title:   "a v3 object with another spec exists",
		Meaning: "A v3 object has the name that the v1 record gets, with another spec. The reason names the fields.",
		Remedy: "Choose for all with `--conflicts keep-v3` or `--conflicts take-v1`, or by object with `--conflict KIND[/NS]/NAME=take-v1`; or correct " +
			"objects, take a new snapshot.",
		Allow: "Both stay as they are. A locked v3 ClusterInformation is made ready.",
	}
	codeNameCollision = transform.ErrorCode("name-collision", "two v1 records get the same v3 name",
		"Such as `default.web` and `web`. Calico's live migration keeps one of them, by chance. With the same spec, either may go.",
		"Delete the unwanted one.",
		"The record stored under the v3 name is migrated, the other stays.")
	codeInvalid = transform.ErrorCode("invalid", "a record does not validate against its v3 CRD",
		"The reason names field and rule, a v3 name that no server accepts, or defaults of the CRD that add more than 6 MiB. Objects written under an older "+
			"CRD, or straight into etcd, can be invalid. The live migration stops at them for ever.",
		"Correct the record or the CRD, take a new snapshot.",
		staysV1)
	codeBadUID = transform.ErrorCode("bad-uid", "a UID is not a UUID, or not unique",
		"The UID that clients saw cannot be computed. The live migration silently loses such records.",
		"Create the object again, take a new snapshot.",
		staysV1)
	codeBadMetadata = transform.ErrorCode("bad-metadata", "the metadata of a record cannot be read",
		"The annotation `projectcalico.org/metadata` cannot be read, or metadata and key name different objects. The live migration silently loses such "+
			"records.",
		"Correct or delete the record, take a new snapshot.",
		staysV1)
	codeDanglingOwner = &finding.Code{Name: "dangling-owner", Level: finding.Error, Allowed: finding.Skipped,
		Warns: "where the garbage collector would only drop the reference, or cannot look for the owner: its group is gone, or it cannot be read",
		Title: "the garbage collector would delete the object",
		Meaning: "An owner does not exist, has another UID, or has a scope that cannot own the object. If the owner was deleted on purpose, delete the " +
			"object. In v1 an annotation held the reference, without effect; on a v3 object Kubernetes acts on it.",
		Remedy: "Remove the reference or the object, take a new snapshot.",
		Allow:  "A Calico record stays a v1 record. Another object stays as it is, until the garbage collector deletes it.",
	}
	codePrunedField = transform.WarningCode("pruned-field", "a record has fields that no CRD knows",
		"Neither its v3 CRD nor its v1 CRD knows them: an old release or a typing error left them. No client saw them through the API; they are not carried "+
			"over.",
		"Move wanted fields to one of the schema on the live cluster, take a new snapshot.")
	codeUnknownKind = &finding.Code{Name: "unknown-kind", Level: finding.Error, Allowed: finding.Skipped,
		Warns: "for a CRD without records, which goes with the rest of its group",
		Title: "a kind that `projectcalico.org/v3` does not have",
		Meaning: "One of a very old release, records whose CRD is gone, or a Calico Enterprise kind without a v3 CRD. Calico's own migration deletes them " +
			"silently.",
		Remedy: "Give the v3 CRD with `--v3-crds FILE`, if the product has one. Else export what you need, delete the records, take a new snapshot.",
		Allow:  "They stay in the output, with the whole v1 group.",
	}
	codeGenericKind = transform.WarningCode("generic-kind", "a kind that Calico Open Source does not have was migrated",
		"Both groups have a CRD of it, as for kinds of Calico Enterprise. It is migrated as its CRDs say: metadata, UID and owners like those of other "+
			"kinds, the spec as it is, if the v3 CRD accepts it. Calico's own live migration deletes such records unless the product registers them.",
		"Ask the vendor whether the product changes the spec of that kind.")
	codeTerminating = transform.WarningCode("terminating", "a v1 record was being deleted",
		"No finalizer holds it, so it is not created again. The live migration restores such records.",
		"Nothing to do.")
	codeMetadataDiffers = transform.WarningCode("metadata-differs", "an existing v3 object has other metadata",
		"It has the spec of the v1 record, but other metadata or status. It stays as it is.",
		"Compare the two, and set what is missing after the restore.")
	codeTierMissing = transform.WarningCode("tier-missing", "the tier of a policy will be missing",
		"The tier was deleted, is being deleted and held by a finalizer, or is skipped for another problem. The policy is migrated as it is; Calico's "+
			"webhook would refuse to create it. Built-in tiers are reported only while they are being deleted: Calico makes them.",
		"Let Calico remove the finalizer of the tier, if any; create the tier, or delete the policy.")
	codeHandleName = transform.WarningCode("handle-name", "an IPAMHandle is stored under another name",
		"Its name was not the lower-cased handle id that Calico looks up. It gets that name.",
		"Nothing to do.")
	codeBlockName = transform.WarningCode("block-name", "an IPAMBlock is stored under another name",
		"Its name was not the one that its CIDR gives. It gets that name.",
		"Nothing to do.")
)

const remedyIPAM = "`calicoctl ipam check` after the restore."

// The IPAM cross-check: warnings, one an object. The migration carries the records over as they
// are.
var (
	codeIPAMHandleMissing = transform.WarningCode("ipam-handle-missing", "handles of a block are missing",
		"Addresses of the block belong to handles that do not exist, or do not list the block. They may never be released. Addresses that a Windows node "+
			"keeps for itself have no handle, and are not reported.",
		remedyIPAM)
	codeIPAMHandleCount = transform.WarningCode("ipam-handle-count", "a handle and its block count differently",
		"The handle and the block disagree on how many addresses the handle has.",
		remedyIPAM)
	codeIPAMBlockMissing = transform.WarningCode("ipam-block-missing", "a block is missing",
		"The handle lists a block, or a confirmed affinity claims one, that does not exist. The node of an affinity claims the block again.",
		"For a handle `calicoctl ipam check`.")
	codeIPAMBlockBad = transform.WarningCode("ipam-block-bad", "a block contradicts itself",
		"The block lists another number of addresses than its CIDR has, or addresses with missing attributes. Calico may fail to read it.",
		"Drain its node; delete the block once no pod uses its addresses.")
	codeIPAMNodeMissing = transform.WarningCode("ipam-node-missing", "the node of a block or affinity is missing",
		"The node is not in the snapshot. Calico releases blocks of missing nodes.",
		"Nothing, unless the node should exist.")
	codeIPAMUnchecked = transform.WarningCode("ipam-unjudged", "some IPAM records could not be compared",
		"They cannot be decrypted or decoded, or name no CIDR or handle id; each is reported for that. Their blocks, handles and affinities are not "+
			"compared with them. Reported once, under the first key.",
		"Solve their problems, then migrate again: there may be more.")
	codeIPAMAffinity = transform.WarningCode("ipam-affinity-mismatch", "a block and its affinities name different owners",
		"The block belongs to one node, and a BlockAffinity gives it to another, or none gives it to any.",
		remedyIPAM)
	codeIPAMAffinityUnlabelled = transform.WarningCode("ipam-affinity-unlabelled", "a BlockAffinity lacks labels that Calico selects by",
		"Calico before 3.31 wrote none of the three labels; the reason names the missing ones. The record is migrated as it is: addresses stay taken, and "+
			"the node takes none from the block for new pods. calico-node labels the affinities of its node when it starts, with the value of `spec.type`; "+
			"one without a type is still not selected.",
		"To use the block again, once calico-node has started: `kubectl label blockaffinities.projectcalico.org NAME projectcalico.org/affinity-type=host "+
			"--overwrite`.")
)
