package infer

// verdict answers a question about the log. The order is for min: open below yes.
type verdict int8

const (
	open verdict = iota
	no
	yes
)

// segment is a part of the log between two writes with known revisions. A revision in it is the one
// at its beginning, plus the sure changes since, plus a number of open ones: of all open ones
// together the number is known as soon as the segment ends.
type segment struct {
	from, to int64 // the least and the greatest revision at its beginning
	certain  int64 // sure changes so far
	maybes   []verdict
	total    int64 // of the changes among maybes, -1 while unknown
	end      int64 // the revision at its end, 0 while unknown

	// sums[n] are the changes and the open ones among the first n maybes.
	sums  [][2]int32
	dirty bool
}

func newSegment(from, to int64) *segment {
	return &segment{from: from, to: to, total: -1, sums: [][2]int32{{}}}
}

// add adds an open change.
func (g *segment) add() (n int32) {
	g.maybes = append(g.maybes, open)
	last := g.sums[len(g.sums)-1]
	g.sums = append(g.sums, [2]int32{last[0], last[1] + 1})
	return int32(len(g.maybes) - 1)
}

// settle answers an open change. False is a contradiction.
func (g *segment) settle(n int32, v verdict) bool {
	if g.maybes[n] != open {
		return g.maybes[n] == v
	}
	g.maybes[n], g.dirty = v, true
	return g.balance()
}

// balance answers all open changes if their number leaves no choice.
func (g *segment) balance() bool {
	if g.total < 0 {
		return true
	}
	sure, left := g.among(len(g.maybes))
	v := open
	switch rest := g.total - sure; {
	case rest < 0 || rest > left:
		return false
	case rest == 0:
		v = no
	case rest == left:
		v = yes
	}
	for i := range g.maybes {
		if v != open && g.maybes[i] == open {
			g.maybes[i], g.dirty = v, true
		}
	}
	return true
}

// among returns the changes and the open ones among the first n maybes.
func (g *segment) among(n int) (sure, left int64) {
	if g.dirty {
		for i, v := range g.maybes {
			sum := g.sums[i]
			switch v {
			case yes:
				sum[0]++
			case open:
				sum[1]++
			}
			g.sums[i+1] = sum
		}
		g.dirty = false
	}
	return int64(g.sums[n][0]), int64(g.sums[n][1])
}

// at returns the range of a revision after a number of sure changes and of maybes.
func (g *segment) at(certain int64, maybes int) (low, high int64) {
	sure, left := g.among(maybes)
	low, high = sure, sure+left
	if g.total >= 0 {
		all, open := g.among(len(g.maybes))
		rest := g.total - all
		low, high = sure+max(0, rest-(open-left)), sure+min(left, rest)
	}
	low, high = g.from+certain+low, g.to+certain+high
	if g.end > 0 {
		high = min(high, g.end)
	}
	return low, high
}

// pin ends the segment with a known revision, after all its changes. False is a contradiction.
func (g *segment) pin(revision int64) bool {
	sure, left := g.among(len(g.maybes))
	g.from, g.to = max(g.from, revision-g.certain-sure-left), min(g.to, revision-g.certain-sure)
	if g.from > g.to {
		return false
	}
	if g.end = revision; g.from == g.to {
		g.total = revision - g.certain - g.from
	}
	return g.balance()
}
