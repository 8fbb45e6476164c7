package storageversion

import (
	"path/filepath"
	"testing"

	"github.com/etcdshift/etcdshift/internal/codedoc"
)

// TestCodes: each code is documented, and what can be allowed is what the documentation calls an error.
func TestCodes(t *testing.T) {
	codedoc.Check(t, filepath.Join("..", "..", "docs", "problems.md"), "migrate storage-versions", Codes())
}
