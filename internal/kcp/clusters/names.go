package clusters

import "k8s.io/apimachinery/pkg/runtime/schema"

// Logical clusters of kcp itself, which each shard has.
const (
	BoundCRDs   = "system:bound-crds"  // the definitions of types that APIBindings bind, named by the UIDs of their schemas
	SystemCRDs  = "system:system-crds" // kcp's own definitions
	SystemShard = "system:shard"       // its LogicalCluster has the name of the shard
)

const (
	rootCluster    = "root"
	cacheServer    = "system:cache:server" // for a shard: what the cache server's own definitions are under
	logicalCluster = "cluster"             // the name of a LogicalCluster, of which each logical cluster has one
)

// Annotations of LogicalClusters and Workspaces (kcp sdk/apis/core).
const (
	AnnotationShard     = "core.kcp.io/shard"         // the name of the shard that the logical cluster lives on
	AnnotationMigrating = "internal.kcp.io/migrating" // of a LogicalCluster: the live migration that has it
)

// Annotations that only reading needs (kcp sdk/apis/core, core/v1alpha1, apis/v1alpha2).
const (
	annotationPath           = "kcp.io/path"
	annotationInactive       = "core.kcp.io/inactive"
	annotationInactiveBefore = "internal.kcp.io/inactive"
	annotationSchemaCluster  = "apis.kcp.io/schema-cluster"
	annotationSchemaName     = "apis.kcp.io/schema-name"
	annotationCluster        = "kcp.io/cluster" // of any object: its logical cluster
	annotationCopied         = "kcp.io/shard"   // of a copy in a cache: the shard that it is of
	labelRegion              = "region"
)

// Types of kcp.
var (
	LogicalClusterType = schema.GroupResource{Group: "core.kcp.io", Resource: "logicalclusters"}
	WorkspaceType      = schema.GroupResource{Group: "tenancy.kcp.io", Resource: "workspaces"}
	BindingType        = schema.GroupResource{Group: "apis.kcp.io", Resource: "apibindings"}
	ExportType         = schema.GroupResource{Group: "apis.kcp.io", Resource: "apiexports"}
	shardType          = schema.GroupResource{Group: "core.kcp.io", Resource: "shards"}
)
