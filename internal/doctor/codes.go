package doctor

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// Codes returns all codes of findings, by subject.
func Codes() []*finding.Code {
	return append(machines.Codes(), []*finding.Code{
		CodeDamaged, codeNoLiveKey, codeNoDigest, codeBumpRevision, codeOverQuota, codeNearQuota, codeAlarmNoSpace, codeAlarmCorrupt, codeEtcdTooOld,
		codeEtcdVersion, codeForeignKeys, codeStrayKeys, codeLayoutUnchecked, finding.Undecodable, codeBadMetadata, codeUnknownKind, codeKeyMismatch,
		codeDuplicateUID, codeTooLarge, codeNearLimit, codeLeaseGone, codeNamespaceGone, finding.Encrypted, codeEncryptionKeys, codeMixedEncryption,
		codeCRDUnreadable, codeVersionUnlisted, codeListInvalid, codeListLacks, codeListNeeded, codeListExtra, codeManagedVersion,
		CodeUpdateRefused, CodeApplyRefused, codeHiddenField, codeOrphans, codeCRDTerminating, codeConversionGone, codeConversionNeeded, codeConversion,
		codeOwnerGone, codeOwnerUnresolvable, codeOwnerNamespaced, codeOwnerUnchecked, codeNamespaceTerminating, codeDeletingVolume, codeDeleting,
		codeWebhookServiceGone,
		codeWebhookDeadlock, codeWebhookCore, codeWebhookEndpoints, codeAPIServiceGone, codeAPIServiceEndpoints, codeAPIServiceUnavailable,
		codeCalicoEmpty, codeCalicoMigrating, codeCalicoLocked,
		codeMasterLease, codeMasterUnlisted, codeMemberRemoval, codeAddressTwice, codeAddressLeft,
		codeNodeSilent, codeTokenWithoutUse, codeShardPartial, codeShardTwice, clusters.CodeClusterTwice,
		codeClusterOrphans, codeStaleCopies, codeClusterMismatch, clusters.CodeClusterTerminating, clusters.CodeClusterMigrating,
		clusters.CodeClusterMisnamed, clusters.CodeWorkspaceGone, clusters.CodeWorkspaceAstray, clusters.CodeBoundDefinitionGone,
		clusters.CodeIdentityUnbound,
	}...)
}

var (
	// About the file.
	CodeDamaged         = finding.Lookup("damaged")
	codeNoLiveKey       = finding.Lookup("no-live-key")
	codeNoDigest        = finding.Lookup("no-digest")
	codeBumpRevision    = finding.Lookup("bump-revision")
	codeOverQuota       = finding.Lookup("over-quota")
	codeNearQuota       = finding.Lookup("near-quota")
	codeAlarmNoSpace    = finding.Lookup("alarm-nospace")
	codeAlarmCorrupt    = finding.Lookup("alarm-corrupt")
	codeEtcdTooOld      = finding.Lookup("etcd-too-old")
	codeEtcdVersion     = finding.Lookup("etcd-version")
	codeForeignKeys     = finding.Lookup("foreign-keys")
	codeStrayKeys       = finding.Lookup("stray-keys")
	codeLayoutUnchecked = finding.Lookup("layout-unchecked")

	// About records.
	codeBadMetadata   = finding.Lookup("metadata-dropped")
	codeUnknownKind   = finding.Lookup("unknown-kind")
	codeKeyMismatch   = finding.Lookup("key-mismatch")
	codeDuplicateUID  = finding.Lookup("duplicate-uid")
	codeTooLarge      = finding.Lookup("value-too-large")
	codeNearLimit     = finding.Lookup("value-near-limit")
	codeLeaseGone     = finding.Lookup("lease-gone")
	codeNamespaceGone = finding.Lookup("namespace-gone")

	// About encryption at rest.
	codeEncryptionKeys  = finding.Lookup("encryption-keys")
	codeMixedEncryption = finding.Lookup("mixed-encryption")

	// About custom resources.
	codeCRDUnreadable    = finding.Lookup("crd-unreadable")
	codeVersionUnlisted  = finding.Lookup("version-not-listed")
	codeListInvalid      = finding.Lookup("stored-versions-invalid")
	codeListLacks        = finding.Lookup("stored-versions-lack")
	codeListNeeded       = finding.Lookup("stored-versions-needed")
	codeListExtra        = finding.Lookup("stored-versions-extra")
	codeManagedVersion   = finding.Lookup("managed-fields-version")
	CodeUpdateRefused    = finding.Lookup("update-refused")
	CodeApplyRefused     = finding.Lookup("apply-refused")
	codeHiddenField      = finding.Lookup("hidden-field")
	codeOrphans          = finding.Lookup("orphans")
	codeCRDTerminating   = finding.Lookup("crd-terminating")
	codeConversionGone   = finding.Lookup("conversion-service-gone")
	codeConversionNeeded = finding.Lookup("conversion-needed")
	codeConversion       = finding.Lookup("conversion-webhook")

	// About owners and namespaces.
	codeOwnerGone            = finding.Lookup("owner-gone")
	codeOwnerUnresolvable    = finding.Lookup("owner-unresolvable")
	codeOwnerNamespaced      = finding.Lookup("owner-namespaced")
	codeOwnerUnchecked       = finding.Lookup("owner-unchecked")
	codeNamespaceTerminating = finding.Lookup("namespace-terminating")
	codeDeletingVolume       = finding.Lookup("deleting-volume")
	codeDeleting             = finding.Lookup("deleting")

	// About webhooks and aggregated API servers.
	codeWebhookServiceGone    = finding.Lookup("webhook-service-gone")
	codeWebhookDeadlock       = finding.Lookup("webhook-deadlock")
	codeWebhookCore           = finding.Lookup("webhook-blocks-core")
	codeWebhookEndpoints      = finding.Lookup("webhook-no-endpoints")
	codeAPIServiceGone        = finding.Lookup("apiservice-service-gone")
	codeAPIServiceEndpoints   = finding.Lookup("apiservice-no-endpoints")
	codeAPIServiceUnavailable = finding.Lookup("apiservice-unavailable")
	codeCalicoEmpty           = finding.Lookup("calico-v3-empty")
	codeCalicoMigrating       = finding.Lookup("calico-migrating")
	codeCalicoLocked          = finding.Lookup("calico-locked")

	// About the control plane.
	codeMasterLease     = finding.Lookup("masterlease-stale")
	codeMasterUnlisted  = finding.Lookup("masterlease-unlisted")
	codeMemberRemoval   = finding.Lookup("member-removal")
	codeAddressTwice    = finding.Lookup("address-twice")
	codeAddressLeft     = finding.Lookup("address-left")
	codeNodeSilent      = finding.Lookup("node-silent")
	codeTokenWithoutUse = finding.Lookup("token-without-serviceaccount")

	// About logical clusters of kcp: as "kcp list" finds them in this one file.
	codeShardPartial    = finding.Lookup("shard-partial")
	codeShardTwice      = finding.Lookup("shard-twice")
	codeClusterOrphans  = finding.Lookup("cluster-orphans")
	codeStaleCopies     = finding.Lookup("stale-copies")
	codeClusterMismatch = finding.Lookup("cluster-mismatch")
)
