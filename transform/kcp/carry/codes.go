package carry

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, codeUndecodable, codeWouldBePlaintext, codeClusterExists, codeUnknownIdentity,
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
		Meaning: "The reason names the provider and key that encrypted it. Not allowable for a LogicalCluster or an APIBinding, which tell what the " +
			"cluster needs; under another storage prefix, where nobody could decrypt it; and where the value has to be changed (`--fix-owner`, the mark of " +
			"a live migration).",
		Remedy: "Give the configuration of the origin with `--archive-encryption-config FILE`.",
		Allow:  "The value is written as it is stored in the archive, under the same key. The API servers of the shard need the key that encrypted it.",
	}
	codeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Title: "a value cannot be decoded",
		Warns:   "for all but LogicalClusters and APIBindings",
		Meaning: "It is a LogicalCluster or an APIBinding, which tell what the logical cluster needs. Other values are written as they are stored.",
		Remedy:  "Look at it with `etcdshift get` on the archive; restore or delete it on the origin, and extract again.",
	}
	codeWouldBePlaintext = &finding.Code{Name: "would-be-plaintext", Level: finding.Error, Title: "an encrypted value would be stored in the clear",
		Meaning: "The value is encrypted in the archive, and `--encryption-config` does not encrypt its resource. Or it is in the clear, and the shard has " +
			"encrypted values of its type, none of which can be decrypted: no configuration says how its servers write them.",
		Remedy: "Give the configuration of the shard with `--encryption-config FILE`; it has to name a provider that encrypts first.",
	}
	codeClusterExists = &finding.Code{Name: "cluster-exists", Level: finding.Error, Title: "the shard has keys of the logical cluster already",
		Meaning: "It lives there, or left orphans. They may lie below another storage prefix of the same file, which the reason names: that is another " +
			"shard's storage.",
		Remedy: "`etcdshift cluster list` shows which. Orphans: `etcdshift cluster purge --orphans NAME` first.",
	}
	codeUnknownIdentity = &finding.Code{Name: "unknown-identity", Level: finding.Error, Allowed: finding.WentOn,
		Title: "nothing on the shard knows the identity of objects",
		Meaning: "No APIExport and no APIBinding of this shard, nor of its cache, has the identity: the export lives on a shard that this one does not " +
			"know, or in another installation of kcp. The objects would not be served.",
		Remedy: "Give the cache with `--cache FILE`, if the export is known there. Between installations identities differ: such a cluster cannot be moved " +
			"as it is.",
		Allow: "The objects are written; nobody serves them until a binding with that identity is there.",
	}
	codeDefinitionDiffers = &finding.Code{Name: "definition-differs", Level: finding.Error, Allowed: finding.WentOn,
		Title: "the shard's definition of a type differs from the archive's",
		Meaning: "It has the same UID and another spec, or the two cannot be compared: one is damaged or cannot be decrypted. Or no APIBinding of the " +
			"archive names the definition: etcdshift makes no such archive.",
		Remedy: "Compare the two: `etcdshift get` on both files. Bring the shard to the same state as the origin.",
		Allow: "The shard's definition stays; the versions of the archive's objects enter its storedVersions. A definition that no APIBinding names stays " +
			"out.",
	}
	codeOwnerElsewhere = &finding.Code{Name: "owner-elsewhere", Level: finding.Error, Title: "`--fix-owner` cannot change the Workspace",
		Meaning: "It is neither in the same file nor in the archive; or it has another UID or leads to another logical cluster by now; or the " +
			"LogicalCluster does not tell its owner.",
		Remedy: "Leave `--fix-owner` out: kcp of the new shard changes the Workspace through the front-proxy, once it runs.",
	}
	codeOwnerNotHealed = &finding.Code{Name: "owner-not-healed", Level: finding.Warning, Title: "kcp will not correct the Workspace",
		Meaning: "The LogicalCluster names this shard already, so its kcp will not update the Workspace, which may name another.",
		Remedy:  "`--fix-owner`, where the Workspace is in the same file; else change its annotation `core.kcp.io/shard` by hand.",
	}
	codeRegionUnknown = &finding.Code{Name: "region-unknown", Level: finding.Warning, Title: "the region of the shard is not known",
		Meaning: "`--fix-owner` found no Shard object with the region of this shard: the Workspace's label `region` stays as it is.",
		Remedy:  "Give the cache server's snapshot with `--cache FILE`; or change the label by hand, if something selects by it.",
	}
	codeKeyExists = &finding.Code{Name: "key-exists", Level: finding.Error, Allowed: finding.Skipped, Title: "the key of an orphan is taken",
		Warns:   "for ConfigMaps `kube-root-ca.crt`, and `ca.crt` in Secrets with a service account token, which kcp writes itself",
		Meaning: "The records that a live migration took are to be put back, and one was written again in the meantime, with another value.",
		Remedy:  "Compare the two; decide which is to live.",
		Allow:   "The living one stays, the orphan is left out: exit status 4.",
	}
	codeNamespaceMissing = &finding.Code{Name: "namespace-missing", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the namespace of an orphan is gone",
		Meaning: "The namespace does not exist in the logical cluster any more: nobody would clean up after the record.",
		Remedy:  "Create the namespace, take a new snapshot.",
		Allow:   "The record is written all the same.",
	}
	codeLivesNowhere = &finding.Code{Name: "lives-nowhere", Level: finding.Warning, Title: "orphans whose logical cluster does not live here",
		Meaning: "The other shard has orphans of logical clusters that do not live on this one: they stay where they are.",
		Remedy:  "Put them back on the shard where their cluster lives, or purge them there: `etcdshift cluster purge --orphans NAME`.",
	}
)
