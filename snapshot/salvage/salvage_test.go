package salvage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// whole is a sound file to damage.
type whole struct {
	image            []byte // without a digest
	ps               int    // page size
	leaves, branches []uint64
	records          map[string]string // revision keys and KeyValues
	live             map[string]string // keys and KeyValues
	ever             map[string]bool   // revision keys and KeyValues of records that once were, one string each
}

// databaseAt returns the pages of a sound file.
func databaseAt(t testing.TB, path string) *bolt.DB {
	t.Helper()
	b := must(os.ReadFile(path))(t)
	metas, errs := bolt.Metas(b)
	m := metas[0]
	if errs[0] != nil || errs[1] == nil && metas[1].TxID > m.TxID {
		m = metas[1]
	}
	return must(bolt.Open(t.Context(), b[:m.Bytes():m.Bytes()], m, nil))(t)
}

func newWhole(t testing.TB, path string) *whole {
	t.Helper()
	s := must(snapshot.Open(context.Background(), path, snapshot.Config{FreePages: true}))(t)
	t.Cleanup(func() { _ = s.Close() })
	db := databaseAt(t, path)
	out := &whole{ps: db.PageSize, records: map[string]string{}, live: map[string]string{}, ever: map[string]bool{}}
	out.image = must(os.ReadFile(path))(t)[:db.Bytes()]
	out.leaves = db.Bucket("key").Leaves
	var under func(id uint64)
	under = func(id uint64) {
		p := must(db.Page(id))(t)
		if p.IsLeaf() {
			return
		}
		out.branches = append(out.branches, id)
		for i := range p.Count() {
			_, child := p.Branch(i)
			under(child)
		}
	}
	under(db.Bucket("key").Root)
	var enc mvcc.Encoder
	for r, err := range s.Scan(context.Background()) {
		require.NoError(t, err)
		el := enc.Element(r.Record)
		out.ever[string(el.Key)+string(el.Value)] = true
		if r.FreePage {
			continue
		}
		out.records[string(el.Key)] = string(el.Value)
		if r.Live {
			out.live[string(r.Key)] = string(el.Value)
		}
	}
	return out
}

// ruins are the kinds of damage.
func ruins() []string {
	return []string{"zeroed leaf", "garbage leaf", "zeroed branch", "torn leaf", "page header", "swapped pages",
		"misdirected page", "one meta", "both metas", "truncated", "bit flips", "5 % zeroed", "any page zeroed"}
}

// damaged returns a damaged copy.
func (s *whole) damaged(kind string, r *rand.Rand) []byte {
	d := bytes.Clone(s.image)
	pages := len(d) / s.ps
	page := func(id uint64) []byte { return d[int(id)*s.ps : (int(id)+1)*s.ps] }
	one := func(ids []uint64) uint64 { return ids[r.Intn(len(ids))] }
	all := slices.Concat(s.leaves, s.branches)
	leaf, some := one(s.leaves), one(all)
	switch kind {
	case "zeroed leaf":
		clear(page(leaf))
	case "garbage leaf":
		r.Read(page(leaf))
	case "zeroed branch":
		clear(page(one(s.branches)))
	case "torn leaf":
		clear(page(leaf)[512*(1+r.Intn(7)):])
	case "page header":
		r.Read(page(some)[:bolt.HeaderSize])
	case "swapped pages":
		other := one(all)
		was := bytes.Clone(page(some))
		copy(page(some), page(other))
		copy(page(other), was)
	case "misdirected page":
		copy(page(some), page(one(s.leaves)))
	case "one meta":
		r.Read(page(uint64(r.Intn(2)))[bolt.HeaderSize:][:bolt.MetaSize])
	case "both metas":
		clear(d[:2*s.ps])
	case "truncated":
		d = d[:int(float64(len(d))*(0.5+0.49*r.Float64()))]
	case "bit flips":
		for range 1 + r.Intn(50) {
			d[r.Intn(len(d))] ^= 1 << r.Intn(8)
		}
	case "5 % zeroed":
		for range pages/20 + 1 {
			clear(page(uint64(2 + r.Intn(pages-2))))
		}
	case "any page zeroed":
		clear(page(uint64(2 + r.Intn(pages-2))))
	}
	return d
}

// salvaged is the result of a salvage compared with the sound file.
type salvaged struct {
	files, complete      int
	records, live        [2]int // right ones, and all of the sound file
	other, ghosts, older int    // records that never were; live keys that are not, or have an earlier value
	lost, unsure         int
	gaps                 int // above the compact revision
}

// salvage salvages files and compares the output with the sound file.
func (s *whole) salvage(t testing.TB, unsure bool, out *salvaged, paths ...string) {
	t.Helper()
	damaged := must(os.ReadFile(paths[0]))(t)
	ctx := context.Background()
	out.files++
	out.records[1] += len(s.records)
	out.live[1] += len(s.live)
	r, err := Open(ctx, paths, snapshot.Config{})
	if errors.Is(err, ErrNothingLeft) || errors.Is(err, ErrTwoHistories) {
		return
	}
	require.NoError(t, err)
	defer r.Close()
	path := paths[0] + ".out"
	defer os.Remove(path)
	_, err = r.Write(ctx, path, must(publish.Create(path))(t), unsure, nil)
	require.NoError(t, err)
	found := must(snapshot.Open(ctx, path, snapshot.Config{}))(t)
	require.Empty(t, findings(t, found))
	out.lost += int(r.LostRevisions)
	out.unsure += len(r.Unsure)
	for _, g := range r.Gaps {
		if r.CompactRevision == nil || g.To > *r.CompactRevision {
			out.gaps++
		}
	}
	var enc mvcc.Encoder
	right := 0
	for rec, err := range found.Scan(ctx) {
		require.NoError(t, err)
		el := enc.Element(rec.Record)
		k, v := string(el.Key), string(el.Value)
		if s.records[k] == v {
			out.records[0]++
		}
		if !s.ever[k+v] {
			out.other++
			require.True(t, s.isDamaged(damaged, k+v), "record %s is not damaged", rec.Revision)
		}
		if !rec.Live {
			continue
		}
		switch want, live := s.live[string(rec.Key)]; {
		case want == v:
			right++
		case live:
			out.older++
		default:
			out.ghosts++
		}
	}
	out.live[0] += right
	if right == len(s.live) {
		out.complete++
	}
	require.NoError(t, found.Close())
}

// isDamaged reports whether a record has damage in its bytes, at some place in a damaged file. The
// damage may have cut off its lease, the last field.
func (s *whole) isDamaged(damaged []byte, record string) bool {
	const lease = 11 // bytes
	for at := 0; ; at++ {
		next := bytes.Index(damaged[at:], []byte(record))
		if next < 0 {
			return false
		}
		at += next
		end := min(at+len(record)+lease, len(damaged))
		if !bytes.Equal(damaged[at:end], s.image[at:end]) {
			return true
		}
	}
}

func (r *salvaged) add(of salvaged) {
	for i := range 2 {
		r.records[i] += of.records[i]
		r.live[i] += of.live[i]
	}
	r.files, r.complete = r.files+of.files, r.complete+of.complete
	r.other, r.ghosts, r.older = r.other+of.other, r.ghosts+of.ghosts, r.older+of.older
	r.lost, r.unsure = r.lost+of.lost, r.unsure+of.unsure
}

func share(n [2]int) string { return fmt.Sprintf("%5.1f", 100*float64(n[0])/float64(max(1, n[1]))) }

func (r salvaged) String() string {
	return fmt.Sprintf("files %d, complete %d, records %s %%, live keys %s %%; never written %d, ghosts %d, older %d; "+
		"lost revisions %d, unsure %d", r.files, r.complete, share(r.records), share(r.live), r.other, r.ghosts,
		r.older, r.lost, r.unsure)
}

// TestSalvageDamaged damages two files in many ways, and salvages each copy. ETCDSHIFT_RUINS is the
// number of copies of each kind.
//
// No output has a record that never was; after flipped bits only records whose own bits flipped.
// With ETCDSHIFT_PEERS, other tools repair the same copies.
// Without unsure keys, an object that had been deleted comes back only if revisions are lost, or a
// key flipped.
func TestSalvageDamaged(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ETCDSHIFT_RUINS"))
	n = max(n, 2)
	for _, name := range []string{"calico/before.db.gz", "wal/kube37.snapshot.db.gz"} {
		s := newWhole(t, etcdtest.Unpack(t, filepath.Join("..", "..", "testdata", name)))
		if strings.HasPrefix(name, "wal/") {
			for _, e := range eventsOf(t, "kube37.truth.jsonl.gz") {
				s.ever[e.entry()] = true
			}
		}
		dir := t.TempDir()
		tools := map[string]*salvaged{}
		for _, unsure := range []bool{false, true} {
			var all salvaged
			for _, kind := range ruins() {
				var of salvaged
				for i := range n {
					path := filepath.Join(dir, fmt.Sprint(i, kind))
					require.NoError(t, os.WriteFile(path, s.damaged(kind, rand.New(rand.NewSource(int64(i)))), 0o600))
					s.salvage(t, unsure, &of, path)
					if !unsure {
						s.askTools(t, path, tools)
					}
					require.NoError(t, os.Remove(path))
				}
				if kind != "bit flips" {
					require.Zero(t, of.other, kind)
					require.True(t, unsure || of.ghosts == 0 || of.lost+of.gaps > 0, kind)
				}
				t.Logf("%s, unsure %v, %s: %v", name, unsure, kind, of)
				all.add(of)
			}
			t.Logf("%s, unsure %v, all: %v", name, unsure, all)
			for tool, of := range tools {
				t.Logf("%s, %s: %v, without an error in spite of lost keys %d", name, tool, of, of.lost)
			}
			clear(tools)
			if !unsure {
				require.Greater(t, all.live[0], all.live[1]*8/10)
			}
		}
	}
}

// askTools repairs a damaged file with other tools, if ETCDSHIFT_PEERS is a folder with bbolt and
// etcdutl, and adds the live keys of each output. lost counts tools that lose keys without an
// error.
func (s *whole) askTools(t testing.TB, path string, results map[string]*salvaged) {
	t.Helper()
	peers := os.Getenv("ETCDSHIFT_PEERS")
	if peers == "" {
		return
	}
	bbolt, out := filepath.Join(peers, "bbolt"), path+".peer"
	defer os.RemoveAll(out)
	for tool, lines := range map[string][][]string{
		"etcdutl snapshot restore": {{filepath.Join(peers, "etcdutl"), "snapshot", "restore", path, "--skip-hash-check",
			"--data-dir", out}},
		"bbolt compact": {{bbolt, "compact", "-o", out, path}},
		"bbolt surgery revert-meta-page, compact": {
			{bbolt, "surgery", "revert-meta-page", path, "--output", out + ".1"},
			{bbolt, "compact", "-o", out, out + ".1"}},
	} {
		var err error
		for _, line := range lines {
			within, cancel := context.WithTimeout(t.Context(), 20*time.Second) // some never end
			err = errors.Join(err, exec.CommandContext(within, line[0], line[1:]...).Run())
			cancel()
		}
		made := out
		if tool == "etcdutl snapshot restore" {
			made = filepath.Join(out, "member", "snap", "db")
		}
		if results[tool] == nil {
			results[tool] = &salvaged{}
		}
		of := results[tool]
		right := s.rightKeys(made)
		of.files, of.live[0], of.live[1] = of.files+1, of.live[0]+right, of.live[1]+len(s.live)
		if right == len(s.live) {
			of.complete++
		} else if err == nil {
			of.lost++
		}
		require.NoError(t, errors.Join(os.RemoveAll(out), os.RemoveAll(out+".1")))
	}
}

// rightKeys returns the number of right live keys in a file.
func (s *whole) rightKeys(path string) (right int) {
	file, err := snapshot.Open(context.Background(), path, snapshot.Config{SkipDigest: true})
	if err != nil {
		return 0
	}
	defer file.Close()
	var enc mvcc.Encoder
	for rec, err := range file.Live(context.Background(), nil) {
		if err != nil {
			return right
		}
		if s.live[string(rec.Key)] == string(enc.Element(rec).Value) {
			right++
		}
	}
	return right
}

// Very many forms of one record take little time. The most frequent form is taken.
func TestSalvageManyForms(t *testing.T) {
	const forms = 100_000
	var data []byte
	for i := range forms {
		rec := snapshot.Record{
			Revision: snapshot.Revision{Main: 5}, Key: []byte("k"), Value: fmt.Appendf(nil, "%06d", i),
			CreateRevision: 5, ModRevision: 5, Version: 1}
		el := new(mvcc.Encoder).Element(&rec)
		for range 1 + min(1, i/(forms-1)) { // the last form twice
			data = append(append(data, el.Key...), el.Value...)
		}
	}
	path := filepath.Join(t.TempDir(), "ruin")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	begin := time.Now()
	r, err := Open(t.Context(), []string{path}, snapshot.Config{})
	require.NoError(t, err)
	defer r.Close()
	require.Less(t, time.Since(begin), 10*time.Second)
	require.Len(t, r.pieces, 1)
	require.Contains(t, string(r.bytesOf(r.pieces[0])), fmt.Sprintf("%06d", forms-1))
	require.Contains(t, r.Damaged[0].Why, "100000 forms")
}

// TestSalvageChanged checks that no output is left if a file changes while it is salvaged.
func TestSalvageChanged(t *testing.T) {
	path := etcdtest.Unpack(t, filepath.Join("..", "..", "testdata", "calico", "before.db.gz"))
	r, err := Open(t.Context(), []string{path}, snapshot.Config{})
	require.NoError(t, err)
	defer r.Close()
	out := path + ".out"
	_, err = r.Write(t.Context(), out, must(publish.Create(out))(t), false,
		func(context.Context, *snapshot.Snapshot) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) })
	require.ErrorIs(t, err, snapshot.ErrChanged)
	require.NoFileExists(t, out)
}
