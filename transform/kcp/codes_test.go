package kcp_test

import (
	"path/filepath"
	"testing"

	"github.com/etcdshift/etcdshift/internal/codedoc"
	"github.com/etcdshift/etcdshift/transform/kcp/carry"
	"github.com/etcdshift/etcdshift/transform/kcp/extract"
	"github.com/etcdshift/etcdshift/transform/kcp/purge"
)

// TestCodes: each code is documented, and what can be allowed is what the documentation calls an error of the command.
func TestCodes(t *testing.T) {
	for command, allowed := range map[string][]string{
		"cluster purge": purge.Codes(), "cluster extract": extract.Codes(), "cluster import": carry.Codes(),
	} {
		t.Run(command, func(t *testing.T) {
			codedoc.Check(t, filepath.Join("..", "..", "docs", "problems.md"), command, allowed,
				"survey", "extract", "purge", "carry", filepath.Join("..", "..", "inspect", "clusters"))
		})
	}
}
