package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	etcdutl "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

const (
	tortureMemory   = 2 << 30 // bytes of a worker
	torturePatience = 90 * time.Second
	tortureAge      = 3000 // command lines of one worker
)

// tortured is a command line with its outcome. Starting the program takes longer than reading a
// small file, so a worker runs many lines. A worker that dies or hangs is reported with its line.
type tortured struct {
	Args           []string
	Status         int
	Stdout, Stderr string
	Allocated      uint64 // bytes, over the whole line
	Took           time.Duration
	Died           string // the worker's last output, "" while it lives
}

// tortureMain is the worker: command lines on standard input, outcomes on descriptor 3.
func tortureMain() {
	klog.SetLogger(klog.Logger{}) // like main
	log.SetOutput(io.Discard)
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: tortureMemory, Max: tortureMemory}); err != nil {
		panic(err)
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.NewFile(3, "outcomes"))
	for {
		var line []string
		if err := in.Decode(&line); err != nil {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		o, begin := tortured{Args: line}, time.Now()
		o.Status, o.Stdout, o.Stderr = tortureLine(line)
		o.Took = time.Since(begin)
		runtime.ReadMemStats(&after)
		o.Allocated = after.TotalAlloc - before.TotalAlloc
		if err := out.Encode(o); err != nil {
			return
		}
	}
}

// tortureLine runs a line of the program; "serve" with some requests, and "etcdutl" to restore.
func tortureLine(line []string) (status int, stdout, stderr string) {
	switch line[0] {
	case "serve":
		return tortureServe(line)
	case "etcdutl":
		cfg := etcdutl.RestoreConfig{SnapshotPath: line[1], Name: "m", OutputDataDir: line[2],
			PeerURLs:       []string{"http://localhost:2380"},
			InitialCluster: "m=http://localhost:2380", InitialClusterToken: "t"}
		if err := etcdutl.NewV3(zap.NewNop()).Restore(cfg); err != nil {
			return 1, "", err.Error()
		}
		return 0, "", ""
	}
	return runWords(line...)
}

// tortureServe serves until some requests are answered.
func tortureServe(line []string) (status int, stdout, stderr string) {
	dir, err := os.Getwd()
	if err != nil {
		return 99, "", err.Error()
	}
	socket := dir + ".socket" // one per worker
	line = append([]string{}, line...)
	line[slices.Index(line, "--unix")+1] = socket
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out, errs bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- Run(ctx, append([]string{"etcdshift"}, line...), nil, &out, &errs) }()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	var answers strings.Builder
	for _, path := range []string{"/apis", "/api/v1/pods?limit=5", "/api/v1/configmaps",
		"/apis/demo.example.com/v1beta1/widgets", "/api/v1/secrets"} {
		answer, err := client.Get("http://localhost" + path)
		for tries := 0; err != nil; tries++ { // not listening yet, or ended by the file
			select {
			case status := <-done:
				return status, out.String(), errs.String()
			case <-time.After(5 * time.Millisecond):
			}
			if answer, err = client.Get("http://localhost" + path); err != nil && tries > 6000 {
				return 99, "", "GET " + path + ": " + err.Error()
			}
		}
		_, _ = io.Copy(&answers, answer.Body)
		_ = answer.Body.Close()
	}
	cancel()
	return <-done, out.String() + answers.String(), errs.String()
}

// torturer sends command lines to a worker in a folder.
type torturer struct {
	dir  string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  *os.File
	runs int
}

func (w *torturer) end() {
	if w.cmd != nil {
		_ = w.in.Close()
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
		_ = w.log.Close()
		w.cmd = nil
	}
}

func (w *torturer) start(t testing.TB) {
	exe, err := exec.LookPath("torture")
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	w.log, err = os.Create(w.dir + ".log")
	require.NoError(t, err)
	w.cmd = exec.Command(exe)
	w.cmd.Dir, w.cmd.Stdout, w.cmd.Stderr, w.cmd.ExtraFiles = w.dir, w.log, w.log, []*os.File{write}
	w.cmd.Env = append(os.Environ(), "TMPDIR="+w.dir+".tmp", "GOTRACEBACK=all")
	w.in, err = w.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, w.cmd.Start())
	require.NoError(t, write.Close())
	w.out, w.runs = bufio.NewReader(read), 0
}

// run runs a line. A worker that dies or hangs is replaced for the next line.
func (w *torturer) run(t testing.TB, line []string) (o tortured) {
	if w.runs++; w.runs > tortureAge {
		w.end()
	}
	if w.cmd == nil {
		w.start(t)
	}
	text, err := json.Marshal(line)
	require.NoError(t, err)
	_, _ = w.in.Write(append(text, '\n'))
	hung := time.AfterFunc(torturePatience, func() { _ = w.cmd.Process.Signal(unix.SIGQUIT) })
	answer, err := w.out.ReadBytes('\n')
	late := !hung.Stop()
	if err == nil {
		require.NoError(t, json.Unmarshal(answer, &o))
		return o
	}
	_ = w.cmd.Wait()
	w.end()
	said, _ := os.ReadFile(w.dir + ".log")
	o = tortured{Args: line, Died: "died: " + string(said[:min(len(said), 6000)])}
	if late {
		o.Died = "hung: " + o.Died
	}
	return o
}

// files returns the file names in a torturer's folder and its temporary folder.
func (w *torturer) files(t testing.TB) (names []string) {
	for _, dir := range []string{w.dir, w.dir + ".tmp"} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, filepath.Join(strings.TrimPrefix(dir, w.dir), e.Name()))
		}
	}
	return names
}
