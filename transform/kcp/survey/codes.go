package survey

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/transform"
)

// The codes that several commands report.
var (
	CodeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Title: "a value cannot be decoded",
		Warns:   "for all but LogicalClusters, APIBindings, and in `cluster extract --with-children` Workspaces",
		Meaning: "The value shows what the logical cluster needs. Other values are copied as they are stored.",
		Remedy:  "`etcdshift get` shows it; restore or delete it on the origin, extract again.",
	}
	CodeWouldBePlaintext = transform.ErrorCode("would-be-plaintext", "a value would lose its encryption",
		"The value is encrypted in the archive, or a copy that moves in the cache, and `--encryption-config` does not encrypt its resource. Or an "+
			"archive has it in the clear, and the shard's values of its type are encrypted and cannot be decrypted: no configuration shows how its servers "+
			"write them.",
		"Give the configuration of the shard or cache, a provider that encrypts first: `--encryption-config FILE`.", "")
	CodeSystemCluster = ErrorCode("system-cluster", "the logical cluster is a part of kcp itself",
		"Its name is `root` or begins with `system:`. A shard without it does not start, or makes a new one. Such a cluster is not moved.",
		"Do not move or purge it.",
		asAnyOther)
	CodeTerminating = ErrorCode("terminating", "the logical cluster is being deleted",
		"Its LogicalCluster has a deletionTimestamp: kcp is deleting its content, and its controllers may still have to clean up elsewhere.",
		"Let kcp finish, take a new snapshot.",
		asAnyOther+" Exit status 0. After an import, its deletion goes on there.")
	CodeMigrating = ErrorCode("migrating", "a live migration has the logical cluster",
		"The LogicalCluster has the annotation `internal.kcp.io/migrating`. Part of it may be on another shard already, or gone from this one.",
		"Let it end, or find the shard with all of it: `etcdshift cluster list` with both.",
		asAnyOther+" `cluster import` drops the annotation.")
	CodeShardName = transform.WarningCode("shard-name", "`--as-shard` differs from the name in the file",
		"`--as-shard` is for a file without the name of its shard. An extraction writes the given name into the manifest, and its sum of the rest "+
			"leaves out the copies with that name. A purge deletes the copies with that name; a Workspace that has either name leads to this shard.",
		"Check the spelling.")
	CodeChildrenStay = transform.WarningCode("children-stay", "children of the logical cluster are left out",
		"Logical clusters on this shard belong to Workspaces in the cluster. A purge deletes the Workspaces, and the children stay. An archive has "+
			"only the Workspaces. The message says so where the Workspace is missing. After a move, kcp finds the children wherever their Workspaces are.",
		"Nothing, if they stay on this shard. Else give `--with-children` to both commands.")
	CodeChildElsewhere = transform.WarningCode("child-elsewhere", "a Workspace leads to a logical cluster elsewhere",
		"It does not live on this shard, or names another parent; `--with-children` does not take it along. An archive has the Workspace only. A "+
			"purge deletes the Workspace, which may be the only one that leads there, or cannot be read. In a move, the child stays and goes on working.",
		"In a move nothing. Else extract or purge it on its own shard.")
	CodeOwnerUnseen = transform.WarningCode("owner-unseen", "the file lacks the logical cluster's Workspace",
		"Mostly because its parent lives on another shard; or it cannot be read. It may still name this shard.",
		"`etcdshift get` shows it on its own shard, or `kubectl get workspaces -o yaml` in the parent.")
	CodeUnserved = ErrorCode("unserved", "this shard does not have a type of kcp",
		"The cluster has objects of a type of kcp itself (`*.kcp.io`) that neither this shard nor the cluster defines: the shard runs an older "+
			"kcp, or another.",
		sameKCP,
		"The objects are written, unserved until the type exists.")
	CodeUnlistedVersion = &finding.Code{Name: "unlisted-version", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the shard does not list the version of an object",
		Warns:   "where storedVersions of the origin's definition names a version that the shard's definition, which stays, does not list: it is left out",
		Meaning: "The object is stored at a version that its definition on this shard does not list: no API server reads it or lists its kind.",
		Remedy:  sameKCP,
		Allow:   "The object is written as it is.",
	}
	CodeMissingDefinition = ErrorCode("missing-definition", "the shard has no definition of a type",
		"An APIBinding binds a type whose CustomResourceDefinition is neither among the bound ones of the shard nor in the archive; or nothing "+
			"defines the type of custom resources. kcp does not serve such objects. A definition of the archive is taken only if it can be decrypted, its "+
			"name is the UID that the binding names, it defines the bound type, and it has the annotation `apis.kcp.io/bound-crd`; the reason says what it "+
			"lacks. Once kcp runs, it makes the definition again, if the APIExport still names the same schema.",
		"Give the configuration that decrypts the definitions, or let kcp make them from the APIExport.",
		"The objects are written, unserved until the definition exists.")
)

const (
	asAnyOther = "Goes on as with any other logical cluster."
	sameKCP    = "Bring the shard to the kcp version of the origin first."
)

// ErrorCode returns a code that refuses the run. Where it is allowed, the run goes on.
func ErrorCode(name, title, meaning, remedy, allow string) *finding.Code {
	code := transform.ErrorCode(name, title, meaning, remedy, allow)
	code.Allowed = finding.WentOn
	return code
}
