package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/cli"
)

// TestVersion: the versions are those of go.mod. Only a test of package main has its modules in its
// build information.
func TestVersion(t *testing.T) {
	version := func(flags ...string) []byte {
		var stdout, stderr bytes.Buffer
		require.Zero(t, cli.Run(t.Context(), append([]string{"etcdshift", "version"}, flags...), nil, &stdout, &stderr),
			&stderr)
		return stdout.Bytes()
	}
	var of struct{ Go, Kubernetes, Etcd string }
	require.NoError(t, json.Unmarshal(version("-o", "json"), &of))
	require.Equal(t, runtime.Version(), of.Go)
	for path, is := range map[string]string{
		"k8s.io/api": "v0." + strings.TrimPrefix(of.Kubernetes, "v1."), "go.etcd.io/etcd/server/v3": of.Etcd,
	} {
		required, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(required)), is, path)
	}
	require.Contains(t, string(version()), "kubernetes  "+of.Kubernetes+"\n")
}
