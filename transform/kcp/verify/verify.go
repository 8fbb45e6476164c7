package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// Move is a whole move of logical clusters from one shard to another, as files. The snapshots stay open while it is judged.
type Move struct {
	Archive        *inspect.Reader
	OriginOut      *inspect.Reader // what cluster purge made
	DestinationOut *inspect.Reader // what cluster import made
	Origin         *inspect.Reader // what purge was given; nil where it is not at hand
	Destination    *inspect.Reader // what import was given; nil where it is not at hand
	Caches         []*inspect.Reader
	CachesBefore   []*inspect.Reader // what the purge of each of Caches was given; shorter, or nil, where it is not at hand
	Prefixes       []string          // of the destination's storage, where its file has several
	FromShard      string            // the origin's name, where the archive does not say
	AsShard        string            // the destination's name, where its file does not say
	Ignore         []Code            // findings that are left out, of those that are Ignorable
	// Configured: there is an encryption configuration of the destination, and it has to open every value that was moved.
	Configured bool
}

// Verdict is what judging a move found.
type Verdict struct {
	From     string     `json:"from"` // name of the shard; "" where nothing says it
	To       string     `json:"to"`
	Clusters []Moved    `json:"clusters"`
	Answers  []Answer   `json:"answers"`  // one a question, in the order of Questions
	Findings []Finding  `json:"findings"` // by code, in the order of Codes, file and key
	Unjudged []Unjudged `json:"unjudged"`
	Notes    []string   `json:"notes"` // what a person should know that is no finding
}

// Moved is a logical cluster of the move.
type Moved struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Keys int    `json:"keys"`
}

// Answer is what is known about one question.
type Answer struct {
	Question Question `json:"question"`
	Answer   string   `json:"answer"`  // "no", "yes" or "unknown"
	Checked  int      `json:"checked"` // records that were looked at; of QuestionDamaged files
	Findings int      `json:"findings"`
}

// MoveFinding is something that is not as a sound move leaves it.
type Finding struct {
	Code     Code     `json:"code"`
	Question Question `json:"question"`
	File     string   `json:"file"`          // the path of the file it was found in
	Key      string   `json:"key,omitempty"` // "" for one about the file, or a logical cluster, as a whole
	Message  string   `json:"message"`
}

// Unjudged is something that nobody can tell from what was given.
type Unjudged struct {
	Question Question `json:"question"`
	File     string   `json:"file"`
	Key      string   `json:"key,omitempty"`
	Reason   string   `json:"reason"`
}

// Sound tells whether all was judged and nothing found: the answer to each question is "no".
func (v *Verdict) Sound() bool {
	if len(v.Findings)+len(v.Unjudged) > 0 || len(v.Answers) != len(Questions()) {
		return false
	}
	return !slices.ContainsFunc(v.Answers, func(a Answer) bool { return a.Answer != "no" })
}

// Verify judges a move. What is wrong with it is in the Verdict, a damaged file among it; an error means that it could not look: a
// file is no archive, or no shard of kcp, or cannot be read.
//
// Memory is that of the records of the archive, without their values, and of the findings.
func (m Move) Verify(ctx context.Context) (*Verdict, error) {
	j := &judge{Move: m, verdict: newVerdict(), checked: map[Question]int{}, about: map[about]bool{}, exporters: map[string]bool{}}
	err := j.judge(ctx)
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return j.finish(), nil
}

// ErrFromShard is returned where the name that is given for the origin is not the one that the archive has.
var ErrFromShard = errors.New("the archive is of another shard")

// errStop ends judging where what was found already makes all that would follow a guess.
var errStop = errors.New("nothing more can be judged")

// judge is one judging of a Move.
type judge struct {
	Move
	verdict  *Verdict
	checked  map[Question]int
	about    map[about]bool
	manifest *archive.Manifest
	moved    map[string]bool  // the logical clusters of the archive, by name
	archived map[string]*kept // the archive's records, by key behind the storage prefix
	from, to *clusters.Shard  // of OriginOut and DestinationOut
	fromFile *clusters.File
	toFile   *clusters.File
	// archiveShard is what the archive has of the origin.
	archiveShard *clusters.Shard
	caches       []*cacheFile
	// workspaces are those of the logical clusters: see workspacePlace.
	workspaces map[keys.Key]bool
	first      int64           // revision of the first record on the destination that was imported
	exporters  map[string]bool // logical clusters that have an APIExport
	arrived    int64           // copies that a cache in the origin's own file got from the purge
}

// about is what a finding is about.
type about struct {
	code      Code
	file, key string
}

// kept is a record of the archive.
type kept struct {
	entry      *inspect.Entry
	place      keys.Key
	definition bool
	seen       bool // on the destination
	clear      bool // and in the clear there, which no configuration accounts for
}

// cacheFile is a file with caches.
type cacheFile struct {
	path   string
	caches []*clusters.Cache
	out    *inspect.Reader
	before *inspect.Reader // the input of what made it; nil where it is not at hand
}

func (j *judge) judge(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		j.readArchive, j.judgeFiles, j.readShards, j.judgeDestination, j.judgeDefinitions, j.judgeIdentities, j.judgeServing,
		j.judgeOwners, j.judgeOrigin, j.judgeDoubled, j.judgeCopies, j.judgeRests,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// readShards finds the storages that the move is about.
func (j *judge) readShards(ctx context.Context) error {
	if says := j.manifest.Origin.Shard; j.FromShard != "" && says != "" && says != j.FromShard {
		return fmt.Errorf("%s: %w: of %q, and not of %q", pathOf(j.Archive), ErrFromShard, says, j.FromShard)
	}
	from, fromShard, err := readShard(ctx, j.OriginOut, []string{j.manifest.Origin.Prefix})
	if err != nil {
		return err
	}
	to, toShard, err := readShard(ctx, j.DestinationOut, j.Prefixes)
	if err != nil {
		return err
	}
	j.from, j.to, j.fromFile, j.toFile = fromShard, toShard, from, to
	j.caches = []*cacheFile{
		{pathOf(j.OriginOut), from.Caches, j.OriginOut, j.Origin}, {pathOf(j.DestinationOut), to.Caches, j.DestinationOut, j.Destination},
	}
	for n, r := range j.Caches {
		f, err := clusters.Read(ctx, r)
		if err != nil {
			return err
		}
		if len(f.Caches) == 0 {
			_, err := f.Cache(nil)
			return fmt.Errorf("%s: %w", pathOf(r), err)
		}
		with := &cacheFile{path: pathOf(r), caches: f.Caches, out: r}
		if n < len(j.CachesBefore) {
			with.before = j.CachesBefore[n]
		}
		j.caches = append(j.caches, with)
	}
	j.verdict.From = cmp.Or(j.FromShard, j.manifest.Origin.Shard, j.from.Name)
	j.verdict.To = cmp.Or(j.AsShard, j.to.Name)
	for _, side := range []struct {
		file       *inspect.Reader
		says, goes string
	}{{j.OriginOut, j.from.Name, j.verdict.From}, {j.DestinationOut, j.to.Name, j.verdict.To}} {
		if side.says != "" && side.says != side.goes {
			j.note("%s says of itself that it is shard %q, and is judged as %q", pathOf(side.file), side.says, side.goes)
		}
	}
	return nil
}

// readShard reads one side, which is a whole shard.
func readShard(ctx context.Context, r *inspect.Reader, prefixes []string) (*clusters.File, *clusters.Shard, error) {
	f, err := clusters.Read(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	s, err := f.Shard(prefixes)
	if err == nil && s.Partial {
		err = fmt.Errorf("%w that is whole: below %q there is no LogicalCluster of %s", clusters.ErrNoShard, s.Prefix, clusters.SystemShard)
	}
	if err == nil {
		err = survey.CheckStorages(f)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", pathOf(r), err)
	}
	return f, s, nil
}

func (j *judge) finish() *Verdict {
	v := j.verdict
	v.Findings = slices.DeleteFunc(v.Findings, func(f Finding) bool { return f.Code.Ignorable() && slices.Contains(j.Ignore, f.Code) })
	rank := map[Code]int{}
	for i, code := range Codes() {
		rank[code] = i
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int {
		return cmp.Or(rank[a.Code]-rank[b.Code], cmp.Compare(a.File, b.File), cmp.Compare(a.Key, b.Key))
	})
	for _, q := range Questions() {
		v.Answers = append(v.Answers, j.answer(q))
	}
	return v
}

func (j *judge) answer(q Question) Answer {
	a := Answer{Question: q, Answer: "no", Checked: j.checked[q]}
	if j.from == nil && q != QuestionDamaged {
		a.Answer = "unknown" // judging ended before it
	}
	for _, u := range j.verdict.Unjudged {
		if u.Question == q {
			a.Answer = "unknown"
		}
	}
	for _, f := range j.verdict.Findings {
		if f.Question == q {
			a.Answer = "yes"
			a.Findings++
		}
	}
	return a
}

func (j *judge) found(code Code, file *inspect.Reader, key []byte, format string, args ...any) {
	j.foundIn(code, pathOf(file), string(key), format, args...)
}

// foundIn adds a finding; of two with one code about one key the first stays.
func (j *judge) foundIn(code Code, file, key, format string, args ...any) {
	if at := (about{code, file, key}); key != "" {
		if j.about[at] {
			return
		}
		j.about[at] = true
	}
	j.verdict.Findings = append(j.verdict.Findings, Finding{Code: code, Question: code.Question(), File: file, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (j *judge) unjudged(q Question, file *inspect.Reader, key []byte, reason string) {
	j.verdict.Unjudged = append(j.verdict.Unjudged, Unjudged{q, pathOf(file), string(key), reason})
}

func (j *judge) note(format string, args ...any) {
	j.verdict.Notes = append(j.verdict.Notes, fmt.Sprintf(format, args...))
}

func pathOf(r *inspect.Reader) string { return r.Snapshot().Path() }

// isDamage tells what is wrong with a file from what kept it from being read.
func isDamage(err error) bool {
	return errors.Is(err, snapshot.ErrDamaged) || errors.Is(err, snapshot.ErrDigest) || errors.Is(err, archive.ErrDamaged)
}

// Damaged is the verdict where the file at path is too damaged to be opened; err says how.
func Damaged(path string, err error) *Verdict {
	j := &judge{verdict: newVerdict(), checked: map[Question]int{QuestionDamaged: 1}, about: map[about]bool{}}
	j.foundIn(CodeDamaged, path, "", "%v", err)
	return j.finish()
}

func newVerdict() *Verdict {
	return &Verdict{Clusters: []Moved{}, Findings: []Finding{}, Unjudged: []Unjudged{}, Notes: []string{}}
}
