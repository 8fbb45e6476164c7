package kcp_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/verify"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// FuzzVerifyHostile: bytes of any file of a move may be anything, under a digest that is right, and
// checking ends with an answer or an error, whatever they were.
func FuzzVerifyHostile(f *testing.F) {
	m := moveOf(f, kcptest.Other, kcptest.Recorded(f, kcptest.Root), kcptest.Recorded(f, kcptest.Shard1))
	var files [][]byte
	for _, path := range []string{m.archive, m.originOut, m.destinationOut} {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		files = append(files, data)
	}
	for file := range uint8(3) {
		for at := range uint32(40) {
			f.Add(file, at*4096+at*97, uint8(1<<(at%8)), uint32(16))
		}
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint32, flip uint8, more uint32) {
		dir := t.TempDir()
		var open []*inspect.Reader
		for i, data := range files {
			if i == int(file)%len(files) {
				data = withFlipped(data, int(at), flip, int(more))
			}
			path := filepath.Join(dir, string(rune('a'+i))+".db")
			require.NoError(t, os.WriteFile(path, data, 0o600))
			s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
			if err != nil {
				return
			}
			defer func() { require.NoError(t, s.Close()) }()
			open = append(open, inspect.NewReader(s, nil))
		}
		v, err := verify.Move{Archive: open[0], OriginOut: open[1], DestinationOut: open[2]}.Verify(context.Background())
		if err == nil {
			require.Len(t, v.Answers, len(verify.Questions()))
			require.Equal(t, len(v.Findings)+len(v.Unchecked) == 0, v.Sound())
		}
	})
}

// withFlipped is a snapshot with two other bytes, and the digest of what it is now.
func withFlipped(data []byte, at int, flip uint8, more int) []byte {
	out := append([]byte{}, data...)
	image := out[:len(out)-sha256.Size]
	image[at%len(image)] ^= flip
	image[(at+more)%len(image)] ^= flip
	sum := sha256.Sum256(image)
	copy(out[len(image):], sum[:])
	return out
}
