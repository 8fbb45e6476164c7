package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/etcdshift/etcdshift/snapshot"
)

// withSnapshot opens a snapshot of the script.
func withSnapshot(ts *testscript.TestScript, name string, do func(ctx context.Context, s *snapshot.Snapshot)) {
	ctx := context.Background()
	s, err := snapshot.Open(ctx, ts.MkAbs(name), snapshot.Config{})
	ts.Check(err)
	defer s.Close()
	do(ctx, s)
}

// holdsCmd checks the keys of a snapshot: [!] holds SNAPSHOT KEY...
func holdsCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] holds SNAPSHOT KEY...")
	}
	withSnapshot(ts, args[0], func(ctx context.Context, s *snapshot.Snapshot) {
		for _, key := range args[1:] {
			rec, err := s.Get(ctx, []byte(key))
			ts.Check(err)
			if (rec == nil) != neg {
				ts.Fatalf("%s: %q is there: %v", args[0], key, rec != nil)
			}
		}
	})
}

// sameCmd checks that two snapshots have the same values for all keys with PREFIX, at least one:
// same SNAPSHOT OTHER PREFIX.
func sameCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: same SNAPSHOT OTHER PREFIX")
	}
	var all [2]map[string]string
	for i := range all {
		all[i] = map[string]string{}
		withSnapshot(ts, args[i], func(ctx context.Context, s *snapshot.Snapshot) {
			for rec, err := range s.Live(ctx, []byte(args[2])) {
				ts.Check(err)
				all[i][string(rec.Key)] = string(rec.Value)
			}
		})
	}
	if len(all[0]) == 0 {
		ts.Fatalf("%s has nothing under %s", args[0], args[2])
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		ts.Fatalf("%s and %s differ under %s", args[0], args[1], args[2])
	}
}

// valuesCmd writes the values of all keys with PREFIX to FILE: values SNAPSHOT PREFIX FILE. JSON
// objects become documents of a YAML manifest.
func valuesCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: values SNAPSHOT PREFIX FILE")
	}
	var all [][]byte
	withSnapshot(ts, args[0], func(ctx context.Context, s *snapshot.Snapshot) {
		for rec, err := range s.Live(ctx, []byte(args[1])) {
			ts.Check(err)
			all = append(all, bytes.Clone(rec.Value))
		}
	})
	if len(all) == 0 {
		ts.Fatalf("%s has nothing under %s", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), bytes.Join(all, []byte("---\n")), 0o600))
}

// jsonCmd compares fields of JSON files: json FILE PATH VALUE, or json FILE PATH... == OTHER for
// equal fields in both.
func jsonCmd(ts *testscript.TestScript, neg bool, args []string) {
	read := func(name string) (doc any) {
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(name)), &doc))
		return doc
	}
	switch n := len(args); {
	case neg || n < 3:
		ts.Fatalf("usage: json FILE PATH VALUE | json FILE PATH... == OTHER")
	case args[n-2] == "==":
		a, b := read(args[0]), read(args[n-1])
		for _, path := range args[1 : n-2] {
			x, y := field(a, path), field(b, path)
			if x == nil || !reflect.DeepEqual(x, y) {
				ts.Fatalf("%s is %v in %s and %v in %s", path, x, args[0], y, args[n-1])
			}
		}
	default:
		var want any
		ts.Check(json.Unmarshal([]byte(args[2]), &want))
		if got := field(read(args[0]), args[1]); !reflect.DeepEqual(got, want) {
			ts.Fatalf("%s of %s is %v, want %v", args[1], args[0], got, want)
		}
	}
}

// field returns the value at a path of names, nil for none. In a list a number selects an element,
// and "len" is the length.
func field(doc any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch at := doc.(type) {
		case map[string]any:
			doc = at[name]
		case []any:
			var i int
			if name == "len" {
				doc = float64(len(at))
			} else if err := json.Unmarshal([]byte(name), &i); err == nil && i < len(at) {
				doc = at[i]
			} else {
				return nil
			}
		default:
			return nil
		}
	}
	return doc
}
