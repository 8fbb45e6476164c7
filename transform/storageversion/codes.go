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

// Effects of --allow.
const (
	noneLeaves       = "The record stays; no version leaves its CRD's storedVersions."
	staysUnconverted = "The object keeps its version, and storedVersions too."
)

// Errors. A record, or a CustomResourceDefinition with all its records, stays as it is.
var (
	codeUnknownKey = transform.ErrorCode("unknown-key", finding.UnknownKey.Title,
		"The key lies in the folder of a CRD's objects, or of CRDs. No API server makes such a key, or serves it.",
		finding.RemedyUnknownKey,
		noneLeaves)
	codeUnknownKind = transform.ErrorCode("unknown-kind", "a value of another kind or group",
		"The value lies among the objects of a CRD and is of another kind or group.",
		"`etcdctl get KEY` shows it, `etcdctl del KEY` removes it.",
		noneLeaves)
	codeUnlistedVersion = transform.ErrorCode("unlisted-version", "a CRD does not list the version of an object",
		"No API server reads the object or lists its kind: `kubectl get` says `request to convert CR from an invalid group/version`. On a CRD: it does not "+
			"have the version of `--to`. `--map` gives the object the apiVersion of NEW and applies its pruning and defaults, so NEW needs the same fields.",
		"Give a version with the same fields: `--map GROUP/OLD=NEW`. Or add the old version and its schema to the live CRD (`served: false`); take a new "+
			"snapshot.",
		"The object stays, its version enters storedVersions, and until it is repaired API servers refuse every update of the CRD's spec (`missing from "+
			"spec.versions`).")
	codeNeedsWebhook = transform.ErrorCode("needs-webhook", "only a conversion webhook can convert the object",
		"The object is not at the storage version, and only the conversion webhook of its CRD can convert it.",
		"Give `--conversion-webhook GROUP=URL` or `--conversion-exec GROUP=COMMAND` (docs/storage-versions.md).",
		staysUnconverted)
	codeConversionFailed = transform.ErrorCode("conversion-failed", "the converter failed",
		"The webhook or command could not be reached, ended with an error, or gave an answer that an API server would refuse: another name, uid or version, "+
			"a missing object. The reason quotes the converter. A converter that cannot be reached, or does not answer within `--conversion-timeout`, is "+
			"not asked again.",
		"Repair the converter and run again. For an untrusted certificate: `--conversion-ca FILE`.",
		staysUnconverted)
	codePrunedField = &finding.Code{Name: "pruned-field", Level: finding.Error, Allowed: "dropped (allowed)",
		Title: "fields of an object would be lost",
		Meaning: "The schema of the stored version or of the storage version does not know these fields; an API server drops them at its next write. Often " +
			"a field was renamed without a conversion. With `--to` an older version, these are the fields and defaults that only the newer version has.",
		Remedy: "Move wanted fields to one of the schema, or add them to it, on the live cluster; take a new snapshot.",
		Allow:  "The objects lose those fields. The input still has them.",
	}
	codeInvalid = transform.ErrorCode("invalid", "a CRD cannot be used",
		"None of its versions is the storage version, a schema is broken, or its name differs from its key, or from its plural and group. On an object: the "+
			"defaults of the CRD, or the converter's answer, make it more than 6 MiB larger, four times what etcd takes in one request.",
		"Correct the CRD or the object, take a new snapshot.",
		"The CRD and its objects, or the one object, stay as they are.")
	codeStorageMigrating = transform.ErrorCode("storage-migrating", "the cluster's own migrator works on a CRD",
		"The CRD's condition StorageMigrating is True. After a restore, the migrator would go on and overwrite the status.",
		"Wait for its end (`kubectl get storageversionmigrations`), take a new snapshot; or `--exclude` the CRD.",
		"The CRD and its objects stay as they are.")
)

// Warnings.
var (
	codeNotChosen = transform.WarningCode("not-chosen", "a CRD that was left out needs the migration",
		"The flags left the CRD out, and its objects are not at the storage version, or storedVersions does not match what is stored.",
		"Nothing, if intended; else leave the filter out.")
	codeNothingThere = transform.WarningCode("nothing-to-migrate", "no CRD to migrate",
		"No CustomResourceDefinition is in the snapshot, or the flags chose none.",
		"Give an unusual `--prefix`. `etcdshift status` lists the CRDs.")
	codeOrphan = transform.WarningCode("orphan", "a custom resource has no CRD",
		"No server serves it, nothing deletes it. A CRD was deleted without its finalizer, or the snapshot lacks it.",
		"Create the CRD again, or `etcdctl del --prefix PREFIX/GROUP/PLURAL/`.")
	codeKeyMismatch = transform.WarningCode("key-mismatch", "an object has another name than its key",
		"Or it has a namespace where its CRD has none. A server serves it under the name inside, and refuses updates.",
		"`kubectl delete` it by the name and namespace of its key, which removes that key alone, and write it again under its own.")
	codeNoUID = transform.WarningCode("crd-without-uid", "a CRD has no UID",
		"No API server makes such a CRD. With two of them, a server serves the objects of one as those of the other.",
		"After the restore, save its objects, delete it and create it again.")
	codeTerminating = transform.WarningCode("crd-terminating", "a CRD is being deleted",
		"Its objects are deleted with it. They are rewritten all the same; storedVersions is not trimmed.",
		"Nothing, if intended.")
	codeListKept = transform.WarningCode("stored-versions-kept", "storedVersions could not be trimmed",
		"Objects are still stored at another version, the version of some is unknown, or the CRD is being deleted; the reason says which. An API server "+
			"refuses to drop a listed version from the CRD.",
		"Solve the errors of its objects.")
	codeDroppedNull = transform.WarningCode("dropped-null", "a null field was dropped",
		"The null meant nothing; an API server drops it at its next write, and so did the migration.",
		"Nothing to do.")
	codeViolatesSchema = transform.WarningCode("violates-schema", "an object breaks rules of its schema",
		"API servers check writes only, so the object can be read. From 1.30 on they refuse an update that changes what the rule is about: the field, the "+
			"object around a missing field or a rule over several fields, or the list around an item. Older ones refuse every update. OLM refuses such a "+
			"schema (`updated validation is too restrictive`). `it was not validated`: that takes more than two million checks, or the defaults have no end.",
		"After the restore, correct the fields that the reason names.")
	codeUpdateRefused = transform.WarningCode("update-refused", "every update of an object is refused",
		"Even of a label, and the removal of a finalizer: items of a list of type map lack keys or share them, or metadata (of embedded resources too), "+
			"fields of the scale subresource or rules about the whole object are broken. The status subresource refuses only errors in the status. The "+
			"migration did not cause it, if the same schema was served before.",
		"After the restore, "+finding.RemedyUpdateRefused)
	codeApplyRefused = transform.WarningCode("apply-refused", "every server-side apply of an object is refused",
		"By any manager (`failed to create typed live object`): its fields do not have the types of the schema, or an entry of its managedFields cannot be "+
			"read. Updates work. Servers up to 1.36 drop all its managedFields with the first update, so it changes once more after the restore; servers "+
			"from 1.37 on keep them.",
		"After the restore, correct the fields of the reason (`kubectl edit`, `kubectl replace`).")
	codeFieldsLost = transform.WarningCode("managed-fields-lost", "managers no longer own fields of an object",
		"With a conversion webhook: their entry of metadata.managedFields named a version that is gone, and fields that the storage version does not know, "+
			"which the webhook may have renamed. Otherwise API servers cannot read an entry; they drop all entries with the first update, and so does the "+
			"migration. A field that a manager stopped applying in the meantime stays.",
		"Let the managers apply it again, with `--force-conflicts` if another took the fields over.")
	codeOwnerVersion = transform.WarningCode("owner-version", "the version of an owner reference is not served",
		"The CRD of the owner serves no version, so the reference cannot move to another. The garbage collector keeps the object while it cannot look for "+
			"the owner.",
		"Serve a version of the CRD again.")
	codeHelmRelease = transform.WarningCode("helm-release", "a Helm release names versions that are gone",
		"The next upgrade of the release stops with `no matches for kind`. Or the release cannot be read. The map file of mapkubeapis takes versions of "+
			"CRDs too.",
		"Before the upgrade, change its manifest with the Helm plugin mapkubeapis.")
	codeMappingUnused = transform.WarningCode("mapping-unused", "no object took a --map",
		"Nothing is stored at that version, or the CRD lists it, so its own schema was used. A second run over a migrated snapshot reports it too.",
		"Nothing, if intended; else look for a typing error.")
	codeMigratorPending = transform.WarningCode("migrator-pending", "a StorageVersionMigration is running",
		"After a restore it goes on, and finds the objects migrated.",
		"Nothing to do.")
)
