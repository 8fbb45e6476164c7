package snapshot

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// recordedHostile is the table of testdata/README.md: the finding of Verify for each file ("" for a
// file served by a real etcd), the warning of Odd, and whether Write accepts the file nevertheless.
func recordedHostile() []hostileFile {
	return []hostileFile{
		{name: "v-lease-badrec",
			finds: `bucket "lease": key 0000000000000001: file is damaged: it is not a protobuf message`},
		{name: "v-alarm", finds: `bucket "alarm": key `},
		{name: "v-clusterver",
			finds: `bucket "cluster": key "clusterVersion": file is damaged: "garbage" is no version`},
		{name: "v-authuser", finds: `bucket "authUsers": key "root": file is damaged: it is not a protobuf message`},
		{name: "v-metabad", finds: `file is damaged: it is not a member's id`, refuses: `bucket "alarm": key ffff`},
		{name: "v-freelist-live", finds: "free list: file is damaged: page 5 is named free and is in use, or " +
			"named twice", heals: true},
		{name: "freelist-e37-A-25", finds: "free list: file is damaged: page 0 lies outside the 9 pages", heals: true},
		{name: "freelist-cal-A-66", finds: "free list: file is damaged: page 8192 lies outside the 866 pages",
			heals: true},
		{name: "freelist-e36-A-826", heals: true},
		{name: "freelist-pl-A-889", heals: true},
		{name: "v-cindex", odd: "consistent_index", heals: true},
		{name: "v-confstate", odd: "confState", heals: true},
		{name: "v-lease-neg", odd: `bucket "lease"`, heals: true},
		{name: "v-term", odd: "term", heals: true},
		{name: "v-storagever", odd: "storageVersion", heals: true},
		{name: "v-defexp", heals: true},
		{name: "val-printcols", heals: true},
		{name: "v-memname", heals: true},
		{name: "v-revmaxbump", heals: true},
		{name: "v-skip-move", heals: true},
	}
}

type hostileFile struct {
	name       string
	finds, odd string
	refuses    string // the error of Write, if not finds
	heals      bool   // Write accepts the file, and a server serves the output
}

// TestHostileFiles checks that each recorded file gets the answer of a real etcd and its tools.
func TestHostileFiles(t *testing.T) {
	files := recordedHostile()
	there := must(filepath.Glob(filepath.Join("..", "testdata", "hostile", "*.db.gz")))(t)
	require.Len(t, files, len(there))
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			path := gunzip(t, "hostile/"+f.name+".db")
			untouched(t, path)
			v := askPeers(t, path)
			require.Equal(t, f.finds != "", v.dies(), "etcd's own programs: %+v", v)
			s := open(t, path)
			oneOf(t, f.finds, findings(t, s))
			var odd []error
			for err := range Odd(t.Context(), s) {
				odd = append(odd, err)
			}
			if f.odd != "" {
				require.Len(t, odd, 1)
				require.ErrorContains(t, odd[0], f.odd)
				require.Equal(t, Warning, ClassOf(odd[0]))
			} else if f.heals {
				require.Empty(t, odd)
			}
			out := filepath.Join(t.TempDir(), "out.db")
			res, err := Write(t.Context(), out, s, seq(), WriteConfig{})
			if !f.heals {
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorContains(t, err, cmp.Or(f.refuses, f.finds))
				return
			}
			require.NoError(t, err)
			require.Zero(t, res.Appended)
			require.Empty(t, findings(t, open(t, out)))
			require.Equal(t, f.finds == "", sumOf(t, path) == sumOf(t, out), "a sound file is copied, another healed")
			server := etcdtest.Start(t, etcdtest.Restore(t, out))
			require.Equal(t, etcdtest.Dump(t, server, 0), liveAt(t, s, "", revision(t, s)))
			etcdtest.Run(t, server, "put /new x\ncompact")
		})
	}
}

// oneOf requires that one of errs has the text, or, for an empty text, that errs is empty.
func oneOf(t testing.TB, text string, errs []error) {
	t.Helper()
	if text == "" {
		require.Empty(t, errs)
		return
	}
	for _, err := range errs {
		require.ErrorIs(t, err, ErrDamaged)
		require.Equal(t, Fatal, ClassOf(err))
		if strings.Contains(err.Error(), text) {
			return
		}
	}
	require.Fail(t, "not found", "%q in %v", text, errs)
}
