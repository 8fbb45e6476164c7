package keys

import "strings"

// HoldsCredentials tells whether key lies where Secrets, or OpenShift's OAuth clients and tokens, are stored, in any layout and whatever
// the value says it is: a value there that is damaged is a Secret still. What follows a folder is at least a namespace or a cluster and
// a name, so that a namespace called "secrets" is none.
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
