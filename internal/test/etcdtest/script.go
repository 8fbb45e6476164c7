package etcdtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Build runs the script (see the package) on a new etcd and returns the path of its snapshot.
func Build(t testing.TB, script string) (path string) {
	t.Helper()
	dir := t.TempDir()
	s := Start(t, filepath.Join(dir, "build.etcd"))
	defer s.Stop()
	Run(t, s, script)
	path = filepath.Join(dir, "built.db")
	Save(t, s, path)
	return path
}

// Run runs the script on a server.
func Run(t testing.TB, s *Server, script string) {
	t.Helper()
	require.NoError(t, run(context.Background(), s.Client, script))
}

// Blob returns the deterministic value of n bytes for "put KEY size=N", different for each key.
func Blob(key string, n int) []byte {
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(key))).Read(out)
	return out
}

func run(ctx context.Context, c *clientv3.Client, script string) error {
	var txn []clientv3.Op
	inTxn := false
	for i, line := range strings.Split(script, "\n") {
		words, err := splitWords(line)
		if err == nil && len(words) > 0 {
			switch {
			case inTxn && words[0] == "}":
				_, err = c.Txn(ctx).Then(txn...).Commit()
				txn, inTxn = nil, false
			case inTxn:
				var op clientv3.Op
				op, err = parseOp(words)
				txn = append(txn, op)
			case words[0] == "txn" && len(words) == 2 && words[1] == "{":
				inTxn = true
			default:
				err = runCommand(ctx, c, words)
			}
		}
		if err != nil {
			return fmt.Errorf("script line %d %q: %w", i+1, line, err)
		}
	}
	if inTxn {
		return fmt.Errorf("script: txn without }")
	}
	return nil
}

func runCommand(ctx context.Context, c *clientv3.Client, words []string) error {
	switch words[0] {
	case "grant":
		return grant(ctx, c, words[1:])
	case "compact":
		return compact(ctx, c, words[1:])
	}
	op, err := parseOp(words)
	if err == nil {
		_, err = c.Do(ctx, op)
	}
	return err
}

// parseOp returns the operation of put, del and delprefix.
func parseOp(words []string) (clientv3.Op, error) {
	args := words[1:]
	switch {
	case words[0] == "del" && len(args) == 1:
		return clientv3.OpDelete(args[0]), nil
	case words[0] == "delprefix" && len(args) == 1:
		return clientv3.OpDelete(args[0], clientv3.WithPrefix()), nil
	case words[0] == "put" && len(args) >= 2 && len(args) <= 3:
		value, err := putValue(args[0], args[1])
		if err != nil {
			return clientv3.Op{}, err
		}
		if len(args) == 2 {
			return clientv3.OpPut(args[0], value), nil
		}
		id, err := strconv.ParseInt(strings.TrimPrefix(args[2], "lease="), 10, 64)
		return clientv3.OpPut(args[0], value, clientv3.WithLease(clientv3.LeaseID(id))), err
	}
	return clientv3.Op{}, fmt.Errorf("unknown command or wrong number of words")
}

func putValue(key, word string) (string, error) {
	if size, ok := strings.CutPrefix(word, "size="); ok {
		n, err := strconv.Atoi(size)
		return string(Blob(key, n)), err
	}
	return word, nil
}

// grant calls the server itself: clientv3.Lease.Grant cannot choose the ID.
func grant(ctx context.Context, c *clientv3.Client, args []string) error {
	numbers, err := ints(args)
	if err != nil || len(numbers) != 2 {
		return cmp.Or(err, errors.New("grant takes two numbers"))
	}
	_, err = clientv3.RetryLeaseClient(c).LeaseGrant(ctx,
		&etcdserverpb.LeaseGrantRequest{ID: numbers[0], TTL: numbers[1]})
	return err
}

func compact(ctx context.Context, c *clientv3.Client, args []string) error {
	revs, err := ints(args)
	if err != nil || len(revs) > 1 {
		return cmp.Or(err, errors.New("compact takes at most one revision"))
	}
	if len(revs) == 0 {
		r, err := c.Get(ctx, "\x00", clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		revs = []int64{r.Header.Revision}
	}
	_, err = c.Compact(ctx, revs[0], clientv3.WithCompactPhysical())
	return err
}

func ints(args []string) (numbers []int64, err error) {
	for _, arg := range args {
		n, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// splitWords splits a line into bare and quoted words; a # at the start of a word ends the line.
func splitWords(line string) ([]string, error) {
	var words []string
	for {
		line = strings.TrimLeft(line, " \t\r")
		switch {
		case line == "" || line[0] == '#':
			return words, nil
		case line[0] == '"' || line[0] == '`':
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, err
			}
			word, _ := strconv.Unquote(quoted) // checked by QuotedPrefix
			words, line = append(words, word), line[len(quoted):]
		default:
			word := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r", r) })[0]
			words, line = append(words, word), line[len(word):]
		}
	}
}
