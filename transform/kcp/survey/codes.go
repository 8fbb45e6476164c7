package survey

import "github.com/etcdshift/etcdshift/finding"

// The codes that several commands report.
var (
	CodeSystemCluster = &finding.Code{Name: "system-cluster", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the logical cluster is a part of kcp itself",
		Meaning: "Its name is `root` or begins with `system:`. A shard without it does not start, or makes a new one.",
		Remedy:  "Nothing: such a cluster is not moved.",
		Allow:   "Treats it as any other.",
	}
	CodeTerminating = &finding.Code{Name: "terminating", Level: finding.Error, Allowed: finding.WentOn, Title: "the logical cluster is being deleted",
		Meaning: "Its LogicalCluster has a deletionTimestamp: kcp is deleting its content, and its controllers may still have to clean up elsewhere.",
		Remedy:  "Let kcp finish, take a new snapshot.",
		Allow:   "Treats it as any other, exit status 0. Imported, it goes on being deleted there.",
	}
	CodeMigrating = &finding.Code{Name: "migrating", Level: finding.Error, Allowed: finding.WentOn, Title: "a live migration has the logical cluster",
		Meaning: "The LogicalCluster has the annotation `internal.kcp.io/migrating`. Part of it may be on another shard already, or gone from this one.",
		Remedy:  "Let the migration end; or look at both shards with `etcdshift cluster list` and settle which of them has all of it.",
		Allow:   "Treats it as any other. `cluster import` drops the annotation.",
	}
	CodeUnknownKey = &finding.Code{Name: "unknown-key", Level: finding.Warning, Title: "a key of no logical cluster",
		Meaning: "The key lies below the storage prefix of a shard or a cache, and is not one that kcp makes. It stays as it is.",
		Remedy:  "Look at it with `etcdctl get KEY`; no API server serves it, though lists may fail on it. `etcdctl del KEY` removes it.",
	}
	CodeShardName = &finding.Code{Name: "shard-name", Level: finding.Warning, Title: "`--as-shard` differs from the name in the file",
		Meaning: "The manifest of an extraction has the given name, and its sum of the rest leaves out the copies that bear it. A purge deletes the copies " +
			"that bear it; a Workspace that names either leads to this shard.",
		Remedy: "Check the spelling. `--as-shard` is for a file that does not have the name of its shard.",
	}
	CodeChildrenStay = &finding.Code{Name: "children-stay", Level: finding.Warning, Title: "children of the logical cluster are left out",
		Meaning: "Logical clusters on this shard belong to Workspaces that lie in the cluster. A purge deletes their Workspaces, and they stay. An archive " +
			"has their Workspaces, and not them. The message says so where the Workspace is missing.",
		Remedy: "Nothing, where they are to stay on this shard: kcp finds them wherever their Workspaces are. Else `--with-children`, of both commands.",
	}
	CodeChildElsewhere = &finding.Code{Name: "child-elsewhere", Level: finding.Warning, Title: "a Workspace leads to a logical cluster elsewhere",
		Meaning: "It does not live on this shard, or names another parent; `--with-children` does not take it along. An archive has the Workspace only. A " +
			"purge deletes the Workspace, which may be the only one that leads there, or cannot be read.",
		Remedy: "Nothing in a move: it stays where it is and goes on working. To move it, extract it from its own shard; to delete it for good, purge it " +
			"there.",
	}
	CodeOwnerUnseen = &finding.Code{Name: "owner-unseen", Level: finding.Warning, Title: "the Workspace of the logical cluster is not in this file",
		Meaning: "Mostly because its parent lives on another shard; or it cannot be read. It may still name this shard.",
		Remedy:  "Look at it on its own shard: `etcdshift get` on that snapshot, or `kubectl get workspaces -o yaml` in the parent.",
	}
	CodeUnserved = &finding.Code{Name: "unserved", Level: finding.Error, Allowed: finding.WentOn, Title: "a type of kcp that this shard does not have",
		Meaning: "The cluster has objects of a type of kcp itself (`*.kcp.io`) that neither this shard nor the cluster defines: the shard runs an older " +
			"kcp, or another.",
		Remedy: "Bring the shard to the kcp version of the origin first.",
		Allow:  "The objects are written; nobody serves them until the type is there.",
	}
	CodeUnlistedVersion = &finding.Code{Name: "unlisted-version", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the shard does not list the version of an object",
		Warns:   "where storedVersions of the origin's definition names a version that the shard's definition, which stays, does not list: it is left out",
		Meaning: "The object is stored at a version that its definition on this shard does not list: no API server reads it, nor any list it is in.",
		Remedy:  "Bring the shard to the kcp version of the origin first.",
		Allow:   "The object is written as it is.",
	}
	CodeMissingDefinition = &finding.Code{Name: "missing-definition", Level: finding.Error, Allowed: finding.WentOn,
		Title: "no definition of a type is on the shard",
		Meaning: "An APIBinding binds a type whose CustomResourceDefinition is neither among the bound ones of the shard nor in the archive; or nothing " +
			"defines the type of custom resources. kcp does not serve such objects. A definition of the archive is taken only if it can be decrypted, its " +
			"name is the UID that the binding names, it defines the bound type, and it has the annotation `apis.kcp.io/bound-crd`; the reason says what it " +
			"lacks.",
		Remedy: "Give the configuration of encrypted definitions. Once kcp runs there, it makes the definition again from the APIExport, where that still " +
			"names the same schema.",
		Allow: "The objects are written; nobody serves them until the definition is there.",
	}
)
