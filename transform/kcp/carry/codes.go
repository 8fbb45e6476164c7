package carry

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, survey.CodeUndecodable, survey.CodeWouldBePlaintext, codeClusterExists, codeUnknownIdentity,
		codeDefinitionDiffers, codeOwnerElsewhere, codeOwnerNotHealed, codeRegionUnknown, codeKeyExists,
		codeNamespaceMissing, codeLivesNowhere, clusters.CodeKeyMismatch, survey.CodeSystemCluster, survey.CodeTerminating,
		survey.CodeMissingDefinition, survey.CodeUnlistedVersion, survey.CodeUnserved,
	}
}

// codeOf is a code of another package as an import reports it.
func codeOf(c *finding.Code) *finding.Code { return finding.Named(codes(), c.Name) }

// The codes that only an import reports, and what codes of other commands mean here.
var (
	codeEncrypted = &finding.Code{Name: "encrypted", Level: finding.Error, Allowed: finding.Skipped, Title: "a value cannot be decrypted",
		Meaning: "The reason names the provider and key that encrypted it. Not allowable for a LogicalCluster or an APIBinding, which show what the cluster " +
			"needs; under another storage prefix, where nobody could decrypt it; and where the value has to change (`--fix-owner`, the mark of a live " +
			"migration).",
		Remedy: "Give the origin's configuration: `--archive-encryption-config FILE`.",
		Allow:  "The value is written as it is in the archive, under the same key. The API servers of the shard need the key that encrypted it.",
	}
	codeClusterExists = &finding.Code{Name: "cluster-exists", Level: finding.Error, Title: "the shard has keys of the logical cluster already",
		Meaning: "It lives there, or left orphans. They may lie below another storage prefix of the same file, which the reason names: another shard's " +
			"storage. `etcdshift cluster list` shows which.",
		Remedy: "Purge orphans first: `etcdshift cluster purge --orphans NAME SHARD OUT`.",
	}
	codeUnknownIdentity = &finding.Code{Name: "unknown-identity", Level: finding.Error, Allowed: finding.WentOn,
		Title: "nothing on the shard knows the identity of objects",
		Meaning: "No APIExport and no APIBinding of this shard, nor of its cache, has the identity: the export lives on a shard that this one does not " +
			"know, or in another installation of kcp. The objects would not be served. Between installations identities differ: such a cluster cannot be " +
			"moved as it is.",
		Remedy: "Give the cache, if it knows the export: `--cache FILE`.",
		Allow:  "The objects are written, unserved until a binding with that identity exists.",
	}
	codeDefinitionDiffers = &finding.Code{Name: "definition-differs", Level: finding.Error, Allowed: finding.WentOn,
		Title: "shard and archive define a type differently",
		Meaning: "It has the same UID and another spec, or the two cannot be compared: one is damaged or cannot be decrypted. Or no APIBinding of the " +
			"archive names the definition: etcdshift makes no such archive.",
		Remedy: "Compare both files with `etcdshift get`; bring the shard to the state of the origin.",
		Allow:  "The shard's definition stays; its storedVersions gains the objects' versions. A definition that no APIBinding names stays out.",
	}
	codeOwnerElsewhere = &finding.Code{Name: "owner-elsewhere", Level: finding.Error, Title: "`--fix-owner` cannot change the Workspace",
		Meaning: "It is neither in the same file nor in the archive; or it has another UID or leads to another logical cluster by now; or the " +
			"LogicalCluster does not name its owner.",
		Remedy: "Leave it out: kcp of the new shard corrects the Workspace through the front-proxy.",
	}
	codeOwnerNotHealed = &finding.Code{Name: "owner-not-healed", Level: finding.Warning, Title: "kcp will not correct the Workspace",
		Meaning: "The LogicalCluster names this shard already, so its kcp will not update the Workspace, which may name another.",
		Remedy:  "Give `--fix-owner` if the Workspace is in the same file; else change its annotation `core.kcp.io/shard`.",
	}
	codeRegionUnknown = &finding.Code{Name: "region-unknown", Level: finding.Warning, Title: "the region of the shard is not known",
		Meaning: "`--fix-owner` found no Shard object with the region of this shard; the cache server's snapshot may have it. The Workspace's label " +
			"`region` stays as it is.",
		Remedy: "Give `--cache FILE`; or change the label, if something selects by it.",
	}
	codeKeyExists = &finding.Code{Name: "key-exists", Level: finding.Error, Allowed: finding.Skipped, Title: "the key of an orphan is taken",
		Warns:   "for ConfigMaps `kube-root-ca.crt`, and `ca.crt` in Secrets with a service account token, which kcp writes itself",
		Meaning: "A record that a live migration took was written again since, with another value, and cannot be put back.",
		Remedy:  "Compare the two; decide which is to live.",
		Allow:   "The living one stays, the orphan is left out. Exit status 4.",
	}
	codeNamespaceMissing = &finding.Code{Name: "namespace-missing", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the namespace of an orphan is gone",
		Meaning: "The logical cluster no longer has the namespace: nothing would ever delete the record.",
		Remedy:  "Create the namespace, take a new snapshot.",
		Allow:   "The record is written all the same.",
	}
	codeLivesNowhere = &finding.Code{Name: "lives-nowhere", Level: finding.Warning, Title: "the logical cluster of orphans does not live here",
		Meaning: "The other shard has orphans of logical clusters that do not live on this one: they stay where they are.",
		Remedy:  "Put them back on their cluster's shard, or purge them: `etcdshift cluster purge --orphans NAME SHARD OUT`.",
	}
)
