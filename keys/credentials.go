package keys

import "strings"

// bootstrap is where k3s and RKE2 keep the certificate authorities of a cluster with their private
// keys, encrypted with the server token (k3s pkg/cluster/storage.go): "/bootstrap/" and a hash of
// the token; once "/bootstrap" alone.
const bootstrap = "/bootstrap"

// IsBootstrap reports whether k3s or RKE2 store the private keys of the cluster under key. Such
// keys are no API objects and lie below no storage prefix.
func IsBootstrap(key []byte) bool {
	return string(key) == bootstrap || strings.HasPrefix(string(key), bootstrap+"/")
}

// HoldsCredentials reports whether key lies where any layout stores Secrets, or OpenShift's OAuth
// clients and tokens, whatever its value is: a damaged Secret is a Secret. A folder is followed by
// a namespace or cluster and a name, so that a namespace called "secrets" is no folder.
func HoldsCredentials(key []byte) bool {
	segments := strings.Split(strings.Trim(string(key), "/"), "/")
	for i, s := range segments[:len(segments)-1] {
		after := len(segments) - 1 - i
		switch s {
		case "secrets":
			if i <= 1 || after >= 2 {
				return true
			}
		case "oauthclients", "oauthaccesstokens", "oauthauthorizetokens":
			return true
		case "clients", "accesstokens", "authorizetokens":
			if i > 0 && segments[i-1] == "oauth" {
				return true
			}
		}
	}
	return false
}
