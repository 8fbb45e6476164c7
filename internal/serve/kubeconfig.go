package serve

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Endpoint is a server in a kubeconfig.
type Endpoint struct {
	Name    string // of the context
	Address string // HOST:PORT
	*Credentials
}

// Kubeconfig returns a kubeconfig with a context for each endpoint; the first one is current.
func Kubeconfig(endpoints []Endpoint) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = endpoints[0].Name
	for _, e := range endpoints {
		config.Clusters[e.Name] = &clientcmdapi.Cluster{Server: "https://" + e.Address,
			CertificateAuthorityData: e.Certificate}
		config.AuthInfos[e.Name] = &clientcmdapi.AuthInfo{Token: e.Token}
		config.Contexts[e.Name] = &clientcmdapi.Context{Cluster: e.Name, AuthInfo: e.Name}
	}
	return clientcmd.Write(*config)
}
