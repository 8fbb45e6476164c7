package mvcc

import (
	"testing"

	"github.com/stretchr/testify/require"
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
