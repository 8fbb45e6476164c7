package clusters

import "github.com/etcdshift/etcdshift/finding"

// What is out of the ordinary with a logical cluster; etcdshift doctor reports it too.
var (
	CodeClusterTwice = &finding.Code{Name: "cluster-twice", Level: finding.Error, Title: "a logical cluster lives twice",
		Meaning: "It lives in two storages: an unfinished move. When both shards run, it diverges.",
		Remedy:  "Compare them (`etcdshift diff`); `etcdshift cluster purge` the older one before both shards run.",
	}
	CodeClusterTerminating = &finding.Code{Name: "cluster-terminating", Level: finding.Warning, Title: "a logical cluster is being deleted",
		Meaning: "Its LogicalCluster has a deletionTimestamp: kcp goes on deleting it after the restore.",
		Remedy:  "See which finalizers and content hold it. Do not move it.",
	}
	CodeClusterMigrating = &finding.Code{Name: "cluster-migrating", Level: finding.Warning, Title: "a live migration has a logical cluster",
		Meaning: "A part of it may be on another shard, and kcp answers no request for it. `etcdshift cluster import` drops the mark.",
		Remedy:  "Wait until the migration has ended, take a new snapshot.",
	}
	CodeClusterMisnamed = &finding.Code{Name: "cluster-misnamed", Level: finding.Info, Title: "a logical cluster names another shard",
		Meaning: "Its LogicalCluster names another shard than this one, as after a move. kcp corrects it, and its Workspace, when this shard runs.",
		Remedy:  "Nothing to do.",
	}
	CodeWorkspaceGone = &finding.Code{Name: "workspace-gone", Level: finding.Warning, Title: "the Workspace of a logical cluster is gone",
		Meaning: "The file has the LogicalCluster, and the logical cluster of its Workspace, but not the Workspace. No path leads to it.",
		Remedy:  "Restore the Workspace from a backup, or purge the logical cluster.",
	}
	CodeWorkspaceAstray = &finding.Code{Name: "workspace-astray", Level: finding.Warning, Title: "a Workspace names a shard without its logical cluster",
		Meaning: "The logical cluster was moved or lost, or its LogicalCluster is missing. `etcdshift cluster list` with all shards shows where it lives.",
		Remedy:  "Import it if it is lost, or correct the Workspace with `--fix-owner`.",
	}
	CodeBoundDefinitionGone = &finding.Code{Name: "bound-definition-gone", Level: finding.Error, Title: "the definition of a bound type is gone",
		Meaning: "An APIBinding has bound a type whose definition is not in `system:bound-crds`: no server serves its objects here. `etcdshift cluster " +
			"import` brings definitions along.",
		Remedy: "Let kcp bind the type again.",
	}
	CodeIdentityUnbound = &finding.Code{Name: "identity-unbound", Level: finding.Info, Title: "objects of an unbound type",
		Meaning: "They are stored under the identity of an APIExport that no APIBinding of the logical cluster binds: left from a binding that is gone. No " +
			"API shows them. They are deleted with the logical cluster.",
		Remedy: "Nothing to do.",
	}
)

// What is wrong with a record that had to be read.
var (
	CodeEncrypted = &finding.Code{Name: "encrypted", Level: finding.Error, Allowed: finding.WentOn, Title: "a value cannot be decrypted",
		Meaning: "The value is encrypted, and describes a logical cluster. `cluster purge` reports a LogicalCluster or a Workspace, and with `--to-shard` " +
			"each copy that moves, which has to be encrypted for its new key; all else is deleted unread.",
		Remedy: finding.RemedyEncrypted,
		Allow: "Purges the rest. Exit status 0. Check yourself whether the logical cluster is being deleted or moved, and which Workspace leads to it. A " +
			"copy that moves cannot be allowed.",
	}
	CodeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Allowed: finding.WentOn, Title: "a value cannot be decoded",
		Meaning: "The value is no object, or not the one that its key names. `cluster purge` reports a LogicalCluster or a Workspace, which would show " +
			"whether the cluster is being deleted or moved, its owner or its children; with `--to-shard` a copy that has to move.",
		Remedy: finding.RemedyUndecodable,
		Allow:  "Purges the rest, but not a child that only this value names. Exit status 0. A copy that moves cannot be allowed.",
	}
	CodeKeyMismatch = &finding.Code{Name: "key-mismatch", Level: finding.Error, Allowed: finding.WentOn, Warns: "for records of an archive",
		Title:   "an object has another name than its key",
		Meaning: "The object has another name than its key, or its annotation `kcp.io/cluster` names another logical cluster. kcp goes by the key.",
		Remedy:  "Find out who wrote it (`etcdshift get`) before its cluster is purged or moved.",
		Allow:   "Goes by the key. Exit status 0.",
	}
)
