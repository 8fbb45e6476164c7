package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"go.etcd.io/etcd/client/pkg/v3/srv"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// etcdFlags returns etcdctl 3.7's flags for reaching a cluster, with its defaults.
func etcdFlags() []cli.Flag {
	const category = "Flags of etcdctl, also as variables, such as ETCDCTL_CACERT"
	text := func(name, usage string) cli.Flag {
		return &cli.StringFlag{Name: name, Usage: usage, Category: category}
	}
	yes := func(name, usage string, value bool) cli.Flag {
		return &cli.BoolFlag{Name: name, Usage: usage, Value: value, Category: category}
	}
	span := func(name, usage string, value time.Duration) cli.Flag {
		return &cli.DurationFlag{Name: name, Usage: usage, Value: value, Category: category}
	}
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "endpoints", Category: category,
			Usage: "contact the members at `URLS`, separated by commas (default: 127.0.0.1:2379)"},
		text("cacert", "verify servers with the CA certificates in `FILE`"),
		text("cert", "identify this client with the certificate in `FILE`"),
		text("key", "use the private key in `FILE` for --cert"),
		text("user", "authenticate as `NAME:PASSWORD`; a missing password is read from the terminal"),
		text("password", "authenticate --user with `PASSWORD`"),
		text("auth-jwt-token", "authenticate with this `TOKEN`, instead of --user"),
		yes("insecure-transport", "use no TLS for endpoints without https://, if no certificate is given", true),
		yes("insecure-skip-tls-verify", "do not verify the certificates of servers", false),
		span("dial-timeout", "wait `TIME` for a connection to a member", 2*time.Second),
		span("command-timeout", "give up after `TIME`; 0 means never", 0),
		span("keepalive-time", "ping a silent server after `TIME`", 2*time.Second),
		span("keepalive-timeout", "wait `TIME` for the answer to a ping", 6*time.Second),
		&cli.StringFlag{Name: "discovery-srv", Aliases: []string{"d"},
			Usage: "find endpoints by the SRV records of `DOMAIN`", Category: category},
		text("discovery-srv-name", "find SRV records of the service `NAME`"),
		yes("insecure-discovery", "accept SRV records of endpoints without TLS", true),
	}
}

// fromEnvironment sets each absent flag of etcdctl from its variable, like etcdctl.
func fromEnvironment(c *cli.Context) error {
	for _, f := range etcdFlags() {
		name := f.Names()[0]
		variable := "ETCDCTL_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value := os.Getenv(variable)
		if c.IsSet(name) || value == "" {
			continue
		}
		if err := checkValue(commandPath(c), f, variable+"="+value); err != nil {
			return err
		}
		if err := c.Set(name, value); err != nil {
			return usagef(commandPath(c), "%s: %w", variable, err)
		}
	}
	return nil
}

// clientOf returns the configuration of the client.
func clientOf(c *cli.Context) (*clientv3.ConfigSpec, error) {
	endpoints, err := endpointsOf(c)
	if err != nil {
		return nil, err
	}
	auth, err := authOf(c)
	if err != nil {
		return nil, err
	}
	if (c.String("cert") == "") != (c.String("key") == "") {
		return nil, usagef(commandPath(c), "--cert and --key go together")
	}
	secure := &clientv3.SecureConfig{
		Cert: c.String("cert"), Key: c.String("key"), Cacert: c.String("cacert"),
		InsecureTransport: c.Bool("insecure-transport"), InsecureSkipVerify: c.Bool("insecure-skip-tls-verify"),
	}
	if !c.Bool("insecure-discovery") {
		secure.ServerName = c.String("discovery-srv")
	}
	return &clientv3.ConfigSpec{
		Endpoints: endpoints, DialTimeout: c.Duration("dial-timeout"), Secure: secure, Auth: auth,
		KeepAliveTime: c.Duration("keepalive-time"), KeepAliveTimeout: c.Duration("keepalive-timeout"),
	}, nil
}

// endpointsOf returns the endpoints of --endpoints, or of the SRV records of a domain.
func endpointsOf(c *cli.Context) (endpoints []string, err error) {
	domain := c.String("discovery-srv")
	if domain == "" {
		for _, given := range c.StringSlice("endpoints") {
			for endpoint := range strings.SplitSeq(given, ",") {
				if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
					endpoints = append(endpoints, endpoint)
				}
			}
		}
		if c.IsSet("endpoints") && endpoints == nil {
			return nil, usagef(commandPath(c), "--endpoints has no endpoint")
		}
		if endpoints == nil {
			endpoints = []string{"127.0.0.1:2379"}
		}
		return endpoints, nil
	}
	found, err := srv.GetClient("etcd-client", domain, c.String("discovery-srv-name"))
	if err != nil {
		return nil, fmt.Errorf("--discovery-srv %s: %w", domain, err)
	}
	for _, endpoint := range found.Endpoints {
		if c.Bool("insecure-discovery") || !strings.HasPrefix(endpoint, "http://") {
			endpoints = append(endpoints, endpoint)
		} else {
			warn(c, endpoint+" is not asked: --insecure-discovery=false leaves out endpoints without TLS")
		}
	}
	if endpoints == nil {
		return nil, fmt.Errorf("--discovery-srv %s: no endpoint was found", domain)
	}
	return endpoints, nil
}

// authOf returns the credentials; nil without any.
func authOf(c *cli.Context) (*clientv3.AuthConfig, error) {
	user, password, token := c.String("user"), c.String("password"), c.String("auth-jwt-token")
	switch {
	case token != "":
		return &clientv3.AuthConfig{Token: token}, nil
	case user == "":
		return nil, nil
	case password == "":
		name, given, has := strings.Cut(user, ":")
		if user, password = name, given; !has {
			var err error
			if password, err = askPassword(c); err != nil {
				return nil, err
			}
		}
	}
	if user == "" || password == "" {
		return nil, usagef(commandPath(c), "--user takes a name and a password")
	}
	return &clientv3.AuthConfig{Username: user, Password: password}, nil
}

// askPassword asks for the password of --user.
func askPassword(c *cli.Context) (string, error) {
	password, err := askHidden(c, "Password: ")
	if errors.Is(err, errNoTerminal) {
		err = usagef(commandPath(c), "--user has no password, and %w", err)
		err = &failure{exitUsage, err, "give it as NAME:PASSWORD in ETCDCTL_USER, or in ETCDCTL_PASSWORD: other " +
			"users can see the flags of a process"}
	}
	return password, err
}
