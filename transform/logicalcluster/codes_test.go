package logicalcluster

import (
	"path/filepath"
	"testing"

	"github.com/etcdshift/etcdshift/internal/codedoc"
)

// TestCodes: each code is documented, and what can be allowed is what the documentation calls an error of the command.
func TestCodes(t *testing.T) {
	for command, allowed := range map[string][]string{
		"cluster purge": PurgeCodes(), "cluster extract": ExtractCodes(), "cluster import": ImportCodes(),
	} {
		t.Run(command, func(t *testing.T) {
			codedoc.Check(t, filepath.Join("..", "..", "docs", "problems.md"), command, allowed)
		})
	}
}
