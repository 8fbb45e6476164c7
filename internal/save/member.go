package save

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/etcdshift/etcdshift/finding"
)

// Reasons why a member is refused.
var (
	ErrLearner = finding.WithHint(errors.New("the member is a learner"),
		"name a voting member: \"etcdctl endpoint status\" shows which it is")
	ErrNoLeader = finding.WithHint(errors.New("the member has no leader"),
		"name a member that reaches the others; of a cluster without a quorum, \"etcdctl snapshot save\" takes "+
			"what a member has")
	ErrLag = finding.WithHint(errors.New("the member lags behind"),
		"name the others too, or wait; --max-lag allows more")
	ErrCorrupt = finding.WithHint(errors.New("alarm CORRUPT: the data of the member differs from that of the others"),
		"name the other members: what this one has is not what they have")
	ErrClusters = finding.WithHint(errors.New("the endpoints belong to different clusters"),
		"name the members of one cluster")
)

// Member is a member's status before the download.
type Member struct {
	Endpoint         string `json:"endpoint"`
	ID               string `json:"id"` // lower-case hex
	Name             string `json:"name"`
	Version          string `json:"version"` // of the server
	Leader           bool   `json:"leader"`
	Revision         int64  `json:"revision"`
	RaftTerm         uint64 `json:"raftTerm"`
	RaftIndex        uint64 `json:"raftIndex"`        // committed index known to the member
	RaftAppliedIndex uint64 `json:"raftAppliedIndex"` // 0 before etcd 3.4
	Lag              uint64 `json:"lag"`              // raft entries behind the newest member
}

// member is an endpoint and its answer.
type member struct {
	Member
	client  *clientv3.Client
	token   string // of an authenticated user
	status  *pb.StatusResponse
	err     error         // why the status is missing
	timeout time.Duration // for one call
}

// requestStatus requests the status of all endpoints concurrently, and returns the answers in
// endpoint order.
func (s *saver) requestStatus(ctx context.Context) []*member {
	members := make([]*member, len(s.config.Endpoints))
	var all sync.WaitGroup
	for i, endpoint := range s.config.Endpoints {
		members[i] = &member{Member: Member{Endpoint: endpoint}, timeout: s.config.DialTimeout}
		all.Go(func() { members[i].err = members[i].connect(ctx, s.config) })
	}
	all.Wait()
	return members
}

func closeAll(members []*member) {
	for _, m := range members {
		if m.client != nil {
			_ = m.client.Close()
		}
	}
}

// connect opens one connection for all calls and the download: a load balancer could route a second
// connection to another member.
func (m *member) connect(ctx context.Context, cfg clientv3.Config) (err error) {
	user := &pb.AuthenticateRequest{Name: cfg.Username, Password: cfg.Password}
	m.token = cfg.Token
	// The library's own authentication hides connection errors behind a timeout.
	cfg.Endpoints, cfg.Username, cfg.Password, cfg.Token = []string{m.Endpoint}, "", "", ""
	cfg.Context, cfg.MaxUnaryRetries, cfg.Logger = ctx, 1, zap.NewNop()
	if m.client, err = clientv3.New(cfg); err != nil {
		return err
	}
	if user.Name != "" && m.token == "" {
		answer, err := callMember(m, ctx, pb.NewAuthClient(m.conn()).Authenticate, user)
		if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) {
			return fmt.Errorf("user %q: %w", user.Name, err)
		}
		m.token = answer.GetToken()
	}
	m.status, err = callMember(m, ctx, pb.NewMaintenanceClient(m.conn()).Status, &pb.StatusRequest{})
	if err != nil {
		return err
	}
	st := m.status
	m.ID, m.Version = strconv.FormatUint(st.GetHeader().GetMemberId(), 16), st.Version
	m.Leader = st.Leader != 0 && st.Leader == st.GetHeader().GetMemberId()
	m.Revision, m.RaftTerm = st.GetHeader().GetRevision(), st.RaftTerm
	m.RaftIndex, m.RaftAppliedIndex = st.RaftIndex, st.RaftAppliedIndex
	return nil
}

func (m *member) cluster() uint64 { return m.status.GetHeader().GetClusterId() }

func (m *member) conn() *grpc.ClientConn { return m.client.ActiveConnection() }

// withToken returns ctx with the user's token.
func (m *member) withToken(ctx context.Context) context.Context {
	if m.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, m.token)
}

// callMember calls the member with a time limit.
func callMember[Q, A any](
	m *member, ctx context.Context, call func(context.Context, Q, ...grpc.CallOption) (A, error), q Q,
) (A, error) {
	ctx, _, end := withTimeout(m.withToken(ctx), m.timeout, "no answer within")
	defer end()
	answer, err := call(ctx, q)
	return answer, reasonOf(ctx, err)
}

// catchUp waits until the member has applied all entries committed by its leader (etcd 3.5 and
// later), and reads the member's name.
func (m *member) catchUp(ctx context.Context) error {
	list, err := callMember(m, ctx, pb.NewClusterClient(m.conn()).MemberList, &pb.MemberListRequest{Linearizable: true})
	if err != nil {
		return fmt.Errorf("it does not catch up with its leader: %w", err)
	}
	for _, other := range list.Members {
		if other.ID == m.status.GetHeader().GetMemberId() {
			m.Name = other.Name
		}
	}
	return nil
}

// describe returns a description of the member.
func (m *member) describe() string {
	return fmt.Sprintf("member %s (%s) at %s: etcd %s, revision %d, raft index %d",
		m.Name, m.ID, m.Endpoint, m.Version, m.Revision, max(m.RaftIndex, m.RaftAppliedIndex))
}

func (m *member) untaken(err error) Untaken { return Untaken{m.Endpoint, m.ID, err.Error(), err} }

// choose returns the suitable members, the leader last because a download loads its disk, and the
// refused members with reasons.
func (s *saver) choose(members []*member) (fit []*member, refused []Untaken, err error) {
	newest, first := uint64(0), (*member)(nil)
	for _, m := range members {
		switch {
		case m.status == nil:
		case first != nil && m.cluster() != first.cluster():
			return nil, nil, fmt.Errorf("%w: %s is of %x, %s of %x", ErrClusters, first.Endpoint, first.cluster(),
				m.Endpoint, m.cluster())
		default:
			newest, first = max(newest, m.RaftIndex, m.RaftAppliedIndex), m
		}
	}
	var leaders []*member
	for _, m := range members {
		if m.status != nil {
			m.Lag = newest - m.applied()
		}
		switch err := m.unfit(s.MaxLag); {
		case err != nil:
			refused = append(refused, m.untaken(err))
		case m.Leader:
			leaders = append(leaders, m)
		default:
			fit = append(fit, m)
		}
	}
	return append(fit, leaders...), refused, nil
}

// applied returns the index of the last entry in the member's database.
func (m *member) applied() uint64 {
	if m.RaftAppliedIndex == 0 { // before etcd 3.4
		return m.RaftIndex
	}
	return m.RaftAppliedIndex
}

// unfit returns the reason to refuse the member, or nil.
func (m *member) unfit(maxLag uint64) error {
	switch {
	case m.err != nil:
		return m.err
	case m.status.IsLearner:
		return ErrLearner
	case m.status.Leader == 0:
		return ErrNoLeader
	case m.corrupt():
		return ErrCorrupt
	case m.Lag > maxLag:
		return fmt.Errorf("%w: %d raft entries behind the newest, %d are allowed", ErrLag, m.Lag, maxLag)
	}
	return nil
}

// corrupt reports whether a CORRUPT alarm names this member or no member.
func (m *member) corrupt() bool {
	of := regexp.MustCompile(`memberID:\s*(\d+)`)
	return slices.ContainsFunc(m.status.Errors, func(alarm string) bool {
		id := of.FindStringSubmatch(alarm)
		return strings.Contains(alarm, "CORRUPT") &&
			(id == nil || id[1] == "0" || id[1] == strconv.FormatUint(m.status.GetHeader().GetMemberId(), 10))
	})
}

// warnings returns the alarms reported by the members.
func warnings(members []*member) (lines []string) {
	for _, m := range members {
		for _, alarm := range m.status.GetErrors() {
			if strings.Contains(alarm, "alarm:") {
				lines = append(lines, "the cluster has an alarm, which a restore keeps: "+
					strings.Join(strings.Fields(alarm), " "))
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}
