package extract

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, codeUndecodable, codeMissingDefinition, codeOddName, clusters.CodeKeyMismatch, survey.CodeSystemCluster,
		survey.CodeTerminating, survey.CodeMigrating, survey.CodeUnknownKey, survey.CodeShardName, survey.CodeChildrenStay,
		survey.CodeChildElsewhere, survey.CodeOwnerUnseen,
	}
}

// codeOf is the code of a problem that reading found, as an extraction reports it.
func codeOf(p finding.Finding) *finding.Code { return finding.Named(codes(), p.Code.Name) }

// What codes of other commands mean to an extraction, and its own.
var (
	codeEncrypted = &finding.Code{Name: "encrypted", Level: finding.Error, Title: "a value cannot be decrypted",
		Warns: "for APIExports, Workspaces, and with `--with-children` LogicalClusters that may be children",
		Meaning: "It is the LogicalCluster or an APIBinding, with `--with-children` a Workspace too: without it nobody knows what the archive needs. All " +
			"other values are copied without decryption.",
		Remedy: "Give the EncryptionConfiguration of the API servers with `--encryption-config FILE`.",
	}
	codeUndecodable = &finding.Code{Name: "undecodable", Level: finding.Error, Title: "a value cannot be decoded",
		Warns:   "for all but LogicalCluster, APIBindings, and Workspaces with `--with-children`",
		Meaning: "It is an object without which nobody knows what the archive needs. Other values are taken as they are stored.",
		Remedy:  "Look at it with `etcdctl get KEY`; restore or delete it on the live cluster.",
	}
	codeMissingDefinition = &finding.Code{Name: "missing-definition", Level: finding.Warning, Title: "the shard has no definition of a bound type",
		Meaning: "An APIBinding of the cluster binds a type whose CustomResourceDefinition is not among the bound ones of the shard.",
		Remedy:  "Nothing, where the destination has it.",
	}
	codeOddName = &finding.Code{Name: "odd-name", Level: finding.Error, Title: "a name that the manifest cannot have",
		Warns: "where the manifest can leave it out: a path, an identity, a schema",
		Meaning: "It has more than 4096 bytes or characters that cannot be printed, or an identity is not 64 hexadecimal digits, or a bound type has no " +
			"UID of a schema. An error: the name of a logical cluster or a type in a key. The record itself is in the archive as it is stored.",
		Remedy: "Look at it with `etcdshift get`: no server of kcp writes such. The import may refuse what depends on it.",
	}
)
