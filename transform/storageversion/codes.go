package storageversion

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// codes are the problems that the migration reports.
func codes() []*finding.Code {
	return []*finding.Code{
		finding.Undecodable, finding.Encrypted, transform.CodeWouldBePlaintext, transform.CodeUnsupportedLayout,
		codeUnknownKey, codeUnknownKind, codeUnlistedVersion, codeNeedsWebhook, codeConversionFailed, codePrunedField, codeInvalid,
		codeStorageMigrating, codeNotChosen, codeNothingThere, codeOrphan, codeKeyMismatch, codeNoUID, codeTerminating, codeListKept,
		codeDroppedNull, codeViolatesSchema, codeUpdateRefused, codeApplyRefused, codeFieldsLost, codeOwnerVersion, codeHelmRelease,
		codeMappingUnused, codeMigratorPending,
	}
}

// Errors. A record, or a CustomResourceDefinition with all its records, stays as it is.
var (
	codeUnknownKey = transform.ErrorCode("unknown-key", "a key that no API server makes",
		"The key lies in the folder of a CRD's objects, or of CRDs, and is not one that an API server makes.",
		"Look at it with `etcdctl get KEY`; no API server serves it, though lists may fail on it. `etcdctl del KEY` removes it.",
		"The record stays as it is; no version leaves its CRD's storedVersions.")
	codeUnknownKind = transform.ErrorCode("unknown-kind", "a value of another kind or group",
		"The value lies among the objects of a CRD and is of another kind or group.",
		"Look at it with `etcdctl get KEY`; `etcdctl del KEY` removes it.",
		"The value stays as it is; no version leaves its CRD's storedVersions.")
	codeUnlistedVersion = transform.ErrorCode("unlisted-version", "an object is stored at a version that its CRD does not list",
		"No API server reads it, nor any list it is in: `kubectl get` of the kind says `request to convert CR from an invalid group/version`. On a CRD: "+
			"`--to` names a version that it does not have.",
		"Give the version that takes its place with `--map GROUP/OLD=NEW`. The object is then taken as it is, given the apiVersion of NEW, pruned and "+
			"completed as NEW demands, so be sure that NEW has the same fields. Or add the old version to the CRD again (`served: false`) with its schema, "+
			"on the live cluster, and take a new snapshot.",
		"The object stays as it is, and its version enters storedVersions: until it is repaired, an API server refuses every update of that CRD's spec "+
			"(`missing from spec.versions`).")
	codeNeedsWebhook = transform.ErrorCode("needs-webhook", "only a conversion webhook can convert the object",
		"The object is not at the storage version, and only the conversion webhook of its CRD can bring it there.",
		"`--conversion-webhook GROUP=URL` or `--conversion-exec GROUP=COMMAND` (docs/storage-versions.md).",
		"The object stays at its version, and that version in storedVersions.")
	codeConversionFailed = transform.ErrorCode("conversion-failed", "the converter failed",
		"The webhook or the command could not be reached, ended with an error, or gave an answer that an API server would refuse: another name or uid, "+
			"another version, a missing object. The reason quotes the converter. One that cannot be reached, or gives no answer within "+
			"`--conversion-timeout`, is not asked again.",
		"Repair the converter and run again. For a certificate that is not trusted: `--conversion-ca FILE`.",
		"The object stays at its version, and that version in storedVersions.")
	codePrunedField = &finding.Code{Name: "pruned-field", Level: finding.Error, Allowed: "dropped (allowed)",
		Title: "fields of an object would be lost",
		Meaning: "The schema of the stored version or of the storage version does not know these fields; an API server drops them at its next write. Often " +
			"a field was renamed without a conversion. On the way back (`--to` an older version) these are the fields that only the newer version has, its " +
			"defaults too.",
		Remedy: "Compare the fields with what was meant. If they are wanted, move them to a field of the schema, or add them to the schema, on the live " +
			"cluster; take a new snapshot.",
		Allow: "The objects are written without those fields. The input still has them.",
	}
	codeInvalid = transform.ErrorCode("invalid", "a CRD cannot be used",
		"None of its versions is the storage version, a schema in it is broken, or its name is not that of its key, or not its plural and group. On an "+
			"object: the defaults of the CRD, or the converter's answer, make it more than 6 MiB larger, four times what etcd takes in one request.",
		"Correct the CRD or the object; take a new snapshot.",
		"The CRD and all its objects stay as they are, or the one object does.")
	codeStorageMigrating = transform.ErrorCode("storage-migrating", "the cluster's own migrator is at work on a CRD",
		"The CRD's condition StorageMigrating is True. Restored, the migrator would go on from there and overwrite the status.",
		"Wait until it is done (`kubectl get storageversionmigrations`), take a new snapshot; or leave the CRD out with `--exclude`.",
		"The CRD and all its objects stay as they are.")
)

// Warnings.
var (
	codeNotChosen = transform.WarningCode("not-chosen", "a CRD that was left out needs the migration",
		"The flags left the CRD out, and its objects are not at the storage version, or storedVersions does not match what is stored.",
		"Nothing, if that was meant; else leave the filter out.")
	codeNothingThere = transform.WarningCode("nothing-to-migrate", "no CRD to migrate",
		"No CustomResourceDefinition is in the snapshot, or the flags chose none.",
		"Name your storage prefix with `--prefix`, if it is an unusual one. If you chose by label, `etcdshift status` lists the CRDs.")
	codeOrphan = transform.WarningCode("orphan", "a custom resource has no CRD",
		"No server serves it, nothing deletes it. A CRD was deleted without its finalizer, or the snapshot lacks it.",
		"Nothing, or create the CRD again; `etcdctl del --prefix PREFIX/GROUP/PLURAL/` removes the objects for good.")
	codeKeyMismatch = transform.WarningCode("key-mismatch", "an object has another name than its key",
		"Or it has a namespace where its CRD has none. A server serves it under the name inside, and refuses updates.",
		"Write it again under its name, then delete the key with `etcdctl del`.")
	codeNoUID = transform.WarningCode("crd-without-uid", "a CRD has no UID",
		"No API server makes such a CRD. Of two of them, a server serves the objects of one as those of the other.",
		"After the restore, keep its objects, delete it and create it again.")
	codeTerminating = transform.WarningCode("crd-terminating", "a CRD is being deleted",
		"Its objects are deleted with it. They are rewritten all the same; storedVersions is not trimmed.",
		"Nothing, if it was meant to go.")
	codeListKept = transform.WarningCode("stored-versions-kept", "storedVersions could not be trimmed",
		"Objects are still stored at another version, the version of some is unknown, or the CRD is being deleted; the reason says which. While a version "+
			"is in the list, an API server refuses to drop it from the CRD.",
		"Settle the errors of its objects.")
	codeDroppedNull = transform.WarningCode("dropped-null", "a null field was dropped",
		"The null meant nothing; an API server drops it at its next write, and so did the migration.",
		"Nothing.")
	codeViolatesSchema = transform.WarningCode("violates-schema", "an object breaks rules of its schema",
		"API servers check writes only, so the object can be read. From 1.30 on they refuse an update that changes what the rule is about: the field, the "+
			"object around a missing field or a rule over several fields, or the list around an item. Older ones refuse every update. `it was not "+
			"validated`: that takes more than two million checks, or the defaults have no end.",
		"Correct the fields that the reason names, after the restore.")
	codeUpdateRefused = transform.WarningCode("update-refused", "API servers refuse every update of an object",
		"Even of a label, and the removal of a finalizer: items of a list of type map lack keys or share them, or metadata (of embedded resources too), "+
			"fields of the scale subresource or rules about the whole object are broken. The status subresource refuses only what is wrong in the status. "+
			"It was so before, where the same schema was served.",
		"After the restore, delete the object and create it as the schema demands; where it has finalizers, relax the schema first.")
	codeApplyRefused = transform.WarningCode("apply-refused", "API servers refuse every server-side apply of an object",
		"By any manager (`failed to create typed live object`): its fields are not of the types of the schema, or an entry of its managedFields cannot be "+
			"read. Updates work. Servers up to 1.36 drop all its managedFields with the first update, so that it changes once more after the restore; "+
			"servers from 1.37 on keep them.",
		"After the restore, correct the fields that the reason names with an update (`kubectl edit`, `kubectl replace`).")
	codeFieldsLost = transform.WarningCode("managed-fields-lost", "managers no longer own fields of an object",
		"With a conversion webhook: their entry of metadata.managedFields named a version that is gone, and fields that the storage version does not know, "+
			"which the webhook may have renamed. Else: an entry is one that API servers cannot read; they drop all entries with the first update, and so "+
			"does the migration.",
		"Let the managers apply the object again, with `--force-conflicts` where another took the fields over. A field that they stopped applying in the "+
			"meantime stays.")
	codeOwnerVersion = transform.WarningCode("owner-version", "an owner reference names a version that is not served",
		"The CRD of the owner serves no version at all, so there is nothing to move the reference to. The garbage collector leaves the object alone as "+
			"long as it cannot look for the owner.",
		"Serve a version of the CRD again.")
	codeHelmRelease = transform.WarningCode("helm-release", "a Helm release names versions that are gone",
		"The next upgrade of the release stops with `no matches for kind`. Or the release cannot be read.",
		"Before its next upgrade, change the manifest of the release with the Helm plugin mapkubeapis, whose map file takes versions of CRDs too.")
	codeMappingUnused = transform.WarningCode("mapping-unused", "no object took a --map",
		"Nothing is stored at that version, or the CRD lists it, so that its own schema was used. A second run over a migrated snapshot reports it too.",
		"Nothing, if that was meant; else look for a typing error.")
	codeMigratorPending = transform.WarningCode("migrator-pending", "a StorageVersionMigration is running",
		"Restored, it goes on, and finds done what was migrated here.",
		"Nothing.")
)
