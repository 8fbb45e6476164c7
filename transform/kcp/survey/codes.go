package survey

import "github.com/etcdshift/etcdshift/finding"

// The codes that several commands report.
var (
	CodeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Title: "a value cannot be decoded",
		Warns:   "for all but LogicalClusters, APIBindings, and in `cluster extract --with-children` Workspaces",
		Meaning: "The value shows what the logical cluster needs. Other values are copied as they are stored.",
		Remedy:  "`etcdshift get` shows it; restore or delete it on the origin, extract again.",
	}
	CodeWouldBePlaintext = &finding.Code{Name: "would-be-plaintext", Level: finding.Error, Title: "a value would lose its encryption",
		Meaning: "The value is encrypted in the archive, or a copy that moves in the cache, and `--encryption-config` does not encrypt its resource. Or an " +
			"archive has it in the clear, and the shard's values of its type are encrypted and cannot be decrypted: no configuration shows how its servers " +
			"write them.",
		Remedy: "Give the configuration of the shard or cache, a provider that encrypts first: `--encryption-config FILE`.",
	}
	CodeSystemCluster = &finding.Code{Name: "system-cluster", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the logical cluster is a part of kcp itself",
		Meaning: "Its name is `root` or begins with `system:`. A shard without it does not start, or makes a new one. Such a cluster is not moved.",
		Remedy:  "Do not move or purge it.",
		Allow:   asAnyOther,
	}
	CodeTerminating = &finding.Code{Name: "terminating", Level: finding.Error, Allowed: finding.WentOn, Title: "the logical cluster is being deleted",
		Meaning: "Its LogicalCluster has a deletionTimestamp: kcp is deleting its content, and its controllers may still have to clean up elsewhere.",
		Remedy:  "Let kcp finish, take a new snapshot.",
		Allow:   asAnyOther + " Exit status 0. After an import, its deletion goes on there.",
	}
	CodeMigrating = &finding.Code{Name: "migrating", Level: finding.Error, Allowed: finding.WentOn, Title: "a live migration has the logical cluster",
		Meaning: "The LogicalCluster has the annotation `internal.kcp.io/migrating`. Part of it may be on another shard already, or gone from this one.",
		Remedy:  "Let it end, or find the shard with all of it: `etcdshift cluster list` with both.",
		Allow:   asAnyOther + " `cluster import` drops the annotation.",
	}
	CodeShardName = &finding.Code{Name: "shard-name", Level: finding.Warning, Title: "`--as-shard` differs from the name in the file",
		Meaning: "`--as-shard` is for a file without the name of its shard. An extraction writes the given name into the manifest, and its sum of the rest " +
			"leaves out the copies with that name. A purge deletes the copies with that name; a Workspace that has either name leads to this shard.",
		Remedy: "Check the spelling.",
	}
	CodeChildrenStay = &finding.Code{Name: "children-stay", Level: finding.Warning, Title: "children of the logical cluster are left out",
		Meaning: "Logical clusters on this shard belong to Workspaces in the cluster. A purge deletes the Workspaces, and the children stay. An archive has " +
			"only the Workspaces. The message says so where the Workspace is missing. After a move, kcp finds the children wherever their Workspaces are.",
		Remedy: "Nothing, if they stay on this shard. Else give `--with-children` to both commands.",
	}
	CodeChildElsewhere = &finding.Code{Name: "child-elsewhere", Level: finding.Warning, Title: "a Workspace leads to a logical cluster elsewhere",
		Meaning: "It does not live on this shard, or names another parent; `--with-children` does not take it along. An archive has the Workspace only. A " +
			"purge deletes the Workspace, which may be the only one that leads there, or cannot be read. In a move, the child stays and goes on working.",
		Remedy: "In a move nothing. Else extract or purge it on its own shard.",
	}
	CodeOwnerUnseen = &finding.Code{Name: "owner-unseen", Level: finding.Warning, Title: "the file lacks the logical cluster's Workspace",
		Meaning: "Mostly because its parent lives on another shard; or it cannot be read. It may still name this shard.",
		Remedy:  "`etcdshift get` shows it on its own shard, or `kubectl get workspaces -o yaml` in the parent.",
	}
	CodeUnserved = &finding.Code{Name: "unserved", Level: finding.Error, Allowed: finding.WentOn, Title: "this shard does not have a type of kcp",
		Meaning: "The cluster has objects of a type of kcp itself (`*.kcp.io`) that neither this shard nor the cluster defines: the shard runs an older " +
			"kcp, or another.",
		Remedy: sameKCP,
		Allow:  "The objects are written, unserved until the type exists.",
	}
	CodeUnlistedVersion = &finding.Code{Name: "unlisted-version", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the shard does not list the version of an object",
		Warns:   "where storedVersions of the origin's definition names a version that the shard's definition, which stays, does not list: it is left out",
		Meaning: "The object is stored at a version that its definition on this shard does not list: no API server reads it or lists its kind.",
		Remedy:  sameKCP,
		Allow:   "The object is written as it is.",
	}
	CodeMissingDefinition = &finding.Code{Name: "missing-definition", Level: finding.Error, Allowed: finding.WentOn,
		Title: "the shard has no definition of a type",
		Meaning: "An APIBinding binds a type whose CustomResourceDefinition is neither among the bound ones of the shard nor in the archive; or nothing " +
			"defines the type of custom resources. kcp does not serve such objects. A definition of the archive is taken only if it can be decrypted, its " +
			"name is the UID that the binding names, it defines the bound type, and it has the annotation `apis.kcp.io/bound-crd`; the reason says what it " +
			"lacks. Once kcp runs, it makes the definition again, if the APIExport still names the same schema.",
		Remedy: "Give the configuration that decrypts the definitions, or let kcp make them from the APIExport.",
		Allow:  "The objects are written, unserved until the definition exists.",
	}
)

const (
	asAnyOther = "Goes on as with any other logical cluster."
	sameKCP    = "Bring the shard to the kcp version of the origin first."
)
