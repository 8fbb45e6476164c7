package keys

import "strings"

// bootstrap is where k3s and RKE2 keep the cluster's certificate authorities and their private keys, encrypted with the server
// token (k3s pkg/cluster/storage.go): "/bootstrap/" and a hash of that token; once "/bootstrap" alone.
const bootstrap = "/bootstrap"

// IsBootstrap tells whether key is one of those under which k3s and RKE2 store the keys of the cluster. They are no API objects
// and lie under no storage prefix.
func IsBootstrap(key []byte) bool {
	return string(key) == bootstrap || strings.HasPrefix(string(key), bootstrap+"/")
}
