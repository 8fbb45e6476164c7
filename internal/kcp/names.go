package kcp

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/finding"
)

// Logical clusters of kcp itself, on each shard.
const (
	// the definitions of bound types, named by the UIDs of their schemas
	BoundCRDs   = "system:bound-crds"
	SystemCRDs  = "system:system-crds" // kcp's own definitions
	SystemShard = "system:shard"       // its LogicalCluster has the name of the shard
)

const (
	rootCluster    = "root"
	cacheServer    = "system:cache:server" // replaces the shard in the keys of the cache server's own definitions
	logicalCluster = "cluster"             // the name of the LogicalCluster in each logical cluster
)

// Annotations and labels (kcp sdk/apis/core, core/v1alpha1, apis/v1alpha2).
const (
	// of LogicalClusters and Workspaces: the shard on which the logical cluster lives
	AnnotationShard     = "core.kcp.io/shard"
	AnnotationShardHash = "internal.tenancy.kcp.io/shard" // of Workspaces: a hash of the shard's name
	AnnotationMigrating = "internal.kcp.io/migrating"     // of a LogicalCluster: its live migration
	// of any object: its logical cluster, written by kcp with an update
	AnnotationCluster = "kcp.io/cluster"
	// of a copy in a cache: the shard that wrote the copy; the cache server derives the annotation
	// from the key
	AnnotationCopied = "kcp.io/shard"
	AnnotationBound  = "apis.kcp.io/bound-crd" // on every bound definition, and only there
	LabelRegion      = "region"                // of Workspaces: the label of the Shard

	annotationPath           = "kcp.io/path"
	annotationInactive       = "core.kcp.io/inactive"
	annotationInactiveBefore = "internal.kcp.io/inactive"
	annotationSchemaCluster  = "apis.kcp.io/schema-cluster"
	annotationSchemaName     = "apis.kcp.io/schema-name"
)

// Types of kcp.
var (
	LogicalClusterType = schema.GroupResource{Group: "core.kcp.io", Resource: "logicalclusters"}
	WorkspaceType      = schema.GroupResource{Group: "tenancy.kcp.io", Resource: "workspaces"}
	BindingType        = schema.GroupResource{Group: "apis.kcp.io", Resource: "apibindings"}
	ExportType         = schema.GroupResource{Group: "apis.kcp.io", Resource: "apiexports"}
	shardType          = schema.GroupResource{Group: "core.kcp.io", Resource: "shards"}
)

// Codes of unusual properties of a logical cluster; etcdshift doctor reports them too.
var (
	CodeClusterTwice        = finding.Lookup("cluster-twice")
	CodeClusterTerminating  = finding.Lookup("cluster-terminating")
	CodeClusterMigrating    = finding.Lookup("cluster-migrating")
	CodeClusterMisnamed     = finding.Lookup("cluster-misnamed")
	CodeWorkspaceGone       = finding.Lookup("workspace-gone")
	CodeWorkspaceAstray     = finding.Lookup("workspace-astray")
	CodeBoundDefinitionGone = finding.Lookup("bound-definition-gone")
	CodeIdentityUnbound     = finding.Lookup("identity-unbound")
)

// Codes of faults in a record that had to be read.
var (
	CodeEncrypted   = finding.Lookup("encrypted").As(finding.Error, finding.WentOn)
	CodeUndecodable = finding.Lookup("undecodable").As(finding.Error, finding.WentOn)
	CodeKeyMismatch = finding.Lookup("key-mismatch")
)
