package etcdtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Build runs the script (see the package documentation) on a new etcd, saves
// its snapshot and returns the file's path.
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

// Run runs the script on a server, for instance on a restored recording that
// lacks something.
func Run(t testing.TB, s *Server, script string) {
	t.Helper()
	require.NoError(t, run(context.Background(), s.Client, script))
}

// Blob is the deterministic value of n bytes that "put KEY size=N" stores. It
// differs between keys and holds every byte value.
func Blob(key string, n int) []byte {
	state := uint64(14695981039346656037) // FNV-1a over the key seeds a xorshift
	for _, c := range []byte(key) {
		state = (state ^ uint64(c)) * 1099511628211
	}
	out := make([]byte, n)
	for i := range out {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		out[i] = byte(state >> 32)
	}
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
		id, ttl, err := twoInts(words)
		if err != nil {
			return err
		}
		return grant(ctx, c, id, ttl)
	case "compact":
		return compact(ctx, c, words[1:])
	}
	op, err := parseOp(words)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, op)
	return err
}

// parseOp turns put, putfile, del and delprefix into the operation they stand
// for.
func parseOp(words []string) (clientv3.Op, error) {
	args := words[1:]
	switch {
	case words[0] == "del" && len(args) == 1:
		return clientv3.OpDelete(args[0]), nil
	case words[0] == "delprefix" && len(args) == 1:
		return clientv3.OpDelete(args[0], clientv3.WithPrefix()), nil
	case (words[0] == "put" || words[0] == "putfile") && len(args) >= 2 && len(args) <= 3:
		value, err := putValue(words[0], args[0], args[1])
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

func putValue(command, key, word string) (string, error) {
	if command == "putfile" {
		data, err := os.ReadFile(word)
		return string(data), err
	}
	if size, ok := strings.CutPrefix(word, "size="); ok {
		n, err := strconv.Atoi(size)
		return string(Blob(key, n)), err
	}
	return word, nil
}

// grant goes around clientv3.Lease.Grant, which cannot choose the ID.
func grant(ctx context.Context, c *clientv3.Client, id, ttl int64) error {
	_, err := clientv3.RetryLeaseClient(c).LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{ID: id, TTL: ttl})
	return err
}

func compact(ctx context.Context, c *clientv3.Client, args []string) error {
	var rev int64
	var err error
	switch len(args) {
	case 0:
		var r *clientv3.GetResponse
		if r, err = c.Get(ctx, "\x00", clientv3.WithCountOnly()); err == nil {
			rev = r.Header.Revision
		}
	case 1:
		rev, err = strconv.ParseInt(args[0], 10, 64)
	default:
		err = fmt.Errorf("compact takes at most one revision")
	}
	if err != nil {
		return err
	}
	_, err = c.Compact(ctx, rev, clientv3.WithCompactPhysical())
	return err
}

func twoInts(words []string) (a, b int64, err error) {
	if len(words) != 3 {
		return 0, 0, fmt.Errorf("%s takes two numbers", words[0])
	}
	if a, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return 0, 0, err
	}
	b, err = strconv.ParseInt(words[2], 10, 64)
	return a, b, err
}

// splitWords splits a line into bare and quoted words; a # where a word would
// start ends the line.
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
			word, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, err
			}
			words, line = append(words, word), line[len(quoted):]
		default:
			end := strings.IndexAny(line, " \t\r")
			if end < 0 {
				end = len(line)
			}
			words, line = append(words, line[:end]), line[end:]
		}
	}
}
