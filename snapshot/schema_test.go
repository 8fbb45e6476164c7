package snapshot

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestMessages compares the messages of the schema with etcd's own definitions.
func TestMessages(t *testing.T) {
	for want, got := range map[proto.Message]message{
		&leasepb.Lease{}: leaseMessage(), &etcdserverpb.AlarmMember{}: alarmMessage(),
		&authpb.User{}: userMessage(), &authpb.Role{}: roleMessage(),
	} {
		sameMessage(t, want.ProtoReflect().Descriptor(), got)
	}
}

func sameMessage(t *testing.T, want protoreflect.MessageDescriptor, got message) {
	t.Helper()
	require.Len(t, got, want.Fields().Len(), "%s", want.FullName())
	for num, field := range got {
		fd := want.Fields().ByNumber(num)
		require.NotNil(t, fd, "%s %d", want.FullName(), num)
		wire := protowire.VarintType
		switch fd.Kind() {
		case protoreflect.BytesKind, protoreflect.StringKind, protoreflect.MessageKind:
			wire = protowire.BytesType
		}
		require.Equal(t, wire, field.typ, "%s", fd.FullName())
		require.Equal(t, fd.Kind() == protoreflect.StringKind, field.text, "%s", fd.FullName())
		require.Equal(t, fd.Message() != nil, field.fields != nil, "%s", fd.FullName())
		if fd.Message() != nil {
			sameMessage(t, fd.Message(), field.fields)
		}
	}
}

// TestEntries checks the effect of an entry in each bucket on etcd: reads, accepts, or dies.
func TestEntries(t *testing.T) {
	const reads, accepts, dies = "reads", "accepts", "dies"
	user := appendBytesField(nil, 1, []byte("alice"))
	permission := appendBytesField(appendIntField(nil, 1, 2), 2, []byte("/a"))
	tests := []struct {
		bucket, key string
		value       []byte
		want        string
	}{
		{"meta", "consistent_index", []byte{0, 0, 0, 0, 0, 0, 0, 9}, reads},
		{"meta", "consistent_index", []byte("x"), accepts},
		{"meta", "term", nil, accepts},
		{"meta", "confState", []byte(`{"voters":[1],"auto_leave":false}`), reads},
		{"meta", "confState", []byte(`{"voters":"x"}`), accepts},
		{"meta", "storageVersion", []byte("3.7.0"), reads},
		{"meta", "storageVersion", []byte("3.8.0"), accepts},
		{"meta", "storageVersion", []byte("x"), accepts},
		{"meta", "storageVersion", []byte("3.3.0"), dies},
		{"meta", "finishedCompactRev", appendRevisionKey(nil, Revision{Main: 7}, false), reads},
		{"meta", "finishedCompactRev", nil, dies},
		{"meta", "scheduledCompactRev", []byte("1234567812345678"), dies},
		{"meta", "anything", []byte("else"), reads},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{8, 7, 16, 60}, reads},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{8, 8, 16, 60}, accepts},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{8, 7}, accepts},
		{"lease", "\x00\x00\x00\x00\x00\x00\x00\x07", []byte{10, 1, 7}, dies},
		{"alarm", "\x08\x07\x10\x01", nil, accepts},
		{"alarm", "\x08\x07", nil, reads},
		{"alarm", "\x08", nil, dies},
		{"alarm", "\x0a\x01x", nil, dies},
		{"auth", "authRevision", []byte{0, 0, 0, 0, 0, 0, 0, 9}, reads},
		{"auth", "authRevision", []byte{9}, dies},
		{"auth", "authEnabled", []byte{1}, reads},
		{"auth", "authEnabled", []byte("true"), accepts},
		{"authUsers", "alice", appendBytesField(appendBytesField(user, 3, []byte("root")), 4, []byte{8, 1}), reads},
		{"authUsers", "alice", appendBytesField(user, 3, []byte{0xff}), dies},
		{"authUsers", "alice", appendBytesField(user, 4, []byte{8}), dies},
		{"authUsers", "alice", []byte("alice"), dies},
		{"authRoles", "r", appendBytesField(nil, 2, permission), reads},
		{"authRoles", "r", appendBytesField(nil, 2, []byte{0x0a, 0x00}), dies},
		{"authRoles", "r", []byte{0xff}, dies},
		{"authRoles", "r\xff", user, accepts},
		{"authRoles", "r", appendBytesField(nil, 1, []byte{0xff}), accepts},
		{"members", "8e9e05c52164694d", []byte(`{"id":1,"peerURLs":["http://a"],"name":"a"}`), reads},
		{"members", "8e9e05c52164694d", []byte(`{`), accepts},
		{"members", "x", []byte(`{"name":"a"}`), dies},
		{"members_removed", "8e9e05c52164694d", []byte("removed"), reads},
		{"members_removed", "", []byte("removed"), dies},
		{"cluster", "clusterVersion", []byte("3.6.0"), reads},
		{"cluster", "clusterVersion", []byte("3.6.0-rc.1+x"), reads},
		{"cluster", "clusterVersion", []byte("3.6.0-rc_1"), dies},
		{"cluster", "clusterVersion", []byte("3.8.0"), accepts},
		{"cluster", "clusterVersion", nil, dies},
		{"cluster", "downgrade", []byte(`{"target-version":"","enabled":false}`), reads},
		{"cluster", "downgrade", []byte(`{"target-version":"","enabled":true}`), dies},
		{"cluster", "downgrade", []byte(`[]`), dies},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		seen[tt.bucket] = true
		b := rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
			bucket := tx.Bucket([]byte(tt.bucket))
			if tt.key != "" {
				return bucket.Put([]byte(tt.key), tt.value)
			}
			return bucket.Put([]byte("-"), tt.value)
		})
		s := open(t, copyOf(t, b))
		got := reads
		for range Odd(t.Context(), s) {
			got = accepts
		}
		for _, err := range findings(t, s) {
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, `bucket "`+tt.bucket+`"`)
			got = dies
		}
		require.Equal(t, tt.want, got, "%s %q %q", tt.bucket, tt.key, tt.value)
		require.Equal(t, tt.want == dies, s.Sound(t.Context()) != nil)
	}
	require.ElementsMatch(t, smallBuckets(), slices.Collect(maps.Keys(seen)))
}
