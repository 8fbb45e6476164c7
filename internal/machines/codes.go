package machines

import (
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
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

// Wording returns how to say how many objects have a tie: what they are, and a format that takes
// their number and the subject of the tie.
func Wording(code *finding.Code) (thing, format string) {
	w := wordings[code]
	return w[0], w[1]
}

// Worded says how many objects have a tie.
func Worded(code *finding.Code, n int, subject string) string {
	thing, format := Wording(code)
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf(format, fmt.Sprintf("%d %s", n, thing), subject)
}

var wordings = map[*finding.Code][2]string{
	CodeNodeRecords:    {"object", "%s of %s"},
	CodeNodeUser:       {"object", "%s of %s with a user system:node:NAME"},
	CodeNodePods:       {"Pod", "%s bound to a node: %s"},
	CodeNodePinned:     {"object", "%s of %s for nodes of certain names"},
	CodeNodeVolume:     {"PersistentVolume", "%s %s"},
	CodeVolumeAttached: {"VolumeAttachment", "%[1]s to the old machines"},
	CodeTokenKey:       {"Secret", "%[1]s with a token that the old API servers signed"},
	CodeNodePassword:   {"Secret", "%[1]s with the password of a node"},
	CodeAPIAddress:     {"ConfigMap", "%s with the API server %s"},
	CodeServiceAddress: {"Service", "%s with %s"},
	CodeServiceRange:   {"record", "%[2]s"},
	CodeWebhookURL:     {"object", "%s of %s with a URL or an ExternalName outside of the cluster"},
	CodeClusterCA:      {"object", "%s of %s whose caBundle is the CA of the cluster"},
}
