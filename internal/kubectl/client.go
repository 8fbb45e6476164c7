package kubectl

import (
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// address is the server address in requests; it is never resolved.
const address = "http://localhost"

// client creates clients of the server. It is a genericclioptions.RESTClientGetter that reads no
// kubeconfig.
type client struct {
	namespace, timeout string                   // from the flags
	user               rest.ImpersonationConfig // the user to check rights for, from the flags
	transport          http.RoundTripper
	warnings           rest.WarningHandler
	discovery          func() (discovery.CachedDiscoveryInterface, error) // created once
	mapper             func() (meta.RESTMapper, error)                    // created once, for all objects
}

func newClient(transport http.RoundTripper, warnings rest.WarningHandler) *client {
	c := &client{timeout: "0", transport: transport, warnings: warnings}
	c.discovery = sync.OnceValues(func() (discovery.CachedDiscoveryInterface, error) {
		config, err := c.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		d, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return nil, err
		}
		d.UseLegacyDiscovery = true // client-go reorders the groups of an aggregated answer randomly
		return memory.NewMemCacheClient(d), nil
	})
	c.mapper = sync.OnceValues(func() (meta.RESTMapper, error) {
		d, err := c.ToDiscoveryClient()
		if err != nil {
			return nil, err
		}
		warn := func(text string) { c.warnings.HandleWarningHeader(299, "", text) }
		return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(d), d, warn), nil
	})
	return c
}

// ToRESTConfig returns the configuration of clients. The server is in this process and needs no
// rate limit. Answers are JSON, which lines can modify.
func (c *client) ToRESTConfig() (*rest.Config, error) {
	timeout, err := clientcmd.ParseTimeout(c.timeout)
	return &rest.Config{Host: address, Timeout: timeout, WarningHandler: c.warnings, Transport: c.transport, QPS: -1,
		Impersonate: c.user, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, err
}

// ToDiscoveryClient returns a discovery client that keeps answers in memory.
func (c *client) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return c.discovery()
}

// ToRESTMapper returns a mapper from words such as "po" to resources.
func (c *client) ToRESTMapper() (meta.RESTMapper, error) { return c.mapper() }

// ToRawKubeConfigLoader returns a kubeconfig in memory, the source of the namespace for commands.
func (c *client) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	const name = "snapshot"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: address}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	config.CurrentContext = name
	return clientcmd.NewDefaultClientConfig(*config,
		&clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: c.namespace}})
}
