package extract

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, survey.CodeUndecodable, codeMissingDefinition, codeOddName, clusters.CodeKeyMismatch, survey.CodeSystemCluster,
		survey.CodeTerminating, survey.CodeMigrating, finding.UnknownKey, survey.CodeShardName, survey.CodeChildrenStay,
		survey.CodeChildElsewhere, survey.CodeOwnerUnseen, codeKeysUnderPath,
	}
}

// codeOf is the code of a problem that reading found, as an extraction reports it.
func codeOf(p finding.Finding) *finding.Code { return finding.Named(codes(), p.Code.Name) }

// What codes of other commands mean to an extraction, and its own.
var (
	codeEncrypted = &finding.Code{Name: "encrypted", Level: finding.Error, Title: "a value cannot be decrypted",
		Warns: "for APIExports, Workspaces, and with `--with-children` LogicalClusters that may be children",
		Meaning: "It is the LogicalCluster or an APIBinding, or with `--with-children` a Workspace: they show what the archive needs. All other values are " +
			"copied without decryption.",
		Remedy: finding.RemedyEncrypted,
	}
	codeMissingDefinition = transform.WarningCode("missing-definition", "the shard has no definition of a bound type",
		"An APIBinding of the cluster binds a type whose CustomResourceDefinition is not among the bound ones of the shard.",
		"Nothing, if the destination has it.")
	codeKeysUnderPath = &finding.Code{Name: "keys-under-path", Level: finding.Error, Allowed: finding.WentOn,
		Title: "keys of the logical cluster lie under its path",
		Meaning: "An early kcp stored them under `root:org:team` in place of the name of the logical cluster. No API shows them. The archive does not have " +
			"them, and a purge of the logical cluster deletes them.",
		Remedy: "Put them under the name first: `etcdshift cluster import --orphans-from SHARD SHARD OUT`, then extract from OUT; or purge them with " +
			"`--orphans`.",
		Allow: "The archive goes without them.",
	}
	codeOddName = &finding.Code{Name: "odd-name", Level: finding.Error, Title: "a name that the manifest cannot have",
		Warns: "where the manifest can leave it out: a path, an identity, a schema",
		Meaning: "It has more than 4096 bytes or unprintable characters, or an identity is not 64 hexadecimal digits, or a bound type has no UID of a " +
			"schema. An error: the name of a logical cluster or a type in a key. kcp writes no such name. The record is in the archive as it is stored; the " +
			"import may refuse what depends on it.",
		Remedy: "Look at it with `etcdshift get`.",
	}
)
