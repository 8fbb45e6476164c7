package carry

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
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
	codeEncrypted = transform.ErrorCode("encrypted", "a value cannot be decrypted",
		"The reason names the provider and key that encrypted it. Not allowable for a LogicalCluster or an APIBinding, which show what the cluster "+
			"needs; under another storage prefix, where nobody could decrypt it; and where the value has to change (`--fix-owner`, the mark of a live "+
			"migration).",
		"Give the origin's configuration: `--archive-encryption-config FILE`.",
		"The value is written as it is in the archive, under the same key. The API servers of the shard need the key that encrypted it.")
	codeClusterExists = transform.ErrorCode("cluster-exists", "the shard has keys of the logical cluster already",
		"It lives there, or left orphans. They may lie below another storage prefix of the same file, which the reason names: another shard's "+
			"storage. `etcdshift cluster list` shows which.",
		"Purge orphans first: `etcdshift cluster purge --orphans NAME SHARD OUT`.", "")
	codeUnknownIdentity = survey.ErrorCode("unknown-identity", "nothing on the shard knows the identity of objects",
		"No APIExport and no APIBinding of this shard, nor of its cache, has the identity: the export lives on a shard that this one does not "+
			"know, or in another installation of kcp. The objects would not be served. Between installations identities differ: such a cluster cannot be "+
			"moved as it is.",
		"Give the cache, if it knows the export: `--cache FILE`.",
		"The objects are written, unserved until a binding with that identity exists.")
	codeDefinitionDiffers = survey.ErrorCode("definition-differs", "shard and archive define a type differently",
		"It has the same UID and another spec, or the two cannot be compared: one is damaged or cannot be decrypted. Or no APIBinding of the "+
			"archive names the definition: etcdshift makes no such archive.",
		"Compare both files with `etcdshift get`; bring the shard to the state of the origin.",
		"The shard's definition stays; its storedVersions gains the objects' versions. A definition that no APIBinding names stays out.")
	codeOwnerElsewhere = transform.ErrorCode("owner-elsewhere", "`--fix-owner` cannot change the Workspace",
		"It is neither in the same file nor in the archive; or it has another UID or leads to another logical cluster by now; or the "+
			"LogicalCluster does not name its owner.",
		"Leave it out: kcp of the new shard corrects the Workspace through the front-proxy.", "")
	codeOwnerNotHealed = transform.WarningCode("owner-not-healed", "kcp will not correct the Workspace",
		"The LogicalCluster names this shard already, so its kcp will not update the Workspace, which may name another.",
		"Give `--fix-owner` if the Workspace is in the same file; else change its annotation `core.kcp.io/shard`.")
	codeRegionUnknown = transform.WarningCode("region-unknown", "the region of the shard is not known",
		"`--fix-owner` found no Shard object with the region of this shard; the cache server's snapshot may have it. The Workspace's label "+
			"`region` stays as it is.",
		"Give `--cache FILE`; or change the label, if something selects by it.")
	codeKeyExists = &finding.Code{Name: "key-exists", Level: finding.Error, Allowed: finding.Skipped, Title: "the key of an orphan is taken",
		Warns:   "for ConfigMaps `kube-root-ca.crt`, and `ca.crt` in Secrets with a service account token, which kcp writes itself",
		Meaning: "A record that a live migration took was written again since, with another value, and cannot be put back.",
		Remedy:  "Compare the two; decide which is to live.",
		Allow:   "The living one stays, the orphan is left out. Exit status 4.",
	}
	codeNamespaceMissing = survey.ErrorCode("namespace-missing", "the namespace of an orphan is gone",
		"The logical cluster no longer has the namespace: nothing would ever delete the record.",
		"Create the namespace, take a new snapshot.",
		"The record is written all the same.")
	codeLivesNowhere = transform.WarningCode("lives-nowhere", "the logical cluster of orphans does not live here",
		"The other shard has orphans of logical clusters that do not live on this one: they stay where they are.",
		"Put them back on their cluster's shard, or purge them: `etcdshift cluster purge --orphans NAME SHARD OUT`.")
)
