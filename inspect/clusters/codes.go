package clusters

import "github.com/etcdshift/etcdshift/finding"

// What is out of the ordinary with a logical cluster; etcdshift doctor reports it too.
var (
	CodeClusterTwice = &finding.Code{Name: "cluster-twice", Level: finding.Error, Title: "a logical cluster lives twice",
		Meaning: "It lives in two storages: a move that was not finished. When both shards run, it diverges.",
		Remedy:  "Compare them (`etcdshift diff`), and purge the older one with `etcdshift cluster purge` before both shards run.",
	}
	CodeClusterTerminating = &finding.Code{Name: "cluster-terminating", Level: finding.Warning, Title: "a logical cluster is being deleted",
		Meaning: "Its LogicalCluster has a deletionTimestamp: kcp goes on deleting it after the restore.",
		Remedy:  "See which finalizers and content hold it. Do not move it.",
	}
	CodeClusterMigrating = &finding.Code{Name: "cluster-migrating", Level: finding.Warning, Title: "a live migration has a logical cluster",
		Meaning: "A part of it may be on another shard, and kcp answers no request for it.",
		Remedy:  "Wait until the migration has ended, and take a new snapshot. `etcdshift cluster import` drops the mark.",
	}
	CodeClusterMisnamed = &finding.Code{Name: "cluster-misnamed", Level: finding.Info, Title: "a logical cluster names another shard",
		Meaning: "Its LogicalCluster names another shard than this one, as after a move.",
		Remedy:  "Nothing. kcp corrects it, and its Workspace, when this shard runs.",
	}
	CodeWorkspaceGone = &finding.Code{Name: "workspace-gone", Level: finding.Warning, Title: "the Workspace of a logical cluster is gone",
		Meaning: "Its LogicalCluster belongs to a Workspace whose logical cluster is in the file, and the Workspace is not. Nobody finds it by its path.",
		Remedy:  "Make the Workspace again from a backup, or purge the logical cluster.",
	}
	CodeWorkspaceAstray = &finding.Code{Name: "workspace-astray", Level: finding.Warning, Title: "a Workspace names a shard without its logical cluster",
		Meaning: "The logical cluster was moved or lost, or its LogicalCluster is missing.",
		Remedy:  "`etcdshift cluster list` with all shards shows where it lives. Import it where it is lost, or correct the Workspace with `--fix-owner`.",
	}
	CodeBoundDefinitionGone = &finding.Code{Name: "bound-definition-gone", Level: finding.Error, Title: "the definition of a bound type is gone",
		Meaning: "An APIBinding has bound a type whose definition is not in `system:bound-crds`: no server serves its objects here.",
		Remedy:  "Let kcp bind the type again. `etcdshift cluster import` brings definitions along.",
	}
	CodeIdentityUnbound = &finding.Code{Name: "identity-unbound", Level: finding.Info, Title: "objects of a type that is not bound",
		Meaning: "They are stored under the identity of an APIExport that none of the logical cluster's APIBindings binds: left from a binding that is " +
			"gone. No API shows them.",
		Remedy: "Nothing. They are deleted with the logical cluster.",
	}
)

// What is wrong with a record that had to be read.
var (
	CodeEncrypted = &finding.Code{Name: "encrypted", Level: finding.Error, Allowed: finding.WentOn, Title: "a value cannot be decrypted",
		Meaning: "The value is encrypted, and would tell about a logical cluster. `cluster purge` reports a LogicalCluster or a Workspace, and with " +
			"`--to-shard` each copy that moves, which has to be encrypted for its new key; all else is deleted unread.",
		Remedy: "Give the EncryptionConfiguration of the API servers with `--encryption-config FILE`.",
		Allow: "Purges the rest, exit status 0. Check yourself whether the logical cluster is being deleted or moved, and which Workspace leads to it. A " +
			"copy that moves cannot be allowed.",
	}
	CodeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Allowed: finding.WentOn, Title: "a value cannot be decoded",
		Meaning: "The value is no object, or not the one its key names. `cluster purge` reports a LogicalCluster or a Workspace, which would tell whether " +
			"the cluster is being deleted or moved, its owner or its children; with `--to-shard` a copy that has to move.",
		Remedy: "Look at it with `etcdctl get KEY`; restore or delete it on the live cluster.",
		Allow:  "Purges the rest, exit status 0: a child that nothing but this value names stays. A copy that moves cannot be allowed.",
	}
	CodeKeyMismatch = &finding.Code{Name: "key-mismatch", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "an object names itself otherwise than its key",
		Warns:   "for records of an archive",
		Meaning: "The object has another name than its key, or its annotation `kcp.io/cluster` names another logical cluster. kcp goes by the key.",
		Remedy:  "Look at it with `etcdshift get`; find out who wrote it, before it is purged or moved with the cluster of its key.",
		Allow:   "Goes by the key, exit status 0.",
	}
)
