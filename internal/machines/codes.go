package machines

import (
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/phrase"
)

// Codes returns the codes of a restore on other machines.
func Codes() []*finding.Code {
	return []*finding.Code{
		CodeOldNodes, CodeNodeRecords, CodeNodeUser, CodeNodePods, CodeNodePinned,
		CodeNodeVolume, CodeVolumeAttached, CodeTokenKey, CodeNodePassword, CodeAPIAddress,
		CodeServiceAddress, CodeServiceRange, CodeWebhookURL, CodeClusterCA, CodeNotInFile,
	}
}

// Findings of Options.NewMachines.
var (
	CodeOldNodes       = finding.Lookup("old-nodes")
	CodeNodeRecords    = finding.Lookup("node-records")
	CodeNodeUser       = finding.Lookup("node-user")
	CodeNodePods       = finding.Lookup("node-bound-pods")
	CodeNodePinned     = finding.Lookup("node-pinned")
	CodeNodeVolume     = finding.Lookup("node-bound-volume")
	CodeVolumeAttached = finding.Lookup("volume-attached")
	CodeTokenKey       = finding.Lookup("token-key")
	CodeNodePassword   = finding.Lookup("node-password")
	CodeAPIAddress     = finding.Lookup("api-address")
	CodeServiceAddress = finding.Lookup("service-address")
	CodeServiceRange   = finding.Lookup("service-range")
	CodeWebhookURL     = finding.Lookup("webhook-url")
	CodeClusterCA      = finding.Lookup("cluster-ca")
	CodeNotInFile      = finding.Lookup("not-in-file")
)

// Wording returns the noun for objects tied to the old machines, and a format for the counted noun
// and the subject of the tie.
func Wording(code *finding.Code) (thing, format string) {
	switch code {
	case CodeNodeRecords:
		return "object", "%s of %s"
	case CodeNodeUser:
		return "object", "%s of %s with a user system:node:NAME"
	case CodeNodePods:
		return "Pod", "%s bound to a node: %s"
	case CodeNodePinned:
		return "object", "%s of %s for nodes of certain names"
	case CodeNodeVolume:
		return "PersistentVolume", "%s %s"
	case CodeVolumeAttached:
		return "VolumeAttachment", "%[1]s to the old machines"
	case CodeTokenKey:
		return "Secret", "%[1]s with a token that the old API servers signed"
	case CodeNodePassword:
		return "Secret", "%[1]s with the password of a node"
	case CodeAPIAddress:
		return "ConfigMap", "%s with the API server %s"
	case CodeServiceAddress:
		return "Service", "%s with %s"
	case CodeServiceRange:
		return "record", "%[2]s"
	case CodeWebhookURL:
		return "object", "%s of %s with a URL or an ExternalName outside of the cluster"
	}
	return "object", "%s of %s whose caBundle is the CA of the cluster" // CodeClusterCA
}

// Worded returns the text about n objects tied to the old machines, such as "2 Services with ...".
func Worded(code *finding.Code, n int, subject string) string {
	thing, format := Wording(code)
	return fmt.Sprintf(format, phrase.Count(n, thing), subject)
}
