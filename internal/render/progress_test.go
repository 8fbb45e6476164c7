package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgress checks that the line is cleared at the end, and that short work shows nothing.
func TestProgress(t *testing.T) {
	var w bytes.Buffer
	p := NewProgress(&w)
	p.Phase("plan").End()
	require.Nil(t, p.w, "no terminal")

	p = &Progress{w: &w, every: time.Hour}
	p.Phase("plan").End()
	require.Empty(t, w.String())

	p.every = time.Millisecond
	p.Phase("plan")
	time.Sleep(50 * time.Millisecond)
	p.End()
	require.True(t, strings.HasPrefix(w.String(), "\r\x1b[Kplan: 0s\r\x1b[Kplan: "), w.String())
	require.True(t, strings.HasSuffix(w.String(), "\r\x1b[K"))

	w.Reset()
	parts, all := []float64{0.5, 0.2, 7}, make(chan struct{})
	p.Phase("plan").Of(func() float64 {
		part := parts[0]
		if parts = parts[1:]; len(parts) == 0 {
			parts = []float64{part}
			select {
			case all <- struct{}{}:
			default:
			}
		}
		return part
	})
	<-all
	p.End()
	require.Regexp(t, `^(\r\x1b\[Kplan: 0s)?(\r\x1b\[Kplan: 0s, 50%){2}(\r\x1b\[Kplan: 0s, 99%)+\r\x1b\[K$`, w.String())

	w.Reset()
	p.Phase("write")
	time.Sleep(50 * time.Millisecond)
	p.End()
	require.NotContains(t, w.String(), "%", "the part of the phase before")
}

// TestProgressLine checks that the percentage only grows and never reaches 100, that the remaining
// time is shown only with enough recent progress, and that the line fits the terminal.
func TestProgressLine(t *testing.T) {
	begun := time.Now()
	at := func(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }
	l := progressLine{name: "reading in.db", begun: begun}
	require.Equal(t, "reading in.db: 4s", l.text(at(4), 80), "while a file expands, nothing is known")
	for _, step := range []struct {
		seconds, part float64
		want          string
	}{
		{5, 0, "5s"}, {6, 0.009, "6s"}, {7, 0.02, "7s, 2%"}, {9, 0.04, "9s, 4%, 1m36s left"},
		{10, 0.5, "10s, 50%, 5s left"}, {11, 0.2, "11s, 50%, 6s left"},
		{13, 0.5, "13s, 50%, 8s left"}, {14, 0.5, "14s, 50%"}, {15, 0.98, "15s, 98%, 1s left"}, {16, 1, "16s, 99%"},
		{90, 1, "1m30s, 99%"},
	} {
		l.advance(at(step.seconds), step.part)
		require.Equal(t, "reading in.db: "+step.want, l.text(at(step.seconds), 80))
	}
	l = progressLine{name: "reading in.db", begun: begun}
	l.advance(at(0), 0)
	l.advance(at(60), 0.5)
	for columns, want := range map[int]string{
		38: "reading in.db: 1m0s, 50%, 1m0s left", 34: "reading i...: 1m0s, 50%, 1m0s left",
		24: "..: 1m0s, 50%, 1m0s left", 10: ": 1m0s,...",
	} {
		require.Equal(t, want, l.text(at(60), columns), "%d columns", columns)
	}
}
