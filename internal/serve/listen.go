package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"time"
)

// Credentials holds the self-signed certificate and the token of one run. Only the kubeconfig
// stores them.
type Credentials struct {
	Token       string // 130 random bits
	Certificate []byte // PEM
	tls         tls.Certificate
}

// NewCredentials returns credentials for a server at host, a name or an address.
func NewCredentials(host string) (*Credentials, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "etcdshift serve"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), // no server runs for a year
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else if host != "" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Credentials{
		Token: rand.Text(), Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		tls: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
}

// Listener adds TLS to a listener.
func (c *Credentials) Listener(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		Certificates: []tls.Certificate{c.tls}, MinVersion: tls.VersionTLS13, NextProtos: []string{"h2", "http/1.1"},
	})
}

// Run serves a listener until ctx ends. When Run returns, no request reads the snapshot.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(l)
	s.end()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
