package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestComparingFails: an interrupted or unprintable comparison is neither "no difference" nor
// "differences".
func TestComparingFails(t *testing.T) {
	dir := t.TempDir()
	old, new := recordedFile(t, dir, "calico/before.db", "old.db"), recordedFile(t, dir, "etcd/etcd-3.7.db", "new.db")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for line, status := range map[string]int{"diff OLD NEW": exitCannotCheck, "history NEW cm/updated": exitFailed} {
		for _, format := range []string{"text", "json", "jsonl"} {
			args := strings.Fields(strings.NewReplacer("OLD", old, "NEW", new).Replace(line) + " -o " + format)
			var stderr bytes.Buffer
			require.Equal(t, status, Run(context.Background(), append([]string{"etcdshift"}, args...), nil,
				broken{}, &stderr), args)
			require.Contains(t, stderr.String(), "no pipe", args)
			interrupted, _, _ := runWithin(ended, args...)
			require.Equal(t, exitInterrupted, interrupted, args)
		}
	}
}
